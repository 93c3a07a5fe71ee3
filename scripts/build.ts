// Builds what the Worker serves without running: the API reference for a browser, and the description. Wrangler runs it
// before each `dev` and `deploy` (wrangler.toml, [build]).

import { cpSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { description } from "../src/description.ts";
import { printJson } from "../src/json.ts";
import { prepareLocalService } from "./local-service.ts";

const ROOT = join(import.meta.dirname, "..");
const SITE = join(ROOT, "dist/site");

rmSync(SITE, { recursive: true, force: true });
cpSync(join(ROOT, "src/site"), SITE, { recursive: true });

const swaggerUi = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));
for (const file of ["swagger-ui-bundle.js", "swagger-ui.css"]) cpSync(join(swaggerUi, file), join(SITE, file));

writeFileSync(join(SITE, "openapi.json"), `${printJson(description, 2)}\n`);

// Wrangler says for which of its commands it builds.
if (process.env["WRANGLER_COMMAND"] === "dev") prepareLocalService();
