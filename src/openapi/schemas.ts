// Converts the schemas that validate requests to the JSON Schemas of the description, and adds the texts for readers.

import * as z from "zod/mini";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../http/idempotency.ts";
import { INT64 } from "../values/int64.ts";

export type JsonSchema = Record<string, unknown>;

/** A schema with a description of itself and of each of its properties. */
interface Component {
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

/** The JSON Schemas of all components, as a caller sends and receives them. They refer to each other. */
export function componentSchemas(components: Record<string, Component>): Record<string, JsonSchema> {
  const schemas = jsonSchemas(schemasOf(components), "input");
  return mapValues(components, ({ description, properties }, name) => ({
    ...withDescriptions(schemas[name] ?? {}, properties),
    description,
  }));
}

/** The parameters of a query, each with its description. Their schemas may refer to components. */
export function queryParameters<Shape extends z.core.$ZodShape>(
  query: z.ZodMiniObject<Shape, z.core.$strict>,
  components: Record<string, Component>,
  descriptions: Record<keyof Shape, string>,
): object[] {
  // The parsed value: an integer, not the list of strings that a query has for each parameter.
  const { query: schema } = jsonSchemas({ ...schemasOf(components), query }, "output");
  return Object.entries(propertiesOf(schema)).map(([name, schema]) => {
    const description = new Map(Object.entries(descriptions)).get(name);
    return { name, in: "query", description, schema };
  });
}

/** The Idempotency-Key of an operation that adds `what` once for each key. */
export const idempotencyParameter = (what: string) => ({
  name: IDEMPOTENCY_HEADER,
  in: "header",
  description: `Makes the request safe to send again. Each key adds one ${what}: sending the same ${what} again returns the same 201, body and \`Location\`; a different ${what} is rejected with 422. Keys do not expire. Use a new UUID for each ${what}. A key that contains a comma must be in quotes, which are not part of the key.`,
  schema: jsonSchemas({ IdempotencyKey }, "input")["IdempotencyKey"],
});

const schemasOf = (components: Record<string, Component>) => mapValues(components, ({ schema }) => schema);

/** The JSON Schemas of what the schemas accept ("input") or return ("output"). */
function jsonSchemas(named: Record<string, z.ZodMiniType>, io: "input" | "output"): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `#/components/schemas/${id}`,
    unrepresentable: "any",
    // JSON Schema has no bigint. Its bounds are added afterwards, because zod cannot copy a bigint.
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

/** Leaves out defaults, which the descriptions state: many generators make a property with a default required. */
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

export function mapValues<T, U>(object: Record<string, T>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}
