// The service's own description, OpenAPI 3.1: made from the schemas that validate and the constants that answer, so that
// a limit is written once. It is built ahead (scripts/build.ts); the Worker neither holds nor makes it.

import * as z from "zod/mini";
import { CHALLENGE } from "./authentication.ts";
import { BODY_LIMIT } from "./body.ts";
import { BOOKMARK_HEADER, Bookmark } from "./database.ts";
import { DEPRECATION_HEADERS, REMOVAL } from "./deprecation.ts";
import { type ErrorCode, STATUS } from "./errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "./idempotency.ts";
import { INT64, NewPet, Pet, PetQuery, PetStatus } from "./pets/pet.ts";

const REX = { id: 1, name: "Rex", categoryId: 7, status: "available" };
const ADA = { id: 2, name: "Ada", categoryId: 7, status: "sold" };
const { id: _, ...NEW_REX } = REX;

const COMPONENTS = {
  PetStatus,
  NewPet,
  Pet,
  Pets: z.array(Pet),
  Error: z.object({
    code: z.enum(Object.keys(STATUS)),
    message: z.string(),
    status: z.int().check(z.minimum(400), z.maximum(599)),
  }),
};

/** What the schemas do not say: a description for the reader, of each component and of its properties. */
const NOTES: Record<string, { description: string; properties?: Record<string, string> }> = {
  PetStatus: { description: "Availability status." },
  NewPet: {
    description: "An animal to add. Unknown properties are ignored.",
    properties: {
      name: "The animal's name: well-formed Unicode, with at least one character that is not white space. Kept as sent.",
      categoryId: "Identifier of the category that the animal belongs to.",
      status: "Availability status.",
    },
  },
  Pet: {
    description: "An animal of the store.",
    properties: {
      id: "Unique identifier, assigned by the service on creation. Identifiers rise and are never used twice.",
      name: "The animal's name.",
      categoryId: "Identifier of the category that the animal belongs to.",
      status: "Availability status.",
    },
  },
  Pets: { description: "Animals, in ascending order of `id`." },
  Error: {
    description: "Why a request was refused.",
    properties: {
      code: "Machine-readable error code.",
      message: "Human-readable description: one line that names every fault at once.",
      status: "The HTTP status code.",
    },
  },
  PetQuery: {
    description: "What listPets may be asked for.",
    properties: {
      limit: "Maximum number of animals returned.",
      status: "Return only animals with this status.",
      after: "Return only animals whose `id` is greater. The `Link` header of a page has it for the next one.",
    },
  },
};

/** The JSON Schemas of `named`, which refer to each other as components; `io` tells which side of a transformation. */
function jsonSchemas(named: Record<string, z.ZodMiniType>, io: "input" | "output") {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `#/components/schemas/${id}`,
    unrepresentable: "any",
    // JSON Schema knows no bigint.
    override: ({ zodSchema: { _zod }, jsonSchema }) => {
      if (_zod.def.type === "bigint") Object.assign(jsonSchema, { type: "integer", format: "int64" });
    },
  });
  return mapValues(schemas, (name, { $schema, $id, ...schema }) => {
    const { description, properties = {} } = NOTES[name] ?? {};
    const described = mapValues(schema.properties ?? {}, (key, property) => ({
      ...(typeof property === "object" && property),
      ...(typeof property === "object" && property.format === "int64" && INT64),
      description: properties[key],
    }));
    return { ...schema, ...(schema.properties && { properties: described }), description };
  });
}

function mapValues<T, U>(object: Record<string, T>, map: (key: string, value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(key, value)]));
}

const { PetQuery: query, ...fields } = jsonSchemas({ PetStatus, PetQuery, Bookmark, IdempotencyKey }, "output");

const reference = (name: keyof typeof COMPONENTS) => ({ $ref: `#/components/schemas/${name}` });
const body = (name: keyof typeof COMPONENTS, example: unknown) => ({
  "application/json": { schema: reference(name), example },
});
const header = (description: string, schema: object, required = true) => ({ description, required, schema });
const exactly = (description: string, value: string) => header(description, { type: "string", const: value });

const deprecation = {
  Deprecation: exactly("When the operation was deprecated (RFC 9745).", DEPRECATION_HEADERS.Deprecation),
  Sunset: exactly("When the operation is removed (RFC 8594).", DEPRECATION_HEADERS.Sunset),
  Link: exactly("The replacement, and this documentation.", DEPRECATION_HEADERS.Link),
};

const bookmark = (required: boolean) => ({
  [BOOKMARK_HEADER]: header(
    "How far this response saw the store. Send it with the next request, to see at least as much.",
    fields["Bookmark"] ?? {},
    required,
  ),
});

const bookmarkParameter = {
  name: BOOKMARK_HEADER,
  in: "header",
  description: `The \`${BOOKMARK_HEADER}\` of an earlier response: reads see at least what that response saw, so that you read your own writes wherever you are. Opaque; without it, reads come from the copy of the store that is nearest.`,
  schema: fields["Bookmark"],
};

const idempotencyParameter = {
  name: IDEMPOTENCY_HEADER,
  in: "header",
  description:
    "Makes it safe to send the request again: under one key one animal is added, and the same animal again is answered with the same 201, body and `Location`; another animal is 422. Keys do not expire. Quotes around the key are not part of it. Take a UUID, a new one for each animal.",
  schema: fields["IdempotencyKey"],
};

const BAD_BOOKMARK = `${BOOKMARK_HEADER} must be a bookmark as a response of the service carried it.`;

function refusal(code: ErrorCode, description: string, message: string, headers: object = {}) {
  const status = STATUS[code];
  return { [status]: { description, headers, content: body("Error", { code, message, status }) } };
}

/** The refusals that every operation shares. */
const refusals = (allow: string, headers: Record<string, object> = {}) => ({
  ...refusal(
    "unauthorized",
    "The API key is missing or invalid. This is checked before all else.",
    "An API key is required: send it as Authorization: Bearer <API_KEY>.",
    {
      "WWW-Authenticate": header(
        'The challenge (RFC 6750); with `error="invalid_token"` where a token was presented.',
        {
          type: "string",
          enum: [CHALLENGE, `${CHALLENGE}, error="invalid_token"`],
        },
      ),
    },
  ),
  ...refusal(
    "method_not_allowed",
    "The path has no operation for the method.",
    `DELETE is not allowed here; allowed are ${allow}.`,
    { Allow: exactly("The methods that the path has (RFC 9110).", allow) },
  ),
  ...refusal(
    "internal_error",
    "The service failed; the failure has been logged.",
    "The service failed to answer; the failure has been logged.",
    mapValues(headers, (_name, described) => ({ ...described, required: false })),
  ),
  ...refusal(
    "service_unavailable",
    "The store cannot be reached at the moment.",
    "The store cannot be reached at the moment; try again.",
    { ...headers, "Retry-After": header("When to try again, in seconds.", { type: "integer", minimum: 1 }) },
  ),
});

export const description = {
  openapi: "3.1.0",
  info: {
    title: "Animal store",
    version: "1.0.0",
    summary: "List the animals of the store, add one, get one.",
    description: [
      "Every request carries an API key as a bearer token: `Authorization: Bearer <API_KEY>`.",
      "An int64 is exact over its whole range, in and out. Where a language's JSON parser rounds integers beyond 2^53, as JavaScript's does, read them from the source text.",
      "HEAD is answered wherever GET is, and a browser may call from any origin. Every refusal has an `Error` body.",
    ].join("\n\n"),
    license: { name: "MIT", identifier: "MIT" },
  },
  servers: [{ url: "/v1", description: "Where this description is served" }],
  security: [{ apiKey: [] }],
  tags: [{ name: "pets", description: "The animals of the store." }],
  paths: {
    "/pets": {
      get: {
        operationId: "listPets",
        tags: ["pets"],
        summary: "List all animals",
        description:
          "A page of animals. While there are more, `Link` has the URL of the next page: follow it until it is absent.",
        parameters: [
          ...Object.entries(query?.properties ?? {}).map(([name, { description, ...schema }]) => ({
            name,
            in: "query",
            description,
            schema,
          })),
          bookmarkParameter,
        ],
        responses: {
          200: {
            description: "A page of animals.",
            headers: {
              ...bookmark(true),
              Link: header(
                "The next page (RFC 8288), while there is one.",
                { type: "string", pattern: '^<[^<>]+>; rel="next"$' },
                false,
              ),
            },
            content: body("Pets", [REX, ADA]),
          },
          ...refusal(
            "bad_request",
            "A parameter is invalid; or a query parameter is unknown or repeated.",
            "limit must be an integer from 1 to 100; unknown query parameter offset: use limit, status, after.",
          ),
          ...refusals("GET, HEAD, POST, OPTIONS"),
        },
      },
      post: {
        operationId: "createPet",
        tags: ["pets"],
        summary: "Add an animal",
        description: `The body is at most ${BODY_LIMIT} bytes of JSON, sent as \`application/json\` or any \`+json\` type.`,
        parameters: [idempotencyParameter, bookmarkParameter],
        requestBody: { required: true, content: body("NewPet", NEW_REX) },
        responses: {
          201: {
            description: "The animal was added.",
            headers: {
              ...bookmark(true),
              Location: header("The animal's path.", { type: "string", pattern: "^/v1/pets/[1-9][0-9]*$" }),
            },
            content: body("Pet", REX),
            links: {
              getPet: {
                operationId: "getPet",
                parameters: { petId: "$response.body#/id" },
                description: "The animal that was added.",
              },
            },
          },
          ...refusal(
            "bad_request",
            "The body is no JSON, lacks required fields or holds invalid values; or a header is invalid.",
            `name is required and must be a string with at least one character that is not white space; categoryId must be an integer between ${INT64.minimum} and ${INT64.maximum}.`,
          ),
          ...refusal("content_too_large", "The body is too large.", `The body must be at most ${BODY_LIMIT} bytes.`),
          ...refusal(
            "unsupported_media_type",
            "The body is not sent as JSON.",
            "The body must be sent as Content-Type: application/json.",
          ),
          ...refusal(
            "unprocessable_content",
            "The `Idempotency-Key` has already added another animal.",
            "This Idempotency-Key has already added another animal.",
            bookmark(true),
          ),
          ...refusals("GET, HEAD, POST, OPTIONS"),
        },
      },
    },
    "/pets/{petId}": {
      get: {
        operationId: "getPet",
        tags: ["pets"],
        summary: `Get an animal (until ${REMOVAL})`,
        description: `Deprecated, and to be removed on ${REMOVAL}: from then on the answer is 410. Use \`GET /pets\` with the \`status\` filter instead.`,
        deprecated: true,
        parameters: [
          {
            name: "petId",
            in: "path",
            required: true,
            description: "The identifier of the animal.",
            schema: { type: "integer", format: "int64", ...INT64 },
          },
          bookmarkParameter,
        ],
        responses: {
          200: {
            description: "The animal.",
            headers: { ...deprecation, ...bookmark(true) },
            content: body("Pet", REX),
          },
          ...refusal("bad_request", "A header is invalid.", BAD_BOOKMARK, deprecation),
          ...refusal("not_found", "No animal has this identifier.", "There is no animal with this id.", {
            ...deprecation,
            ...bookmark(false),
          }),
          ...refusal(
            "gone",
            "The operation has been removed.",
            `getPet was removed on ${REMOVAL}: use GET /v1/pets, with the status filter, instead.`,
            deprecation,
          ),
          ...refusals("GET, HEAD, OPTIONS", deprecation),
        },
      },
    },
  },
  components: {
    securitySchemes: {
      apiKey: { type: "http", scheme: "bearer", description: "An API key of the service." },
    },
    schemas: jsonSchemas(COMPONENTS, "input"),
  },
};
