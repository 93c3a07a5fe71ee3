// Converts the schemas that validate requests to the JSON Schemas of the description, and adds the texts for readers.

import * as z from "zod/mini";

/** The keywords that the schemas of the description have. */
export interface JsonSchema {
  $ref?: string;
  type?: "string" | "integer" | "object" | "array";
  description?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  enum?: string[];
  const?: string;
  default?: unknown;
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  examples?: unknown[];
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description: string;
  required?: boolean;
  schema: JsonSchema;
}

interface Component {
  schema: z.ZodMiniType;
  description?: string;
  /** The description of each property. */
  properties?: Record<string, string>;
  example?: Record<string, unknown>;
}

/**
 * The JSON Schemas of all components, as a caller sends and receives them. They refer to each other. The text of a
 * property states its default, because many generators make a property required if its schema has a default.
 */
export function componentSchemas(components: Record<string, Component>): Record<string, JsonSchema> {
  const schemas = jsonSchemas(schemasOf(components), "input");
  return mapValues(components, ({ description, properties: texts = {}, example }, name) => {
    const { properties } = schemas[name] ?? {};
    const described = mapValues({ ...properties }, ({ default: initial, ...schema }, property) => {
      const defaults = initial === undefined ? "" : ` It defaults to \`${initial}\` when omitted.`;
      const text = texts[property] ?? "";
      return { ...schema, description: text && text + defaults, ...(example && { examples: [example[property]] }) };
    });
    return { ...schemas[name], ...(properties && { properties: described }), ...(description && { description }) };
  });
}

/** The parameters of a query, each with its description. Their schemas may refer to components. */
export function queryParameters<Query>(
  query: z.ZodMiniType<Query>,
  components: Record<string, Component>,
  descriptions: Record<keyof Query, string>,
): Parameter[] {
  // The parsed value: an integer, not the text of a query.
  const { query: schema } = jsonSchemas({ ...schemasOf(components), query }, "output");
  return Object.entries<string>(descriptions).map(([name, description]) => {
    return { name, in: "query", description, schema: schema?.properties?.[name] ?? {} };
  });
}

const schemasOf = (components: Record<string, Component>) => mapValues(components, ({ schema }) => schema);

/** The JSON Schemas of what the schemas accept ("input") or return ("output"). */
export function jsonSchemas(named: Record<string, z.ZodMiniType>, io: "input" | "output"): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `#/components/schemas/${id}`,
    unrepresentable: "any",
    // JSON Schema has no bigint. Without bounds, because tools in JavaScript round them: `int64` says the same.
    override: ({ zodSchema: { _zod }, jsonSchema }) => {
      if (_zod.def.type === "bigint") Object.assign(jsonSchema, { type: "integer", format: "int64" });
    },
  });
  return mapValues(schemas, ({ $schema, $id, ...schema }) => schema as JsonSchema);
}

export function mapValues<T, U>(object: Record<string, T>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}
