// The files of a test, in a folder that is removed after it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, vi } from "vitest";

export const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

// The commands remove their temporary files when the process ends, but Vitest skips that event.
vi.stubEnv("TMPDIR", folder);
process.setMaxListeners(0);

let files = 0;

/** A name that is not taken. */
export const newFile = () => join(folder, `${++files}.jsonl`);

/** A file with these lines. */
export function fileOf(lines: string[]): string {
  const file = newFile();
  writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
  return file;
}

export const linesIn = (file: string) => readFileSync(file, "utf8").split("\n").slice(0, -1);
