// What makes an OpenAPI 3.1 document of schemas and operations, whatever they are about. What every operation has in
// common is added here: its refusals, the bookmark, the version, and which methods its path allows.

import * as z from "zod/mini";
import { CHALLENGE } from "../http/authentication.ts";
import { BODY_LIMIT } from "../http/body.ts";
import { BOOKMARK_HEADER } from "../d1/database.ts";
import { type ErrorCode, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../http/idempotency.ts";
import { INT64 } from "../values/int64.ts";
import { VERSION_HEADER } from "../http/responses.ts";
import { allowedOf } from "../http/routing.ts";

type JsonSchema = Record<string, unknown>;

/** A schema with what it does not say itself: a description for the reader, and one of each of its properties. */
export interface Component {
  schema: z.ZodMiniType;
  description: string;
  properties: Record<string, string>;
}

type Described<Schema> = Schema extends z.ZodMiniObject<infer Shape> ? [properties: Record<keyof Shape, string>] : [];

export function component<Schema extends z.ZodMiniType>(
  schema: Schema,
  description: string,
  ...[properties = {}]: Described<Schema>
): Component {
  return { schema, description, properties };
}

/** The JSON Schemas of all components, which refer to each other. */
export function componentSchemas(components: Record<string, Component>): Record<string, JsonSchema> {
  const schemas = jsonSchemas(
    mapValues(components, ({ schema }) => schema),
    "input",
  );
  return mapValues(components, ({ description, properties }, name) => ({
    ...withDescriptions(schemas[name] ?? {}, properties),
    description,
  }));
}

/** The parameters of a query, each with its description; their schemas may refer to components. */
export function queryParameters<Shape extends z.core.$ZodShape>(
  query: z.ZodMiniObject<Shape, z.core.$strict>,
  components: Record<string, Component>,
  descriptions: Record<keyof Shape, string>,
): object[] {
  const { schema } = jsonSchemas({ ...mapValues(components, ({ schema }) => schema), schema: query }, "output");
  return Object.entries(propertiesOf(schema)).map(([name, schema]) => {
    const description = new Map(Object.entries(descriptions)).get(name);
    return { name, in: "query", description, schema };
  });
}

function jsonSchemas(named: Record<string, z.ZodMiniType>, io: "input" | "output"): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `#/components/schemas/${id}`,
    unrepresentable: "any",
    // JSON Schema knows no bigint. Its bounds are added afterwards: a bigint in the schema is more than this can copy.
    override: ({ zodSchema: { _zod }, jsonSchema }) => {
      if (_zod.def.type === "bigint") Object.assign(jsonSchema, { type: "integer", format: "int64" });
    },
  });
  return mapValues(schemas, ({ $schema, $id, ...schema }) => mapValues(schema, withBounds));
}

function withBounds(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withBounds);
  if (typeof schema !== "object" || schema === null) return schema;
  return { ...mapValues({ ...schema }, withBounds), ...("format" in schema && schema.format === "int64" && INT64) };
}

/** Without defaults, which the descriptions say: many generators require a property that has one. */
function withDescriptions(schema: JsonSchema, descriptions: Record<string, string>): JsonSchema {
  if (!schema["properties"]) return schema;
  const properties = mapValues(propertiesOf(schema), ({ default: _, ...property }, name) => ({
    ...property,
    description: descriptions[name],
  }));
  return { ...schema, properties };
}

const propertiesOf = (schema: JsonSchema | undefined) => ({
  ...(schema?.["properties"] as Record<string, JsonSchema>),
});

function mapValues<T, U>(object: Record<string, T>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

type Headers = Record<string, { description: string; required: boolean; schema: JsonSchema }>;
type Responses = Record<string, { description: string; headers?: Headers; content?: object; links?: object }>;

export const header = (description: string, schema: JsonSchema, required = true) => ({ description, required, schema });

/** A header that has one value only. */
export const constant = (description: string, value: string) => header(description, { type: "string", const: value });

/** The response header with the bookmark; not `required` where the response may come from elsewhere than the store. */
export const bookmark = ({ required } = { required: true }): Headers => ({
  [BOOKMARK_HEADER]: header(
    "How far this response saw the store. Send it with the next request, to see at least as much.",
    { type: "string" },
    required,
  ),
});

const bookmarkParameter = {
  name: BOOKMARK_HEADER,
  in: "header",
  description: `The \`${BOOKMARK_HEADER}\` of an earlier response: reads see at least what that response saw, so that you read your own writes wherever you are. Opaque, and of one environment; without it, reads come from the copy of the store that is nearest.`,
  schema: { type: "string" },
};

/** The parameter of an operation that adds `what` once under each key. */
export const idempotencyParameter = (what: string) => ({
  name: IDEMPOTENCY_HEADER,
  in: "header",
  description: `Makes it safe to send the request again: under one key one ${what} is added, and the same ${what} again is answered with the same 201, body and \`Location\`; another ${what} is 422. Keys do not expire. A key with a comma must be in quotes; quotes around the key are not part of it. Take a UUID, a new one for each ${what}.`,
  schema: jsonSchemas({ IdempotencyKey }, "input")["IdempotencyKey"],
});

/** A body of JSON that is the component `name`. */
export const body = (name: string, example: unknown) => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** A refusal, with the message of an example. */
export function refusal(code: ErrorCode, description: string, message: string, headers: Headers = {}): Responses {
  const status = STATUS[code];
  return { [status]: { description, headers, content: body("Error", { code, message, status }) } };
}

/** The responses of an operation that lists a page of the component `name`. */
export const pageResponses = (name: string, examples: object[], refused: string): Responses => ({
  200: {
    description: "A page.",
    headers: {
      ...bookmark(),
      Link: header(
        "The next page (RFC 8288), while there is one.",
        { type: "string", pattern: '^<[^<>]+>; rel="next"$' },
        false,
      ),
    },
    content: body(name, examples),
  },
  ...refusal("bad_request", "A query parameter is invalid, unknown or repeated.", refused),
});

/** What an operation that adds `what` once under each key refuses, with the message of an example for its body. */
export const creationRefusals = (what: string, refused: string): Responses => ({
  ...refusal(
    "bad_request",
    "The body breaks off, is no JSON, lacks required fields or holds invalid values; or the key is invalid.",
    refused,
  ),
  ...refusal("content_too_large", "The body is too large.", `The body must be at most ${BODY_LIMIT} bytes.`),
  ...refusal(
    "unsupported_media_type",
    "The body is not sent as JSON, or with a Content-Encoding.",
    "The body must be sent as Content-Type: application/json.",
    {
      "Accept-Encoding": header(
        "Where it was sent with a Content-Encoding: none is accepted (RFC 9110).",
        { type: "string", const: "identity" },
        false,
      ),
    },
  ),
  ...refusal(
    "unprocessable_content",
    `The \`${IDEMPOTENCY_HEADER}\` has already added another ${what}.`,
    `This ${IDEMPOTENCY_HEADER} has already added another ${what}.`,
    bookmark(),
  ),
});

export const errorComponents = {
  Error: component(
    z.object({
      code: z.enum(Object.keys(STATUS)),
      message: z.string(),
      status: z.int().check(z.minimum(400), z.maximum(599)),
    }),
    "Why a request was refused.",
    {
      code: "Machine-readable error code.",
      message: "Human-readable description: one line that names every fault at once.",
      status: "The HTTP status code.",
    },
  ),
};

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  deprecated?: boolean;
  parameters: object[];
  requestBody?: object;
  /** Those that are not common to all operations. */
  responses: Responses;
  /** The headers of every response that the operation gives, its refusals too. */
  headers?: Headers;
}

/** The methods of a path and their operations. */
export type PathItem = Partial<Record<"get" | "post" | "put" | "patch" | "delete", Operation>>;

/** The paths of the document: each operation with what all have in common. */
export function describePaths(paths: Record<`/${string}`, PathItem>): object {
  return mapValues(paths, (item) => {
    const methods = Object.keys(item).map((method) => method.toUpperCase());
    return mapValues({ ...item }, ({ headers = {}, parameters, responses, ...operation }: Operation) => ({
      ...operation,
      parameters: [...parameters, bookmarkParameter],
      responses: mapValues(
        {
          ...mapValues(responses, (response) => ({ ...response, headers: { ...headers, ...response.headers } })),
          ...commonRefusals(methods, headers),
        },
        (response) => ({ ...response, headers: { ...response.headers, ...version } }),
      ),
    }));
  });
}

const version = {
  [VERSION_HEADER]: header("Which version of the service answered: opaque, another one after each deployment.", {
    type: "string",
  }),
};

function commonRefusals(methods: string[], headers: Headers): Responses {
  const allow = allowedOf(methods);
  const wrong = ["PUT", "PATCH", "DELETE", "TRACE"].find((method) => !methods.includes(method));
  return {
    ...refusal(
      "unauthorized",
      "The API key is missing or invalid. This is checked before all else.",
      "An API key is required: send it as Authorization: Bearer <API_KEY>.",
      {
        "WWW-Authenticate": header(
          'The challenge (RFC 6750); with `error="invalid_token"` where a token was presented.',
          { type: "string", enum: [CHALLENGE, `${CHALLENGE}, error="invalid_token"`] },
        ),
      },
    ),
    ...refusal(
      "method_not_allowed",
      "The path has no operation for the method.",
      `${wrong} is not allowed here; allowed are ${allow}.`,
      { Allow: constant("The methods that the path has (RFC 9110).", allow) },
    ),
    ...refusal(
      "internal_error",
      "The service failed; the failure has been logged.",
      "The service failed to answer; the failure has been logged.",
      mapValues(headers, (described) => ({ ...described, required: false })),
    ),
    ...refusal(
      "service_unavailable",
      "The store cannot be reached at the moment.",
      "The store cannot be reached at the moment; try again.",
      { ...headers, "Retry-After": header("When to try again, in seconds.", { type: "integer", minimum: 1 }) },
    ),
  };
}
