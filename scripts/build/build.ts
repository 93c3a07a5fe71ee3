// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each `dev`,
// `deploy` and `types` (wrangler.toml, [build]), with the environment's name if there is one.

import { join } from "node:path";
import { prepareLocalService } from "./local-service.ts";
import { checkPlainDeploy } from "./plain-deploy.ts";
import { buildSite } from "./site.ts";

const [environment = ""] = process.argv.slice(2);
const { WRANGLER_COMMAND = "", SKIP_DEPLOY_CHECK } = process.env;

const isPlainDeploy = ["deploy", "versions upload"].includes(WRANGLER_COMMAND) && !SKIP_DEPLOY_CHECK;
if (isPlainDeploy && !environment) {
  // Only a warning, because a dry run works without an environment.
  console.error("WARNING: name the environment, --env staging or --env production. Otherwise this is one more Worker.");
} else if (isPlainDeploy) {
  await checkPlainDeploy(environment).catch(({ message }: Error) => {
    console.error(
      `${message}\nNothing was deployed. Wrangler now reports a failed build: ignore the 100 lines that follow.`,
    );
    process.exit(1);
  });
}
buildSite(join(import.meta.dirname, "../../dist/site"));
if (WRANGLER_COMMAND === "dev") await prepareLocalService();
