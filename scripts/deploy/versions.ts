// A Worker's versions, as Cloudflare lists them: the percentage of the traffic that each one gets, and its message. The message
// records how many keys the version has, and whether they are new, because a secret cannot be read.

import { WranglerFailed, type wrangler } from "../wrangler.ts";

/** Each version with its percentage, as Wrangler's commands name it, such as 1234@100%. */
export type Traffic = string[];

/** Returns undefined if the Worker does not exist yet. Throws WranglerFailed. */
export async function readTraffic(environment: string, run: typeof wrangler): Promise<Traffic | undefined> {
  try {
    const status = await run(["deployments", "status", "--json", "--env", environment]);
    const { versions }: { versions: { version_id: string; percentage: number }[] } = JSON.parse(status);
    return versions.map(({ version_id, percentage }) => `${version_id}@${percentage}%`);
  } catch (failure) {
    // Which of the codes depends on the endpoint.
    if (failure instanceof WranglerFailed && /\[code:\s(10007|10090)\]/.test(failure.message)) return undefined;
    throw failure;
  }
}

/** The start of a version's message. `changed`: how many new keys it has, or 0. `kept`: how many it keeps, or 0 if that is not known. */
export function keysMark(changed: number, kept: number): string {
  return changed ? `[new keys: ${changed}] ` : kept ? `[keys: ${kept}] ` : "";
}

/**
 * How many keys the version `current` has (0 if that is not known). `isPending`: whether a version that was uploaded later changes the
 * keys, because the next upload inherits those. Wrangler lists the ten newest versions. Throws WranglerFailed.
 */
export async function readKeyHistory(current: string, environment: string, run: typeof wrangler) {
  const list = await run(["versions", "list", "--json", "--env", environment]);
  const versions: { id: string; annotations?: Record<string, string> }[] = JSON.parse(list);
  // Oldest first.
  const marks = versions.map(({ annotations = {} }) =>
    annotations["workers/triggered_by"] === "secret" ? "[new keys]" : (annotations["workers/message"] ?? ""),
  );
  const position = versions.findIndex(({ id }) => id === current);
  const [, count = 0] = /^\[(?:new )?keys: (\d+)\]/.exec(marks[position] ?? "") ?? [];
  return { count: Number(count), isPending: marks.slice(position + 1).some((mark) => mark.startsWith("[new keys")) };
}
