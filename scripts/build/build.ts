// Prepares what wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each `dev`
// and `deploy` (wrangler.toml, [build]).

import { join } from "node:path";
import { prepareLocalService } from "./local-service.ts";
import { buildSite } from "./site.ts";

buildSite(join(import.meta.dirname, "../../dist/site"));

// Wrangler says for which of its commands it builds.
if (process.env["WRANGLER_COMMAND"] === "dev") await prepareLocalService();
