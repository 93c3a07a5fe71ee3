// Runs the smoke workflow against a running service: `npm run smoke -- <base URL>`, with a key in API_KEY. The key goes
// on by the environment, so that it stands in no process list.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { API_KEY } = process.env;
const [base = ""] = process.argv.slice(2);
if (!API_KEY || !URL.canParse(base)) {
  console.error("usage: API_KEY=<key> npm run smoke -- <base URL, such as http://localhost:8787/v1>");
  process.exit(2);
}

const name = `Smoke test ${new Date().toISOString()}`;
console.log(`This adds one animal, sold and in category 0, named ${JSON.stringify(name)}.`);

const { status } = spawnSync(
  process.execPath,
  [
    fileURLToPath(import.meta.resolve("@redocly/cli/bin/cli.js")),
    "respect",
    join(import.meta.dirname, "../test/smoke/smoke.arazzo.yaml"),
    `--server=store=${base.replace(/\/+$/, "")}`,
  ],
  {
    stdio: "inherit",
    env: {
      ...process.env,
      REDOCLY_CLI_RESPECT_INPUT: JSON.stringify({ key: API_KEY, name }),
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
      REDOCLY_TELEMETRY: "off",
    },
  },
);
process.exit(status ?? 1);
