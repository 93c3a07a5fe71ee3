// Guards `npx wrangler deploy --env <environment>`, which creates a missing database near the computer that runs it. The
// location of a database cannot be changed, so a deployment without a database is stopped here, before it creates anything.

import { hasDatabase, readEnvironment } from "../environment.ts";

/** Says what a plain deployment leaves out. Throws unless its database exists. */
export async function checkPlainDeploy(name: string): Promise<void> {
  const environment = readEnvironment(name);
  const exists = await hasDatabase(environment).catch((failure: Error) => {
    // Signed out, nothing can be deployed, but a dry run works.
    if (failure.message.includes("CLOUDFLARE_API_TOKEN environment variable")) return true;
    throw failure;
  });
  if (!exists) {
    throw new Error(`The database ${environment.database} does not exist. Create it first, because its location cannot be changed later:
see "With Wrangler alone" in docs/OPERATIONS.md.`);
  }
  // Without the trailing newline, which Wrangler would print as an empty line.
  const missing = "This does not apply migrations or run the smoke test.";
  process.stdout.write(`${missing} npm run deploy:${name} does both (docs/OPERATIONS.md).`);
}
