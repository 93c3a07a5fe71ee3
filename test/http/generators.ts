// Generates values that a schema of the description allows, and values that it forbids. An error says what to add here if a
// schema has no generator, or if hardly any generated value meets a condition.

import { type Schema as AnySchema, Validator } from "@cfworker/json-schema";
import fc, { type Arbitrary } from "fast-check";
import { mapValues } from "../../src/openapi/schemas.ts";

/** References are resolved, and integers are bigints, because a number cannot represent the bounds of an int64. */
export interface Schema {
  type?: string;
  format?: string;
  pattern?: string;
  minLength?: bigint;
  maxLength?: bigint;
  enum?: unknown[];
  default?: unknown;
  minimum?: bigint;
  maximum?: bigint;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

const TRIES = 10_000;

export const text = fc.string({ unit: "binary" });

/** The values that meet a condition; `what` describes it. */
export function only<T>(values: Arbitrary<T>, what: string, condition: (value: T) => boolean): Arbitrary<T> {
  let missed = 0;
  return values.filter((value) => {
    missed = condition(value) ? 0 : missed + 1;
    if (missed > TRIES) throw new Error(`None of ${TRIES} generated values was ${what}.`);
    return missed === 0;
  });
}

// JSON texts of each type. Arrays and objects are empty; brokenObject generates invalid members.
const OF_TYPE: Record<string, string[]> = {
  null: ["null"],
  boolean: ["true", "false"],
  integer: ["0", "-1"],
  number: ["1.5", "-0.001", "1e-7"],
  string: ['""', '"1"', '"true"'],
  array: ["[]"],
  object: ["{}"],
};

const date = fc.date({ min: new Date("0001-01-01"), max: new Date("9999-12-31"), noInvalidDate: true });
const FORMATS: Record<string, Arbitrary<string>> = {
  date: date.map((value) => value.toISOString().slice(0, "yyyy-mm-dd".length)),
  "date-time": date.map((value) => value.toISOString()),
  uuid: fc.uuid(),
};

/** JSON texts that the schema allows. Errors name it `name`. */
export function valid(schema: Schema, name: string): Arbitrary<string> {
  const { type, enum: values, items, properties = {}, required = [] } = schema;
  if (values) return fc.constantFrom(...values).map((value) => JSON.stringify(value));
  if (type === "boolean") return fc.boolean().map(String);
  if (type === "integer") return within(schema).map(String);
  if (type === "number") return numbers(schema).map((value) => JSON.stringify(value));
  if (type === "string") return strings(schema, name).map((value) => JSON.stringify(value));
  if (type === "array" && items)
    return fc.array(valid(items, name), { maxLength: 5 }).map((all) => `[${all.join(",")}]`);
  if (type === "object") {
    return fc.record(mapValues(properties, valid), { requiredKeys: required }).map(objectText);
  }
  return noGenerator(name, `the schema ${print(schema)}`);
}

/** JSON texts that the schema forbids. */
export function invalid(schema: Schema, name: string): Arbitrary<string> {
  const { type } = schema;
  const others = Object.entries(OF_TYPE).filter(
    ([other]) => other !== type && !(type === "number" && other === "integer"),
  );
  const otherTypes = fc.constantFrom(...others.flatMap(([, texts]) => texts));
  if (type === "object") return fc.oneof(otherTypes, brokenObject(schema));
  if (type === "integer") return fc.oneof(otherTypes, ...beyond(schema).map((values) => values.map(String)));
  const limitsStrings = ["enum", "pattern", "format", "minLength", "maxLength"].some((keyword) => keyword in schema);
  if (type !== "string" || !limitsStrings) return otherTypes;
  return fc.oneof(
    otherTypes,
    wrongStrings(schema, name).map((value) => JSON.stringify(value)),
  );
}

/** JSON texts of objects with at least one property that is missing or not valid. */
export function brokenObject({ properties = {}, required = [] }: Schema): Arbitrary<string> {
  return fc.subarray(Object.keys(properties), { minLength: 1 }).chain((broken) => {
    const member = (schema: Schema, name: string) => {
      if (!broken.includes(name)) return valid(schema, name);
      return required.includes(name) ? fc.option(invalid(schema, name), { nil: undefined }) : invalid(schema, name);
    };
    return fc.record(mapValues(properties, member)).map(objectText);
  });
}

/** How a path, a query or a header represents values that the schema allows: a string without its quotes. */
export function validText(schema: Schema, name: string): Arbitrary<string> {
  return valid(schema, name).map((json) => (schema.type === "string" ? JSON.parse(json) : json));
}

/** The same for values that the schema forbids. */
export function invalidText(schema: Schema, name: string): Arbitrary<string> {
  const { type = "" } = schema;
  if (type === "string") return wrongStrings(schema, name);
  const form = { integer: /^-?\d+$/, boolean: /^(true|false)$/ }[type];
  if (!form) return noGenerator(name, `how texts for ${print(schema)} can be wrong`);
  const formless = only(text, `not ${type}`, (value) => !form.test(value));
  return fc.oneof(formless, ...(type === "integer" ? beyond(schema).map((values) => values.map(String)) : []));
}

const within = ({ minimum, maximum }: Schema) =>
  fc.oneof(
    fc.bigInt({ ...(minimum !== undefined && { min: minimum }), ...(maximum !== undefined && { max: maximum }) }),
    ...[minimum, maximum].flatMap((bound) => (bound === undefined ? [] : [fc.constant(bound)])),
  );

const numbers = ({ minimum, maximum }: Schema) =>
  fc.double({ min: Number(minimum ?? -Number.MAX_VALUE), max: Number(maximum ?? Number.MAX_VALUE), noNaN: true });

const beyond = ({ minimum, maximum }: Schema) => [
  ...(minimum === undefined ? [] : [fc.bigInt({ max: minimum - 1n }), fc.constant(minimum - 1n)]),
  ...(maximum === undefined ? [] : [fc.bigInt({ min: maximum + 1n }), fc.constant(maximum + 1n)]),
];

function strings({ format = "", pattern, minLength = 0n, maxLength }: Schema, name: string): Arbitrary<string> {
  if (FORMATS[format]) return FORMATS[format];
  if (pattern === undefined) {
    if (format !== "") return noGenerator(name, `the format ${format}`);
    const length = { minLength: Number(minLength), ...(maxLength !== undefined && { maxLength: Number(maxLength) }) };
    return fc.string({ unit: "binary", ...length });
  }
  const matching = only(fc.stringMatching(RegExp(pattern)), `well-formed, for ${name}`, (value) =>
    value.isWellFormed(),
  );
  // If a match can be anywhere, any text can surround it.
  return pattern.startsWith("^") ? matching : fc.tuple(text, matching, text).map((parts) => parts.join(""));
}

function noGenerator(name: string, what: string): never {
  throw new Error(`${name} cannot be generated: generators.ts does not know ${what}.`);
}

const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\u00a0", "\u3000") });

function wrongStrings(schema: Schema, name: string): Arbitrary<string> {
  const right = validText(schema, name);
  const near = fc.oneof(
    right.map((value) => value.slice(1)),
    right.map((value) => `${value}x`),
    right.map((value) => value.replaceAll(/\d/g, "9")),
  );
  const validator = new Validator(JSON.parse(print(schema)) as AnySchema);
  return only(fc.oneof(text, blank, near), `a wrong ${name}`, (value) => !validator.validate(value).valid);
}

function objectText(members: Record<string, string | undefined>): string {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return `{${present.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

const print = (schema: Schema) =>
  JSON.stringify(schema, (_key, value) => (typeof value === "bigint" ? Number(value) : value));
