// A Worker's traffic: its current deployment gives each version a percentage of the requests.

import type { Environment } from "../environment.ts";
import { WranglerFailed, type wrangler } from "../wrangler.ts";

/** The percentage of each version, by its id. */
export type Traffic = Record<string, number>;

const WORKER_NOT_FOUND = /\[code:\s(10007|10090)\]/; // which one depends on the endpoint

export function trafficOf({ name }: Environment, run: typeof wrangler) {
  /** Returns undefined if the Worker does not exist yet. Throws WranglerFailed. */
  async function read(): Promise<Traffic | undefined> {
    try {
      const status = await run(["deployments", "status", "--json", "--env", name]);
      const { versions }: { versions: { version_id: string; percentage: number }[] } = JSON.parse(status);
      return Object.fromEntries(versions.map(({ version_id, percentage }) => [version_id, percentage]));
    } catch (failure) {
      if (failure instanceof WranglerFailed && WORKER_NOT_FOUND.test(failure.message)) return undefined;
      throw failure;
    }
  }

  /** Every version that is not named gets no requests. Throws WranglerFailed. */
  async function set(traffic: Traffic): Promise<void> {
    const specs = Object.entries(traffic).map(([version, percentage]) => `${version}@${percentage}`);
    await run(["versions", "deploy", ...specs, "-y", "--env", name]);
    console.log(`Traffic: ${specs.join("%, ")}%`);
  }

  /** Which versions serve, in words. */
  async function describe(): Promise<string> {
    try {
      const traffic = await read();
      if (!traffic) return "the Worker does not exist";
      const parts = Object.entries(traffic).map(([version, percentage]) => `version ${version} serves ${percentage}%`);
      return `${parts.join(", ")} of the requests`;
    } catch {
      return `could not read which version serves (npx wrangler deployments status --env ${name})`;
    }
  }

  return { read, set, describe };
}
