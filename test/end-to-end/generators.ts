// Generates values that a schema of the description allows, and values that it forbids. It knows the schemas that requests
// use: objects, strings and integers, which are bigints here. For any other schema, an error says what to add.

import { type Schema, Validator } from "@cfworker/json-schema";
import fc, { type Arbitrary } from "fast-check";
import { mapValues } from "../../src/openapi/schemas.ts";
import { INT64 } from "../../src/values/int64.ts";
import { componentOf } from "../conformance.ts";

/** In JSON Schema, `true` and `false` are schemas too. */
type AnySchema = Schema | boolean;

const TRIES = 10_000;

export const text = fc.string({ unit: "binary" });

/** The values that meet a condition; `what` describes it. Throws if hardly any value does. */
export function only<T>(values: Arbitrary<T>, what: string, condition: (value: T) => boolean): Arbitrary<T> {
  let missed = 0;
  return values.filter((value) => {
    missed = condition(value) ? 0 : missed + 1;
    if (missed > TRIES) throw new Error(`None of ${TRIES} generated values was ${what}.`);
    return missed === 0;
  });
}

/** Values that the schema allows. */
export function valid(schema: AnySchema): Arbitrary<unknown> {
  const { type, enum: values, pattern, format } = resolved(schema);
  if (values) return fc.constantFrom(...values);
  if (type === "integer") {
    const { min, max } = boundsOf(schema);
    return fc.oneof(fc.bigInt(min, max), fc.constantFrom(min, max));
  }
  if (type === "object") return validObject(schema);
  if (type === "string" && pattern) return matches(pattern);
  if (type === "string" && !format) return text;
  throw new Error(`test/end-to-end/generators.ts does not know the schema ${JSON.stringify(schema)}.`);
}

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

/** How a path, a query or a header represents values that the schema allows. */
export const validText = (schema: AnySchema): Arbitrary<string> => valid(schema).map(String);

const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\u00a0", "\u3000") });

/** The same for values that the schema forbids: texts of any kind, and texts that are almost valid. */
export function invalidText(schema: AnySchema): Arbitrary<string> {
  const right = validText(schema);
  const near = fc.oneof(
    right.map((value) => value.slice(1)),
    right.map((value) => `${value}x`),
    right.map((value) => `0${value}`),
    right.map((value) => value.replaceAll(/\d/g, "9")),
  );
  const isInteger = resolved(schema).type === "integer";
  const validator = new Validator(resolved(schema));
  const isValid = (value: string) => (isInteger ? /^(0|-?[1-9]\d*)$/.test(value) : validator.validate(value).valid);
  const wrong = only(fc.oneof(text, blank, near), `wrong for ${JSON.stringify(schema)}`, (value) => !isValid(value));
  return isInteger ? fc.oneof(wrong, outside(schema).map(String)) : wrong;
}

const OF_TYPE: Record<string, unknown[]> = {
  null: [null],
  boolean: [true, false],
  integer: [0n, -1n],
  number: [1.5, -0.001, 1e-7],
  string: ["", "1", "true"],
  array: [[]],
  object: [{}],
};

/** Values that the schema of a property forbids. */
function invalid(schema: AnySchema): Arbitrary<unknown> {
  const { type, pattern, enum: values } = resolved(schema);
  const otherTypes = Object.entries(OF_TYPE).flatMap(([other, examples]) => (other === type ? [] : examples));
  const ofType = type === "integer" ? [outside(schema)] : pattern || values ? [invalidText(schema)] : [];
  return fc.oneof(fc.constantFrom(...otherTypes), ...ofType);
}

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
  const match = only(fc.stringMatching(RegExp(pattern)), "well-formed", (value) => value.isWellFormed());
  // If a match can be anywhere, any text can surround it.
  return pattern.startsWith("^") ? match : fc.tuple(text, match, text).map((parts) => parts.join(""));
}
