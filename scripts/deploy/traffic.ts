// A Worker's traffic: its current deployment gives each version a percentage of the requests.

import type { Environment } from "../environment.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";

export interface Share {
  version_id: string;
  percentage: number;
}

const WORKER_NOT_FOUND = [10007, 10090]; // Cloudflare's codes; which one depends on the endpoint

/** The current deployment, or undefined if the Worker does not exist yet. Throws WranglerFailed. */
export async function currentTraffic({ name }: Environment): Promise<Share[] | undefined> {
  try {
    const { output } = await wrangler(["deployments", "status", "--json", "--env", name], { quiet: true });
    return (JSON.parse(output) as { versions: Share[] }).versions;
  } catch (failure) {
    if (failure instanceof WranglerFailed && WORKER_NOT_FOUND.includes(failure.code ?? 0)) return undefined;
    throw failure;
  }
}

/** Gives each version its percentage of the requests, and every other version none. Throws WranglerFailed. */
export async function setTraffic({ name }: Environment, percentages: Record<string, number>): Promise<void> {
  const specs = Object.entries(percentages).map(([version, percentage]) => `${version}@${percentage}`);
  await wrangler(["versions", "deploy", ...specs, "-y", "--env", name], { quiet: true });
  console.log(`Traffic: ${specs.join(" %, ")} %`);
}

/** Which versions serve, in words. */
export async function describeTraffic(environment: Environment): Promise<string> {
  try {
    const shares = await currentTraffic(environment);
    if (!shares) return "the Worker does not exist";
    const [only, ...others] = shares;
    if (only && others.length === 0) return `version ${only.version_id} serves all requests`;
    return shares.map(({ version_id, percentage }) => `version ${version_id} serves ${percentage} %`).join(", ");
  } catch {
    return `could not read which version serves (npx wrangler deployments status --env ${environment.name})`;
  }
}
