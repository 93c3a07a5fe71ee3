// The description of pets: their properties, and their operations with an example of every response.

import * as z from "zod/mini";
import { BODY_LIMIT, DIGITS_LIMIT, jsonText } from "../http/body.ts";
import { validated } from "../http/errors.ts";
import { parseQuery } from "../http/query.ts";
import { DEPRECATION_HEADERS, REMOVAL, REMOVED } from "../pets/deprecation.ts";
import { UNKNOWN_ID } from "../pets/operations.ts";
import { NewPet, Pet, PetQuery, PetStatus } from "../pets/pet.ts";
import { INT64 } from "../values/int64.ts";
import type { PathItem } from "./operations.ts";
import { body, bookmark, constant, creationErrors, error, header, messageOf, pageResponses } from "./responses.ts";
import { component, idempotencyParameter, queryParameters } from "./schemas.ts";

// Both have every property and differ in each, because tests store and compare them.
const REX = { id: 1n, name: "Rex", categoryId: 7n, status: "available" } satisfies Required<Pet>;
const ADA = { id: 2n, name: "Ada", categoryId: 8n, status: "sold" } satisfies Required<Pet>;
const { id: _, ...NEW_REX } = REX;

export const petTag = { name: "pets", description: "The animals in the store." };

const PROPERTIES = {
  name: "The animal's name: well-formed Unicode with at least one character that is not white space. Stored as sent.",
  categoryId: "Identifier of the category the animal belongs to.",
  status: "Availability status. Defaults to `available` when omitted.",
};

export const petComponents = {
  PetStatus: component(PetStatus, "Availability status."),
  NewPet: component(NewPet, "An animal to add. Unknown properties are ignored.", PROPERTIES),
  Pet: component(Pet, "An animal in the store.", {
    id: "Unique identifier, assigned by the service on creation. Identifiers increase and are never reused.",
    ...PROPERTIES,
    status: "Availability status.",
  }),
  Pets: component(z.array(Pet), "Animals, in ascending order of `id`."),
};

export const petPaths = {
  "/pets": {
    get: {
      operationId: "listPets",
      tags: [petTag.name],
      summary: "List all animals",
      description:
        "Returns a page of animals. If there are more, `Link` has the URL of the next page; follow it until it is absent.",
      parameters: queryParameters(PetQuery, petComponents, {
        limit: "Maximum number of animals returned. Defaults to 20.",
        status: "Return only animals with this status.",
        after: "Return only animals with a greater `id`. The `Link` header of a page has the value for the next page.",
      }),
      responses: pageResponses(
        "Pets",
        [REX, ADA],
        messageOf(() => validated(PetQuery.safeParse(parseQuery("limit=0&offset=20", PetQuery.shape)))),
      ),
    },
    post: {
      operationId: "createPet",
      tags: [petTag.name],
      summary: "Add an animal",
      description: `The body is JSON of at most ${BODY_LIMIT} bytes with ${DIGITS_LIMIT}, sent as \`application/json\` or as any \`+json\` type.`,
      parameters: [idempotencyParameter("animal")],
      requestBody: { required: true, content: body("NewPet", NEW_REX) },
      responses: {
        201: {
          description: "The animal was added.",
          headers: {
            ...bookmark(),
            Location: header("The path of the animal.", { type: "string", pattern: "^/v1/pets/[1-9][0-9]*$" }),
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
        ...creationErrors(
          "animal",
          messageOf(() => validated(jsonText(NewPet).safeParse('{"categoryId":"1"}'))),
        ),
      },
    },
  },
  "/pets/{petId}": {
    get: {
      operationId: "getPet",
      tags: [petTag.name],
      summary: `Get an animal (until ${REMOVAL})`,
      description: `Deprecated. It will be removed on ${REMOVAL} and return 410 from then on. Use \`GET /pets\` with the \`status\` filter or with \`after\` instead.`,
      deprecated: true,
      parameters: [
        {
          name: "petId",
          in: "path",
          required: true,
          description: "The identifier of the animal.",
          schema: { type: "integer", format: "int64", ...INT64 },
          example: REX.id,
        },
      ],
      headers: {
        Deprecation: constant("When the operation was deprecated (RFC 9745).", DEPRECATION_HEADERS.Deprecation),
        Sunset: constant("When the operation will be removed (RFC 8594).", DEPRECATION_HEADERS.Sunset),
        Link: constant("The replacement, and this documentation.", DEPRECATION_HEADERS.Link),
      },
      responses: {
        200: { description: "The animal.", headers: bookmark(), content: body("Pet", REX) },
        ...error("not_found", "No animal has this identifier.", UNKNOWN_ID, bookmark({ required: false })),
        ...error("gone", "The operation has been removed.", REMOVED),
      },
    },
  },
} satisfies Record<`/${string}`, PathItem>;
