// What serves an environment, seen from outside: the commit that its page names. The page belongs to its version, and a
// changed secret makes a version of the same commit.

import { setTimeout as wait } from "node:timers/promises";
import { VERSION_HEADER } from "../src/http/responses.ts";

// A new version takes some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds
// In a row: each new connection may reach a different machine, with a different version.
const TIMES = 5;

/** Waits until a service answers, and its page names this commit. Throws with what it names if that takes too long. */
export async function waitUntilServed(base: string, commit: string, patience = PATIENCE): Promise<void> {
  const until = Date.now() + patience;
  let times = 0;
  while (times < TIMES) {
    const serving = await servingCommit(base);
    if (serving === commit) {
      times++;
    } else {
      if (Date.now() > until) throw new Error(`${base} serves ${serving}, and not commit ${commit}.`);
      times = 0;
      await wait(1_000);
    }
  }
}

/** The commit that the page of a service names, or words if it is not known. */
export async function servingCommit(base: string): Promise<string> {
  try {
    const service = await get(`${base}/pets`);
    if (!service.headers.has(VERSION_HEADER)) return `no Worker of ours (status ${service.status})`;
    const page = await get(base.replace(/v1$/, ""));
    return /built from commit <code>([\w-]+)/.exec(await page.text())?.[1] ?? "a page without a commit";
  } catch (failure) {
    return `nothing (${(failure as Error).message})`;
  }
}

const get = (url: string): Promise<Response> =>
  fetch(url, { headers: { Connection: "close" }, redirect: "manual", signal: AbortSignal.timeout(10_000) });
