// The traffic of a Worker: which versions get which share of the requests, as Wrangler writes it: `1234@100% 5678@0%`. Cloudflare
// lists a version at 0%, too, and changes the traffic whatever it is, so it is read immediately before each change.

import { retry } from "../wrangler.ts";

/** Runs a Wrangler command for one environment. */
export type Run = (...args: string[]) => Promise<string>;

/** The traffic, with the greatest share first. Throws WranglerFailed. */
export async function readTraffic(run: Run): Promise<string> {
  const deployment: { versions: { version_id: string; percentage: number }[] } = JSON.parse(
    await run("deployments", "status", "--json"),
  );
  const versions = deployment.versions.toSorted((a, b) => b.percentage - a.percentage);
  return versions.map(({ version_id, percentage }) => `${version_id}@${percentage}%`).join(" ");
}

/** Returns the traffic, which must be one of `expected`. Throws an Error if somebody else has changed it, and WranglerFailed. */
export async function expectTraffic(run: Run, expected: string[]): Promise<string> {
  const now = await readTraffic(run);
  if (expected.includes(now)) return now;
  throw new Error(`Somebody else has changed the traffic or a secret. The traffic is now ${now}`);
}

/**
 * Changes the traffic from one of `from` to `to`. Tries several times, because that does no harm: an answer can get lost, and then
 * reading shows whether the change took effect. `pause`: as for retry(). Throws an Error if the traffic is none of these,
 * what `signal` throws, and WranglerFailed.
 */
export async function changeTraffic(run: Run, from: string[], to: string, pause: number, signal?: AbortSignal) {
  const change = async () => {
    if ((await expectTraffic(run, [...from, to])) === to) return;
    signal?.throwIfAborted();
    // A version that is not named gets no requests.
    await run("versions", "deploy", ...to.split(" "), "-y");
  };
  await retry(change, pause);
  console.log(`Traffic: ${to}`);
}
