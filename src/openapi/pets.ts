// What the description says of pets: their schemas in words, and their operations with an example of every response.

import * as z from "zod/mini";
import { BODY_LIMIT } from "../http/body.ts";
import { DEPRECATION_HEADERS, REMOVAL } from "../pets/deprecation.ts";
import { INT64 } from "../values/int64.ts";
import {
  body,
  bookmark,
  component,
  constant,
  creationRefusals,
  header,
  idempotencyParameter,
  type PathItem,
  pageResponses,
  queryParameters,
  refusal,
} from "./openapi.ts";
import { NewPet, Pet, PetQuery, PetStatus } from "../pets/pet.ts";

// They have every property, and differ in each: tests store them and tell them apart.
const REX = { id: 1n, name: "Rex", categoryId: 7n, status: "available" } satisfies Required<Pet>;
const ADA = { id: 2n, name: "Ada", categoryId: 8n, status: "sold" } satisfies Required<Pet>;
const { id: _, ...NEW_REX } = REX;

export const petTag = { name: "pets", description: "The animals of the store." };

const PROPERTIES = {
  name: "The animal's name: well-formed Unicode, with at least one character that is not white space. Kept as sent.",
  categoryId: "Identifier of the category that the animal belongs to.",
  status: "Availability status; of a new animal `available`, unless it says another.",
};

export const petComponents = {
  PetStatus: component(PetStatus, "Availability status."),
  NewPet: component(NewPet, "An animal to add. Unknown properties are ignored.", PROPERTIES),
  Pet: component(Pet, "An animal of the store.", {
    id: "Unique identifier, assigned by the service on creation. Identifiers rise, and the service gives none twice.",
    ...PROPERTIES,
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
        "A page of animals. While there are more, `Link` has the URL of the next page: follow it until it is absent.",
      parameters: queryParameters(PetQuery, petComponents, {
        limit: "Maximum number of animals returned, 20 when absent.",
        status: "Return only animals with this status.",
        after: "Return only animals whose `id` is greater. The `Link` header of a page has it for the next one.",
      }),
      responses: pageResponses(
        "Pets",
        [REX, ADA],
        "limit must be an integer from 1 to 100; unknown query parameter offset: use limit, status, after.",
      ),
    },
    post: {
      operationId: "createPet",
      tags: [petTag.name],
      summary: "Add an animal",
      description: `The body is at most ${BODY_LIMIT} bytes of JSON, sent as \`application/json\` or any \`+json\` type.`,
      parameters: [idempotencyParameter("animal")],
      requestBody: { required: true, content: body("NewPet", NEW_REX) },
      responses: {
        201: {
          description: "The animal was added.",
          headers: {
            ...bookmark(),
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
        ...creationRefusals(
          "animal",
          `name is required and must be a string with at least one character that is not white space; categoryId must be an integer between ${INT64.minimum} and ${INT64.maximum}.`,
        ),
      },
    },
  },
  "/pets/{petId}": {
    get: {
      operationId: "getPet",
      tags: [petTag.name],
      summary: `Get an animal (until ${REMOVAL})`,
      description: `Deprecated, and to be removed on ${REMOVAL}: from then on the answer is 410. Use \`GET /pets\` instead, with the \`status\` filter or with \`after\`.`,
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
        Sunset: constant("When the operation is removed (RFC 8594).", DEPRECATION_HEADERS.Sunset),
        Link: constant("The replacement, and this documentation.", DEPRECATION_HEADERS.Link),
      },
      responses: {
        200: { description: "The animal.", headers: bookmark(), content: body("Pet", REX) },
        ...refusal(
          "not_found",
          "No animal has this identifier.",
          "There is no animal with this id.",
          bookmark({ required: false }),
        ),
        ...refusal(
          "gone",
          "The operation has been removed.",
          `getPet was removed on ${REMOVAL}: use GET /v1/pets, with the status filter, instead.`,
        ),
      },
    },
  },
} satisfies Record<`/${string}`, PathItem>;
