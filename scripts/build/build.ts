// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each `dev`,
// `deploy` and `types` (wrangler.toml, [build]), with the environment's name if there is one.

import { prepareLocalService } from "./local-service.ts";
import { checkPlainDeploy } from "./plain-deploy.ts";

const [environment] = process.argv.slice(2);
const { WRANGLER_COMMAND = "", SKIP_DEPLOY_CHECK } = process.env;

// Without an environment, Wrangler itself warns.
if (environment && ["deploy", "versions upload"].includes(WRANGLER_COMMAND) && !SKIP_DEPLOY_CHECK) {
  await checkPlainDeploy(environment).catch(({ message }: Error) => {
    console.error(
      `${message}\nNothing was deployed. Wrangler now reports a failed build: ignore the 100 lines that follow.`,
    );
    process.exit(1);
  });
}
try {
  (await import("./site.ts")).buildSite();
} catch (error) {
  // In `wrangler dev`, esbuild reports an error in the code best, but runs only if this step succeeds.
  if (WRANGLER_COMMAND !== "dev") throw error;
  console.error("The API reference was not updated:", error);
}
if (WRANGLER_COMMAND === "dev") await prepareLocalService();
