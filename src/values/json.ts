// Lossless JSON: integers keep every digit. A JavaScript number is exact only to 2^53, so an integer becomes a bigint, made
// from its source text.

/** Decodes JSON text. Ignores a byte order mark (RFC 8259, section 8.1). Throws a TypeError if it is not UTF-8. */
export const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Parses JSON. If it is an object, its `named` members that are integers become bigints, however they are written: `1.0`
 * and `1e2` are integers, `1.5` is a number. Everything else is parsed as usual, without a reviver, which would visit every
 * value, take twenty times as long and recurse. Throws a SyntaxError.
 */
export function parseJson(text: string, named: string[]): unknown {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) return value;
  for (const [name, source] of outermostNumbers(text, named)) {
    const isNumber = typeof value[name] === "number";
    if (isNumber) value[name] = toInteger(source) ?? value[name];
  }
  return value;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// A string, followed by its number if it is a name with a number; or everything from a bracket to the next string.
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(?:\s*:\s*(-?\d[\d.eE+-]*))?|[[\]{}][^"]*/g;

/** The source of each `named` number in the outermost object of valid JSON. If a name is repeated, its last number. */
function outermostNumbers(text: string, named: string[]): Map<string, string> {
  const sources = new Map<string, string>();
  let depth = 0;
  for (const [token, string, number] of text.matchAll(TOKEN)) {
    if (!string) depth += levelsOf(token);
    else if (depth === 1 && number) {
      const name = string.includes("\\") ? JSON.parse(string) : string.slice(1, -1);
      // Not looked up in a Map or an object: a caller could send names that collide there and make this ten times slower.
      if (named.includes(name)) sources.set(name, number);
    }
  }
  return sources;
}

/** How many levels a text without strings descends, from its start to its end. */
function levelsOf(text: string): number {
  let levels = 0;
  for (const character of text) {
    if (character === "{" || character === "[") levels++;
    else if (character === "}" || character === "]") levels--;
  }
  return levels;
}

// A longer number is not an int64, and 1e999999999 must not become a billion digits.
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
