// The API keys of an environment: those in API_KEY, how Wrangler gets them, and what a version's message records about its own,
// because nobody can read a secret. A message to the operator never quotes a key.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readKeys } from "../../src/http/authentication.ts";
import type { wrangler } from "../wrangler.ts";

/** The keys of a secret, which is a comma-separated list. The newest is the last one. Throws with a message for the operator. */
export function parseKeys(source: string, secret = "") {
  if (!secret) throw new Error(`${source} is missing or empty.`);
  const { keys, problem } = readKeys(secret);
  const newest = keys.at(-1);
  if (newest && !problem) return { all: [...new Set(keys)], newest };
  throw new Error(
    `${source}: ${problem} (a key has up to 512 letters, digits and -._~+/ characters, and may end in =).`,
  );
}

/** Calls `use` with a secrets file for Wrangler. Only SIGKILL leaves it behind, in a folder that only its owner can enter. */
export async function withSecretsFile<T>(API_KEY: string, use: (file: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-keys-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const file = join(folder, "secrets.json");
  writeFileSync(file, JSON.stringify({ API_KEY }), { mode: 0o600 });
  return use(file).finally(() => {
    process.off("exit", remove);
    remove();
  });
}

/** The start of a version's message: whether it changes the keys, and how many it has (0 if that is not known). */
export const keysMark = (isChanged: boolean, count: number) =>
  count ? `[${isChanged ? "new keys" : "keys"}: ${count}] ` : "";

/**
 * How many keys the version `current` has (0 if that is not known). `isPending`: whether a version that was uploaded later changes the
 * keys, because the next upload inherits those. Wrangler lists the ten newest versions. Throws WranglerFailed.
 */
export async function readKeyHistory(current: string, environment: string, run: typeof wrangler) {
  const list = await run(["versions", "list", "--json", "--env", environment]);
  const versions: { id: string; annotations?: Record<string, string> }[] = JSON.parse(list);
  // Oldest first.
  const marks = versions.map(({ annotations = {} }) =>
    annotations["workers/triggered_by"] === "secret" ? "[new keys]" : (annotations["workers/message"] ?? ""),
  );
  const position = versions.findIndex(({ id }) => id === current);
  const [, count = 0] = /^\[(?:new )?keys: (\d+)\]/.exec(marks[position] ?? "") ?? [];
  const isPending = marks.slice(position + 1).some((mark) => mark.startsWith("[new keys"));
  return { count: Number(count), isPending };
}
