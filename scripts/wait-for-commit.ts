// What serves an environment, seen from outside: each response names the commit that was compiled into the code.

import { setTimeout as wait } from "node:timers/promises";
import { VERSION_HEADER } from "../src/http/responses.ts";

// A new version takes some seconds to be known everywhere. More than 90 were reported.
export const PATIENCE = 180_000; // milliseconds
// In a row: each new connection may reach a different machine, with a different version.
const TIMES = 5;

/** Whether a text is the beginning of a hash: plain `wrangler deploy` has none, and anything may answer. */
export const isCommit = (text: string): boolean => /^[0-9a-f]{12,40}$/.test(text);

/** Waits until a service answers as this commit, in milliseconds. Throws with what serves instead after that. */
export async function waitUntilServed(base: string, commit: string, patience = PATIENCE): Promise<void> {
  const until = Date.now() + patience;
  let times = 0;
  while (times < TIMES) {
    const serving = await servingCommit(base);
    times = serving === commit ? times + 1 : 0;
    if (times > 0) continue;
    if (Date.now() > until) throw new Error(`${base} serves ${serving}, and not commit ${commit}.`);
    await wait(1_000);
  }
}

/** The commit that a service names, or words that begin with "an unknown commit". */
export async function servingCommit(base: string): Promise<string> {
  try {
    const headers = { Connection: "close" };
    const response = await fetch(base, { headers, redirect: "manual", signal: AbortSignal.timeout(10_000) });
    const commit = response.headers.get(VERSION_HEADER) ?? "";
    return isCommit(commit) ? commit : `an unknown commit (status ${response.status})`;
  } catch (failure) {
    return `an unknown commit (${(failure as Error).message})`;
  }
}
