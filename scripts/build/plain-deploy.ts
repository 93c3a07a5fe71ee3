// Guards `npx wrangler deploy --env <environment>`, which creates a missing database near the computer that runs it. The
// location of a database cannot be changed, so a deployment without a database is stopped here, before it creates anything.

import { hasDatabase, readEnvironment } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";

/** Says what a plain deployment leaves out. Ends the process with 1 unless its database exists. */
export async function checkPlainDeploy(name: string): Promise<void> {
  const environment = readEnvironment(name);
  const { database } = environment;
  try {
    if (!(await hasDatabase(environment))) {
      stop(`There is no database ${database}. Create it first, because its location cannot be changed later:
npx wrangler d1 create ${database} --location=<hint>, or --jurisdiction=<name>
npx wrangler d1 migrations apply DB --env ${name} --remote`);
    }
  } catch (failure) {
    if (!(failure instanceof WranglerFailed)) throw failure;
    // Without an account nothing can be deployed, and a dry run needs none.
    if (!failure.isSignedOut) stop(`Could not check that the database ${database} exists. ${failure.message}`);
  }
  // Without the trailing newline, which Wrangler would print as an empty line.
  process.stdout.write(
    `This does not apply migrations or run the smoke test. npm run deploy:${name} does both (docs/OPERATIONS.md).`,
  );
}

function stop(reason: string): never {
  console.error(reason);
  process.exit(1);
}
