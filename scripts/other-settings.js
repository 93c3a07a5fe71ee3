// Without --config, Wrangler takes a wrangler.json or wrangler.jsonc of this folder, or of any folder above, instead of
// wrangler.toml (cloudflare/workers-sdk issue 15663). JavaScript, because prepare.js imports it.

import { existsSync } from "node:fs";
import { join } from "node:path";

const above = import.meta.dirname.split(/[\\/]/).map((_, depth) => join(import.meta.dirname, "../".repeat(depth + 1)));
const names = ["wrangler.json", "wrangler.jsonc"];

export const OTHER_SETTINGS = names.flatMap((name) => above.map((folder) => join(folder, name))).find(existsSync);
if (OTHER_SETTINGS)
  console.error(`Add --config wrangler.toml to every npx wrangler: otherwise, it takes ${OTHER_SETTINGS}.`);
