// The description of animals: their properties, and their operations with an example of every response.

import * as z from "zod/mini";
import { BODY_LIMIT, TOO_LARGE, unsupportedMessage } from "../http/body.ts";
import { FAILED, validated } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../http/idempotency.ts";
import { parseQuery } from "../http/query.ts";
import {
  badRequest,
  errorResponse,
  internalError,
  jsonContent,
  type PathItem,
  serviceUnavailable,
  successResponse,
} from "../openapi/components.ts";
import {
  bookmarkHeader,
  fixedHeader,
  type HeaderMap,
  header,
  idempotencyKeyParameter,
  linkHeader,
  optional,
} from "../openapi/headers.ts";
import { queryParameters } from "../openapi/schemas.ts";
import { DEPRECATION_HEADERS, REMOVED, SUNSET } from "./deprecation.ts";
import { KEY_USED, NewPetBody, UNKNOWN_ID } from "./operations.ts";
import { NewPet, Pet, PetStatus } from "./pet.ts";
import { PetQuery } from "./pet-query.ts";

// Both have every property and differ in each, because tests store and compare them. Below 2^53, because viewers of the
// description round what is beyond.
const REX = { id: 1795132800000n, name: "Rex", categoryId: 7n, status: "available" } satisfies Required<Pet>;
const ADA = { id: 1795132800001n, name: "Ada", categoryId: 8n, status: "sold" } satisfies Required<Pet>;
const { id: _, ...NEW_REX } = REX;

const REMOVAL = SUNSET.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });

export const petTag = { name: "pets", description: "The animals in the store." };

const UNSUPPORTED = unsupportedMessage({ isJson: false, isUnencoded: false });
const CORRECT = "Correct everything that `message` names.";

const PROPERTIES = {
  name:
    "The animal's name, in well-formed Unicode, with at least one character that is not white space. It is stored as " +
    "sent, and its length is counted in code points.",
  categoryId: "Identifies the category that the animal belongs to.",
  status: "Says whether the animal is available.",
};

export const petComponents = {
  // Each use has its own description.
  PetStatus: { schema: PetStatus },
  NewPet: {
    schema: NewPet,
    description: "An animal to add. Unknown properties are ignored.",
    properties: PROPERTIES,
    example: NEW_REX,
  },
  Pet: {
    schema: Pet,
    description: "An animal in the store.",
    properties: {
      id:
        "Identifies the animal: the Unix time in milliseconds at which it was added or, if the store has that or a " +
        "greater one, the greatest plus 1. Identifiers increase, are never given twice, and do not fit into 32 bits.",
      ...PROPERTIES,
    },
    example: REX,
  },
  Pets: { schema: z.array(Pet) },
};

const acceptEncoding: HeaderMap = {
  "Accept-Encoding": fixedHeader(
    "Present on a 415 if the request body has a Content-Encoding: the only one that the service accepts (RFC 9110).",
    "identity",
    false,
  ),
};

const deprecation: HeaderMap = {
  Deprecation: fixedHeader("When the operation was deprecated (RFC 9745).", DEPRECATION_HEADERS.Deprecation),
  Sunset: fixedHeader("When the operation will be removed (RFC 8594).", DEPRECATION_HEADERS.Sunset),
  Link: fixedHeader(
    "Leads to the replacement, and to what the guide says about the removal.",
    DEPRECATION_HEADERS.Link,
  ),
};

export const petPaths: Record<`/${string}`, PathItem> = {
  "/pets": {
    get: {
      operationId: "listPets",
      tags: [petTag.name],
      summary: "List animals",
      description:
        "Returns a page of animals. If there are more, `Link` has the URL of the next page; follow it until it " +
        "is absent. Unknown query parameters are rejected.",
      parameters: queryParameters(PetQuery, petComponents, {
        limit: "Return at most this many animals.",
        status: "Return only animals with this status.",
        id: "Return only the animal with this `id`, in an array, or `[]` if there is none.",
        after: "Return only animals with a greater `id`. The URL in `Link` already contains it.",
      }),
      responses: {
        200: successResponse(
          "A page of animals, in ascending order of `id`.",
          jsonContent("Pets", [REX, ADA]),
          linkHeader,
        ),
        400: badRequest(`A query parameter is invalid, unknown or repeated. ${CORRECT}`, () =>
          validated(PetQuery.safeParse(parseQuery("limit=0&offset=20"))),
        ),
      },
    },
    post: {
      operationId: "createPet",
      tags: [petTag.name],
      summary: "Add an animal",
      description:
        "Adds an animal and returns it with its new `id`. Send the animal as JSON (`application/json` or any " +
        `\`+json\` type) of at most ${BODY_LIMIT} bytes. With an \`${IDEMPOTENCY_HEADER}\`, the request is safe to ` +
        "retry. Animals cannot be changed or deleted.",
      parameters: [idempotencyKeyParameter],
      requestBody: { required: true, content: jsonContent("NewPet", NEW_REX) },
      responses: {
        201: successResponse("The animal was added.", jsonContent("Pet", REX), {
          Location: header("The path of the animal, which includes `/v1`.", {
            type: "string",
            pattern: "^/v1/pets/[1-9][0-9]*$",
          }),
        }),
        400: badRequest(`The body or the \`${IDEMPOTENCY_HEADER}\` is not valid. ${CORRECT}`, () =>
          validated(NewPetBody.safeParse(new TextEncoder().encode('{"categoryId":1}'))),
        ),
        413: errorResponse({}, [
          "body_too_large",
          TOO_LARGE,
          `${TOO_LARGE} Leave out unknown properties and white space.`,
        ]),
        415: errorResponse(acceptEncoding, ["unsupported_media_type", UNSUPPORTED]),
        422: errorResponse(bookmarkHeader, ["idempotency_key_used", KEY_USED]),
        500: errorResponse({}, internalError, ["outcome_unknown", FAILED.outcome_unknown]),
      },
    },
  },
  "/pets/{petId}": {
    get: {
      operationId: "getPet",
      tags: [petTag.name],
      summary: "Get an animal",
      description:
        `Returns one animal until ${REMOVAL}, when the operation is removed, and 410 after that. Use \`GET /pets\` ` +
        "instead, with its `id` or its `status`.",
      deprecated: true,
      parameters: [
        {
          name: "petId",
          in: "path",
          required: true,
          description: "The identifier of the animal.",
          schema: { type: "integer", format: "int64" },
        },
      ],
      responses: {
        200: successResponse("The animal.", jsonContent("Pet", REX), deprecation),
        404: errorResponse({ ...deprecation, ...optional(bookmarkHeader) }, ["id_not_found", UNKNOWN_ID]),
        410: errorResponse(deprecation, [
          "operation_removed",
          REMOVED,
          "The operation was removed. `message` names its replacement.",
        ]),
        // A failure of the operation itself has its headers.
        500: errorResponse(optional(deprecation), internalError),
        503: serviceUnavailable(optional(deprecation)),
      },
    },
  },
};
