// Lossless JSON: integers keep every digit. A JavaScript number is exact only to 2^53, so an integer becomes a bigint:
// from its number or, if JSON.parse may have rounded that, from its source text.

/** Decodes JSON text. Ignores a byte order mark (RFC 8259, section 8.1). Throws a TypeError if it is not UTF-8. */
export const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Matches every number that JSON.parse may round: a double holds 15 decimal digits exactly, so these are the numbers of
 * more digits, and those with an exponent. It also matches some strings, which costs time but changes nothing.
 */
const MAY_BE_ROUNDED = /[\d.]{16}|\de/i;
/**
 * A bracket, or a whole string with the number that follows it if it is the name of one. In valid JSON, nothing else
 * has a bracket or a name, so the brackets give the depth, and a number at depth 1 is a member of the object.
 */
const JSON_TOKEN = /[[\]{}]|("(?:[^"\\]|\\.)*")(?:\s*:\s*(-?\d[^\s,}]*))?/g;

/**
 * Parses JSON. The integers that are members of the outermost object become bigints, however they are written: `1.0`
 * and `1e2` are integers. `1.5` stays a number, and so does an integer of more than 19 digits, which is not an int64.
 * Throws a SyntaxError. The text is read a second time only if it has numbers that may have been rounded.
 *
 * A reviver of JSON.parse gets the source of a number, too. But it visits every value, fails if arrays are nested
 * deeply, and takes time that is quadratic in the number of names whose hashes collide (`npm run bench`).
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = value as Record<string, unknown>;
  if (MAY_BE_ROUNDED.test(text)) convertFromText(members, text);
  else convertFromNumbers(members);
  return members;
}

function convertFromNumbers(members: Record<string, unknown>): void {
  for (const [name, member] of Object.entries(members)) {
    if (typeof member === "number" && Number.isInteger(member)) members[name] = BigInt(member);
  }
}

function convertFromText(members: Record<string, unknown>, text: string): void {
  let depth = 0;
  for (const [token, name = "", number] of text.matchAll(JSON_TOKEN)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && number) setInteger(members, JSON.parse(name), number);
  }
}

/** Of a name that occurs several times, the last value is the one that counts, and so is the last call. */
function setInteger(members: Record<string, unknown>, name: string, source: string): void {
  if (/number|bigint/.test(typeof members[name])) members[name] = toInteger(source) ?? Number(source);
}

// 1e999999999 must not become a billion digits.
const MAX_DIGITS = 19;

function toInteger(source: string): bigint | undefined {
  const [, sign, whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(source) ?? [];
  // The value is significant × 10^power, and significant neither starts nor ends with a zero.
  const [, significant = "", zeros = ""] = /^0*(\d*[1-9])?(0*)$/.exec(whole + fraction) ?? [];
  const power = Number(exponent) - fraction.length + zeros.length;
  if (significant === "") return 0n;
  if (power < 0 || significant.length + power > MAX_DIGITS) return undefined;
  return BigInt(sign + significant + "0".repeat(power));
}

/** Prints JSON, with bigints as integers. */
export function printJson(value: unknown, indentation?: number): string {
  const exact = (_key: string, member: unknown) => (typeof member === "bigint" ? JSON.rawJSON(String(member)) : member);
  return JSON.stringify(value, exact, indentation);
}
