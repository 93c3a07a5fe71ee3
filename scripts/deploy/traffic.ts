// Which versions of a Worker the callers meet: its current deployment, in which each version has a share of them.

import type { Environment } from "../environment.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";

export interface Share {
  version_id: string;
  percentage: number;
}

const NO_SUCH_WORKER = 10007; // Cloudflare's code

/** Undefined where there is no such Worker yet. */
export async function currentShares({ name }: Environment): Promise<Share[] | undefined> {
  try {
    const { output } = await wrangler(["deployments", "status", "--json", "--env", name], { quiet: true });
    return (JSON.parse(output) as { versions: Share[] }).versions;
  } catch (failure) {
    if (failure instanceof WranglerFailed && failure.code === NO_SUCH_WORKER) return undefined;
    throw failure;
  }
}

/** Gives each version its percentage of the callers, and every other version none. */
export async function setShares({ name }: Environment, percentages: Record<string, number>): Promise<void> {
  const specs = Object.entries(percentages).map(([version, percentage]) => `${version}@${percentage}`);
  await wrangler(["versions", "deploy", ...specs, "-y", "--env", name], { quiet: true });
  console.log(`Shares of the callers: ${specs.join(" %, ")} %`);
}

/** Which version serves, in words. */
export async function whatServes(environment: Environment): Promise<string> {
  try {
    const shares = await currentShares(environment);
    if (!shares) return "there is no such Worker, so nothing serves";
    const [only, ...others] = shares;
    if (only && others.length === 0) return `version ${only.version_id} serves, alone`;
    return shares.map(({ version_id, percentage }) => `version ${version_id} serves ${percentage} %`).join(", ");
  } catch {
    return `which version serves could not be read (npx wrangler deployments status --env ${environment.name})`;
  }
}
