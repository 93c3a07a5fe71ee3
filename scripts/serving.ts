// What serves an environment, seen from outside: the version that answers at its address, and the commit that its page
// names, which belongs to the version.

import { setTimeout as wait } from "node:timers/promises";
import { VERSION_HEADER } from "../src/http/responses.ts";
import type { Environment } from "./environment.ts";
import { wrangler } from "./wrangler.ts";

// A new version takes some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds
// In a row: each new connection may reach a different machine, with a different version.
const TIMES = 5;

/**
 * Waits until an address answers as the version that serves, and its page names this commit, which `version` was
 * deployed with. Throws if a different deployment has replaced it, or if it does not answer so in time.
 */
export async function waitUntilServed(environment: Environment, base: string, commit: string, version: string) {
  for (const until = Date.now() + PATIENCE; ; await wait(1_000)) {
    // Asked each time, because a secret that is changed meanwhile makes a new version.
    const status = JSON.parse(await wrangler(["deployments", "status", "--json", "--env", environment]));
    const serving: string[] = status.versions.map(({ version_id }: { version_id: string }) => version_id);
    const problem = await wrongAnswer(base, serving);
    const named = problem ? "" : await commitOf(base);
    if (named === commit) return;
    if (!problem && !serving.includes(version)) {
      throw new Error(`There was a different deployment: commit ${named} serves now.
This lists who has deployed: npx wrangler deployments list --env ${environment}`);
    }
    if (Date.now() < until) continue;
    throw new Error(`${base} ${problem ?? `names commit ${named}`}, and not version ${serving} with commit ${commit}.
Is this the address of ${environment}? If not: ${setBase(environment)}`);
  }
}

/** `npm run deploy` takes SMOKE_URL for staging. */
export const setBase = (environment: Environment): string =>
  `Set SMOKE_URL to the base URL of ${environment}, and run npm run deploy:${environment}.`;

/** What is wrong with an answer, if one of several is not from these versions. */
async function wrongAnswer(base: string, versions: string[]): Promise<string | undefined> {
  for (let times = 0; times < TIMES; times++) {
    const response = await get(`${base}/pets`);
    const version = response?.headers.get(VERSION_HEADER);
    if (!version) return response ? `answers ${response.status} without a version` : "does not answer";
    if (!versions.includes(version)) return `answers as version ${version}`;
  }
  return undefined;
}

/** The commit that the page of a base URL names. */
export async function commitOf(base: string): Promise<string> {
  const page = await get(base.replace(/v1$/, ""));
  const [, commit] = /built from commit <code>([\w-]+)/.exec((await page?.text().catch(() => "")) ?? "") ?? [];
  return commit ?? "(none)";
}

/** Undefined if there is no response. */
async function get(url: string): Promise<Response | undefined> {
  const signal = AbortSignal.timeout(10_000);
  return fetch(url, { headers: { Connection: "close" }, redirect: "manual", signal }).catch(() => undefined);
}
