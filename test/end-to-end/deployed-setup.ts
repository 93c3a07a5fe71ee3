// A deployed service for the tests over HTTP. All of them (`npm run test:deployed`) leave animals there, so its address
// must be known to be for tests, and it must be open to the key. The smoke test (`npm run smoke`) leaves nothing, so it
// runs against any service, with or without a key.

import type { TestProject } from "vitest/node";
import { isForTests, parseBase } from "../../scripts/environment.ts";
import { askAboutKey } from "../../scripts/key.ts";
import { readKey } from "../../scripts/read-key.ts";

// An error that is thrown here would be printed with its stack, and "No test files found" after it.
export default async function setup(project: TestProject): Promise<void> {
  const find = project.vite.config.mode === "smoke" ? findForSmokeTest : findForTests;
  try {
    project.provide("service", { ...(await find(process.env)), isDeployed: true });
  } catch (failure) {
    console.error((failure as Error).message);
    process.exit(1);
  }
}

/** Throws with a message for the operator. */
export async function findForTests({ SERVICE_URL = "", ...env }: NodeJS.Dict<string>) {
  const base = parseBase("SERVICE_URL", SERVICE_URL);
  if (!isForTests(base)) {
    throw new Error(`These tests leave a few hundred animals, and ${base} is not known to be for tests.
If it is staging, add its domain to STAGING_DOMAINS in scripts/environment.ts.`);
  }
  const key = await readKey("API key (not shown):", env);
  if (!key) throw new Error("These tests need a key: enter it on a terminal, or set the environment variable API_KEY.");
  const { state, line } = await askAboutKey(base, key);
  if (state !== "open") throw new Error(line);
  console.log(`${line}\nThese tests leave a few hundred animals there.`);
  return { origin: base.replace(/\/v1$/, ""), key, skipped: "" };
}

/** Throws with a message for the operator. */
async function findForSmokeTest({ SERVICE_URL = "", API_KEY = "" }: NodeJS.Dict<string>) {
  const base = parseBase("SERVICE_URL", SERVICE_URL);
  const origin = base.replace(/\/v1$/, "");
  if (!API_KEY) return { origin, key: "", skipped: " (SKIPPED: there is no API_KEY)" };
  const { state, line } = await askAboutKey(base, API_KEY);
  if (state !== "open" && state !== "closed") throw new Error(line);
  console.log(line);
  return { origin, key: API_KEY, skipped: state === "closed" ? " (SKIPPED: the service is closed)" : "" };
}
