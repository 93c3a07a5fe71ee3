// A Worker's traffic: its current deployment gives each version a percentage of the requests.

import { WranglerFailed, type wrangler } from "../wrangler.ts";

/** The percentage of each version, by its id. */
export type Traffic = Record<string, number>;

const WORKER_NOT_FOUND = /\[code:\s(10007|10090)\]/; // which one depends on the endpoint

/** Returns undefined if the Worker does not exist yet. Throws WranglerFailed. */
export async function readTraffic(environment: string, run: typeof wrangler): Promise<Traffic | undefined> {
  try {
    const status = await run(["deployments", "status", "--json", "--env", environment]);
    const { versions }: { versions: { version_id: string; percentage: number }[] } = JSON.parse(status);
    return Object.fromEntries(versions.map(({ version_id, percentage }) => [version_id, percentage]));
  } catch (failure) {
    if (failure instanceof WranglerFailed && WORKER_NOT_FOUND.test(failure.message)) return undefined;
    throw failure;
  }
}

/** Every version that is not named gets no requests. Throws WranglerFailed. */
export async function setTraffic(traffic: Traffic, environment: string, run: typeof wrangler): Promise<void> {
  await run(["versions", "deploy", ...specs(traffic), "-y", "--env", environment]);
  console.log(`Traffic: ${specs(traffic).join(", ")}`);
}

/** The traffic as Wrangler's commands name it, such as 1234@100%. */
export function specs(traffic: Traffic): string[] {
  return Object.entries(traffic).map(([version, percentage]) => `${version}@${percentage}%`);
}
