// Generates values that a schema of the description allows, and values that it forbids. It knows the schemas that
// requests use: objects, strings and integers, which are bigints here. For any other schema, an error says what to add.

import { type Schema, Validator } from "@cfworker/json-schema";
import fc, { type Arbitrary } from "fast-check";
import { mapValues } from "../../src/openapi/schemas.ts";
import { INT64 } from "../../src/values/int64.ts";
import { componentOf } from "../conformance.ts";

/** In JSON Schema, `true` and `false` are schemas too. */
type AnySchema = Schema | boolean;

const text = fc.string({ unit: "binary" });
const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\u00a0", "\u3000") });

/** Objects that the schema allows. */
export function validObject(schema: AnySchema): Arbitrary<Record<string, unknown>> {
  const { properties = {}, required = [] } = resolved(schema);
  return fc.record(mapValues(properties, valid), { requiredKeys: required });
}

/** Objects in which at least one property is missing or not valid. */
export function brokenObject(schema: AnySchema): Arbitrary<Record<string, unknown>> {
  const { properties = {}, required = [] } = resolved(schema);
  return fc.subarray(Object.keys(properties), { minLength: 1 }).chain((broken) => {
    const member = (schema: AnySchema, name: string) => {
      if (!broken.includes(name)) return valid(schema);
      return required.includes(name) ? fc.option(invalid(schema), { nil: undefined }) : invalid(schema);
    };
    return fc.record(mapValues(properties, member));
  });
}

/** How a query or a header represents values that the schema allows. */
export const validText = (schema: AnySchema): Arbitrary<string> => valid(schema).map(String);

/** The same for values that the schema forbids: texts of any kind, and texts that are almost valid. */
export function invalidText(schema: AnySchema): Arbitrary<string> {
  const { type, enum: values, pattern, maxLength } = resolved(schema);
  const right = validText(schema);
  const almostRight = fc
    .tuple(fc.constantFrom("", "0"), right, fc.constantFrom("", "x"))
    .map((parts) => parts.join(""));
  const tooLong = maxLength === undefined ? [] : [fc.constant("😀".repeat(maxLength + 1))];
  const any = fc.oneof(text, blank, almostRight, ...tooLong);
  if (type === "integer") {
    const wrong = any.filter((value) => !/^(0|-?[1-9]\d*)$/.test(value));
    return fc.oneof(wrong, outside(schema).map(String));
  }
  if (!values && !pattern) throw unknown(schema);
  const validator = new Validator(resolved(schema));
  return any.filter((value) => !validator.validate(value).valid);
}

/** Values that the schema allows. */
function valid(schema: AnySchema): Arbitrary<unknown> {
  const { type, enum: values, pattern, format } = resolved(schema);
  if (values) return fc.constantFrom(...values);
  if (type === "integer") {
    const { min, max } = boundsOf(schema);
    return fc.oneof(fc.bigInt(min, max), fc.constantFrom(min, max));
  }
  if (type === "object") return validObject(schema);
  if (type === "string" && pattern) return matches(pattern);
  if (type === "string" && !format) return text;
  throw unknown(schema);
}

/** A value of each JSON type. */
const EXAMPLES = { null: null, boolean: true, integer: 0n, number: 1.5, string: "1", array: [], object: {} };

/** Values that the schema of a property forbids. */
function invalid(schema: AnySchema): Arbitrary<unknown> {
  const { type, pattern, enum: values } = resolved(schema);
  const { [type as keyof typeof EXAMPLES]: _, ...otherTypes } = EXAMPLES;
  const ofType = type === "integer" ? [outside(schema)] : pattern || values ? [invalidText(schema)] : [];
  return fc.oneof(fc.constantFrom(...Object.values(otherTypes)), ...ofType);
}

const unknown = (schema: AnySchema) =>
  new Error(`test/end-to-end/generators.ts does not know the schema ${JSON.stringify(schema)}.`);

const resolved = (schema: AnySchema): Schema => {
  if (typeof schema === "boolean") return {};
  return schema.$ref ? componentOf(schema) : schema;
};

function boundsOf(schema: AnySchema): { min: bigint; max: bigint } {
  const { minimum, maximum } = resolved(schema);
  // The description was parsed without bigints, so the bounds of an int64 are rounded.
  const exact = (bound: number | undefined, int64: bigint) =>
    bound !== undefined && Number.isSafeInteger(bound) ? BigInt(bound) : int64;
  return { min: exact(minimum, INT64.minimum), max: exact(maximum, INT64.maximum) };
}

function outside(schema: AnySchema): Arbitrary<bigint> {
  const { min, max } = boundsOf(schema);
  return fc.oneof(fc.bigInt({ max: min - 1n }), fc.bigInt({ min: max + 1n }), fc.constantFrom(min - 1n, max + 1n));
}

function matches(pattern: string): Arbitrary<string> {
  const match = fc.stringMatching(RegExp(pattern)).filter((value) => value.isWellFormed());
  // If a match can be anywhere, any text can surround it.
  return pattern.startsWith("^") ? match : fc.tuple(text, match, text).map((parts) => parts.join(""));
}
