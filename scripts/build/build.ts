// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each `dev`,
// `deploy` and `types` (wrangler.toml, [build]), with the environment's name if there is one.

import { join } from "node:path";
import { prepareLocalService } from "./local-service.ts";
import { buildSite } from "./site.ts";

const [environment] = process.argv.slice(2);
const { WRANGLER_COMMAND = "", SKIP_DEPLOY_CHECK } = process.env;

if (environment && ["deploy", "versions upload"].includes(WRANGLER_COMMAND) && !SKIP_DEPLOY_CHECK) {
  // Loaded only here, because it loads Wrangler, which takes half a second.
  const { checkPlainDeploy } = await import("./plain-deploy.ts");
  await checkPlainDeploy(environment);
}
buildSite(join(import.meta.dirname, "../../dist/site"));
if (WRANGLER_COMMAND === "dev") await prepareLocalService();
