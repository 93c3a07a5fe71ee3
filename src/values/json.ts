// Lossless JSON: an integer keeps every digit. A JavaScript number is exact only to 2^53, so an integer is read from
// its source text and becomes a bigint. Pets are printed by SQLite, from the stored value.

/**
 * Parses JSON. Where it is an object, those of its members that are `named` and integers are bigints, however they are
 * written: `1.0` and `1e2` are integers, `1.5` is a number. All else is parsed as usual: a reviver would visit every value,
 * which takes twenty times as long and recurses. Throws a SyntaxError.
 */
export function parseJson(text: string, named: string[]): unknown {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) return value;
  // Of a name that is there twice, the last one counts, as it does for JSON.parse.
  for (const [name, source] of outermostNumbers(text, named)) {
    const isNumber = typeof value[name] === "number" || typeof value[name] === "bigint";
    if (isNumber) value[name] = integer(source) ?? Number(source);
  }
  return value;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// A string, with the number whose name it is, if any; or all from a bracket to the next string.
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(?:\s*:\s*(-?\d[\d.eE+-]*))?|[[\]{}][^"]*/g;

/** The numbers that are members of the outermost object and named, as they are written in a text that is valid JSON. */
function* outermostNumbers(text: string, named: string[]): Generator<[name: string, source: string]> {
  let depth = 0;
  for (const [token, string, number] of text.matchAll(TOKEN)) {
    if (!string) depth += levelsOf(token);
    else if (depth === 1 && number) {
      const name = string.includes("\\") ? JSON.parse(string) : string.slice(1, -1);
      // Compared one by one: names can be chosen so that looking each up in an object or a Map takes ten times as long.
      if (named.includes(name)) yield [name, number];
    }
  }
}

/** How many levels deeper the end of a text without strings is than its beginning. */
function levelsOf(text: string): number {
  let levels = 0;
  for (const character of text) {
    if (character === "{" || character === "[") levels++;
    else if (character === "}" || character === "]") levels--;
  }
  return levels;
}

// Beyond it nothing is an int64, and 1e999999999 must not become a billion digits.
const MOST_DIGITS = 19;

function integer(source: string): bigint | undefined {
  const [, sign, whole = "", fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(source) ?? [];
  // The value is significant × 10^power, with no zero at either end of significant.
  const [, significant = "", zeros = ""] = /^0*(\d*[1-9])?(0*)$/.exec(whole + fraction) ?? [];
  const power = Number(exponent) - fraction.length + zeros.length;
  if (significant === "") return 0n;
  if (power < 0 || significant.length + power > MOST_DIGITS) return undefined;
  return BigInt(sign + significant + "0".repeat(power));
}

/** Prints JSON, with bigints as integers. */
export function printJson(value: unknown, indentation?: number): string {
  const exact = (_key: string, member: unknown) => (typeof member === "bigint" ? JSON.rawJSON(String(member)) : member);
  return JSON.stringify(value, exact, indentation);
}
