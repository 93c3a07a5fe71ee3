// Lossless JSON: an integer keeps every digit. A JavaScript number is exact only to 2^53, so an integer is read from
// its source text and becomes a bigint.
// Pets are printed by SQLite, from the stored value.

/** Parses JSON with every integer as a bigint, however it is written: `1.0` and `1e2` are integers, `1.5` is a number. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === "number" ? (integer(source) ?? value) : value,
  );
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
