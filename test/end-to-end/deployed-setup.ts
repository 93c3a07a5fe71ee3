// A deployed service for the tests over HTTP. All of them (`npm run test:deployed`) leave animals there, so its address
// must be known to be for tests, and it must be open to the key. The smoke test (`npm run smoke`) only reads, so it
// runs against any service. What needs an open one is skipped while it is closed.

import type { TestProject } from "vitest/node";
import { isForTests, parseBase } from "../../scripts/environment.ts";
import { askAboutKey } from "../../scripts/key.ts";
import { readKey } from "../../scripts/read-key.ts";

// An error that is thrown here would be printed with its stack, and "No test files found" after it.
export default async function setup(project: TestProject): Promise<void> {
  try {
    project.provide("service", await requireTestService(project.vite.config.mode, process.env));
  } catch (failure) {
    console.error((failure as Error).message);
    process.exit(1);
  }
}

/** The service that the tests of this mode call. Throws with a message for the operator. */
export async function requireTestService(mode: string, { SERVICE_URL = "", ...env }: NodeJS.Dict<string>) {
  const base = parseBase("SERVICE_URL", SERVICE_URL);
  const leavesAnimals = mode !== "smoke";
  if (leavesAnimals && !isForTests(base)) {
    throw new Error(`These tests leave a few hundred animals, and ${base} is not known to be for tests.
If it is staging, add its domain to STAGING_DOMAINS in scripts/environment.ts.`);
  }
  const key = await readKey("API key", env);
  const { state, line } = await askAboutKey(base, key);
  const isClosed = state === "closed";
  if (state !== "open" && (leavesAnimals || !isClosed)) throw new Error(line);
  console.log(leavesAnimals ? `${line}\nThese tests leave a few hundred animals there.` : line);
  return { origin: base.replace(/\/v1$/, ""), key, isDeployed: true, isClosed };
}
