// What the person at the terminal sees: one line that says what is going on, and then a table.

const { stderr } = process;

/** Replaces the line before; where the terminal cannot do that, only `what` is printed, and once. */
export function progress(what: string, detail = ""): void {
  if (stderr.isTTY) stderr.write(`\r\x1b[2K${what} ${detail}`);
  else if (detail === "") stderr.write(`${what} …\n`);
}

/** The first column is text, the others are figures. */
export function print(title: string, head: string[], rows: string[][]): void {
  if (stderr.isTTY) stderr.write("\r\x1b[2K");
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const format = (line: string[]) =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)));
  const [headline = "", ...body] = lines.map((line) => `  ${format(line).join("   ")}`.trimEnd());
  console.log([`\n${title}`, headline, `  ${"-".repeat(headline.length - 2)}`, ...body, ""].join("\n"));
}

export const verdict = (met: boolean): string => (met ? "met" : "MISSED");
