// A Worker's traffic: its current deployment gives each version a percentage of the requests.

import type { Environment } from "../environment.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";

/** The percentage of each version, by its id. */
export type Traffic = Record<string, number>;

const WORKER_NOT_FOUND = /\[code:\s(10007|10090)\]/; // which one depends on the endpoint

/** Returns undefined if the Worker does not exist yet. Throws WranglerFailed. */
export async function currentTraffic({ name }: Environment): Promise<Traffic | undefined> {
  try {
    const status = await wrangler(["deployments", "status", "--json", "--env", name]);
    const { versions }: { versions: { version_id: string; percentage: number }[] } = JSON.parse(status);
    return Object.fromEntries(versions.map(({ version_id, percentage }) => [version_id, percentage]));
  } catch (failure) {
    if (failure instanceof WranglerFailed && WORKER_NOT_FOUND.test(failure.message)) return undefined;
    throw failure;
  }
}

/** Every version that is not named gets no requests. Throws WranglerFailed. */
export async function setTraffic({ name }: Environment, traffic: Traffic): Promise<void> {
  const specs = Object.entries(traffic).map(([version, percentage]) => `${version}@${percentage}`);
  await wrangler(["versions", "deploy", ...specs, "-y", "--env", name]);
  console.log(`Traffic: ${specs.join("%, ")}%`);
}

/** Which versions serve, in words. */
export async function describeTraffic(environment: Environment): Promise<string> {
  try {
    const traffic = await currentTraffic(environment);
    if (!traffic) return "the Worker does not exist";
    const parts = Object.entries(traffic).map(([version, percentage]) => `version ${version} serves ${percentage}%`);
    return `${parts.join(", ")} of the requests`;
  } catch {
    return `could not read which version serves (npx wrangler deployments status --env ${environment.name})`;
  }
}
