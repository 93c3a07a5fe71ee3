// An operator with a copy of the project and an account (cloudflare.ts), who deploys one environment; and callers, who send
// requests meanwhile.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "../command.ts";
import { copyProject, removeProject } from "../http/dev-server.ts";
import { type Cloudflare, startCloudflare } from "./cloudflare.ts";

interface Deployed {
  status: number | null;
  output: string;
}

/** A deployment that may still run. */
export interface Deployment {
  /** Waits until the output has `text`. */
  says(text: string): Promise<void>;
  /** What Ctrl-C does. */
  interrupt(): void;
  ended: Promise<Deployed>;
}

export interface Operator extends AsyncDisposable {
  cloudflare: Cloudflare;
  folder: string;
  /** Of the environment's Worker; no slash at the end. */
  base: string;
  /** The versions of the current deployment. */
  serving(): { version_id: string; percentage: number }[] | undefined;
  write(file: string, text: string): void;
  start(flags?: string[], env?: NodeJS.Dict<string>): Deployment;
  deploy(flags?: string[], env?: NodeJS.Dict<string>): Promise<Deployed>;
}

export async function startOperator(environment: string, worker: string): Promise<Operator> {
  const cloudflare = await startCloudflare();
  const folder = copyProject();
  const base = `${await cloudflare.edge.address(worker)}/v1`;

  function start(flags: string[] = [], env: NodeJS.Dict<string> = {}): Deployment {
    const child = launch("npm", ["run", `deploy:${environment}`, "--", ...flags], folder, {
      API_KEY: undefined,
      ...cloudflare.env,
      SMOKE_URL: base,
      // Wrangler starts often, and is big.
      NODE_COMPILE_CACHE: join(tmpdir(), "animal-store-compile-cache"),
      ...env,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
    const says = (text: string) =>
      new Promise<void>((resolve, reject) => {
        const look = () => output.includes(text) && resolve();
        child.stdout.on("data", look);
        child.once("close", () => reject(new Error(`It ended without "${text}":\n${output}`)));
        look();
      });
    return {
      says,
      interrupt: () => child.pid && process.kill(-child.pid, "SIGINT"),
      ended: once(child, "close").then(([status]) => ({ status, output })),
    };
  }

  return {
    cloudflare,
    folder,
    base,
    serving: () => cloudflare.workers.get(worker)?.deployments[0]?.versions,
    write: (file, text) => writeFileSync(join(folder, file), text),
    start,
    deploy: (flags, env) => start(flags, env).ended,
    [Symbol.asyncDispose]: async () => {
      await cloudflare[Symbol.asyncDispose]();
      removeProject(folder);
    },
  };
}

/** Lists with the key, over and over, until it is stopped, which gives the different answers that there were. */
export function callers(base: string, key: string): { stop(): Promise<{ status: number; version: string | null }[]> } {
  const seen = new Map<string, { status: number; version: string | null }>();
  let stopped = false;
  const call = async () => {
    while (!stopped) {
      const { status, headers } = await fetch(`${base}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
      const answer = { status, version: headers.get("Worker-Version") };
      seen.set(JSON.stringify(answer), answer);
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  const all = Promise.all([call(), call()]);
  return {
    stop: async () => {
      stopped = true;
      await all;
      return [...seen.values()];
    },
  };
}
