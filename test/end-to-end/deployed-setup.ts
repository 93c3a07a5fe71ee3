// A deployed service for the tests over HTTP (`npm run test:deployed`). No test runs if it does not answer or does not
// have the key, or if its address is not known to be for tests, because the tests leave animals there.

import type { TestProject } from "vitest/node";
import { exit } from "../../scripts/command-line.ts";
import { ask, isTerminal, readKey } from "../../scripts/deploy/key.ts";
import { INTERVAL } from "../../scripts/deploy/poll.ts";
import { parseBase, smoke, THIS_MACHINE, toMessage } from "../../scripts/deploy/smoke.ts";
import { environmentNames, readEnvironment } from "../../scripts/environment.ts";

export default async function setup(project: TestProject): Promise<void> {
  const { SMOKE_URL } = process.env;
  const address = SMOKE_URL || (isTerminal() ? await ask("Base URL of staging, which ends in /v1:") : "");
  const service = await findService(address, readKey).catch(({ message }: Error) =>
    exit(`${message}\nThen: npm run test:deployed`, 1),
  );
  console.log(`These tests leave some 500 animals in ${service.origin}`);
  project.provide("service", service);
}

/** Throws with a message for the operator. */
export async function findService(address: string, readKey: () => Promise<string>) {
  const base = parseBase("The base URL", address);
  if (!isForTests(new URL(base).hostname)) {
    throw new Error(`These tests leave animals behind, and ${base} is not known to be for tests. Give an address of this
machine, or a host whose first label has the word staging, such as staging.example.com or api-staging.example.com.`);
  }
  const key = await readKey();
  const limits = { interval: INTERVAL, patience: 15_000 };
  await smoke({ base, key }, limits).catch((failure: Error) => {
    throw new Error(toMessage(failure));
  });
  return { origin: base.replace(/\/v1$/, ""), key, isDeployed: true };
}

function isForTests(host: string): boolean {
  if (THIS_MACHINE.test(host)) return true;
  const [label = ""] = host.split(".");
  const others = environmentNames().filter((name) => name !== "staging");
  return /\bstaging\b/.test(label) && !others.some((name) => label.includes(readEnvironment(name).worker));
}
