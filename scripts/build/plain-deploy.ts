// Guards `npx wrangler deploy --env <environment>`, which creates a missing database near the computer that runs it. The
// location of a database cannot be changed, so a deployment without a database is stopped here, before it creates anything.

import { hasDatabase, readEnvironment } from "../environment.ts";
import type { WranglerFailed } from "../wrangler.ts";

/** Says what a plain deployment leaves out. Ends the process with 1 unless its database exists. */
export async function checkPlainDeploy(name: string): Promise<void> {
  const environment = readEnvironment(name);
  const { database } = environment;
  const problem = await hasDatabase(environment).then(
    (exists) =>
      !exists &&
      `The database ${database} does not exist. Create it first, because its location cannot be changed later:
npx wrangler d1 create ${database} --location=<hint>, or --jurisdiction=<name>
npx wrangler d1 migrations apply DB --env ${name} --remote`,
    (failure: WranglerFailed) =>
      // Signed out, nothing can be deployed, but a dry run works.
      !failure.output.includes("CLOUDFLARE_API_TOKEN environment variable") &&
      `${failure.output}Could not check that the database ${database} exists. ${failure.message}`,
  );
  if (problem) {
    console.error(problem);
    process.exit(1);
  }
  // Without the trailing newline, which Wrangler would print as an empty line.
  const missing = "This does not apply migrations or run the smoke test.";
  process.stdout.write(`${missing} npm run deploy:${name} does both (docs/OPERATIONS.md).`);
}
