// A deployed service for the tests over HTTP (`npm run test:deployed`). No test runs if it does not answer or does not have the
// key, or if it is production, because the tests leave animals there.

import type { TestProject } from "vitest/node";
import { exit } from "../../scripts/command-line.ts";
import { INTERVAL } from "../../scripts/deploy/poll.ts";
import { parseBase, parseKey, smoke } from "../../scripts/deploy/smoke.ts";
import { readEnvironment } from "../../scripts/environment.ts";

export default async function setup(project: TestProject): Promise<void> {
  const service = await findService(process.env).catch(({ message }: Error) => exit(message, 1));
  console.log(`These tests leave some 500 animals, and are meant for staging: ${service.origin}`);
  project.provide("service", service);
}

/** Throws with a message for the operator. */
export async function findService({ SMOKE_URL = "", API_KEY }: NodeJS.Dict<string>) {
  const base = parseBase("SMOKE_URL", SMOKE_URL);
  const key = parseKey(API_KEY);
  if (base.includes(readEnvironment("production").worker)) {
    throw new Error(
      `${base} is production, and these tests leave animals behind. Set SMOKE_URL to staging's base URL.`,
    );
  }
  const limits = { interval: INTERVAL, patience: 15_000 };
  await smoke({ base }, key, limits);
  return { origin: base.replace(/\/v1$/, ""), key, isDeployed: true };
}
