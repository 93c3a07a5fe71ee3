// Without --config, Wrangler takes a wrangler.json or wrangler.jsonc of this folder, or of any folder above, instead of
// wrangler.toml (cloudflare/workers-sdk issue 15663). JavaScript, because prepare.js imports it on Node 20.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

// At least one for each folder above. Those beyond the root are the root's.
const steps = import.meta.url.split("/").map((_, index) => "../".repeat(index + 1));
const names = ["wrangler.json", "wrangler.jsonc"];
const files = names.flatMap((name) => steps.map((up) => fileURLToPath(new URL(up + name, import.meta.url))));

export const OTHER_SETTINGS = files.find((file) => existsSync(file));
if (OTHER_SETTINGS)
  console.error(`Add --config wrangler.toml to every npx wrangler: otherwise, it takes ${OTHER_SETTINGS}.`);
