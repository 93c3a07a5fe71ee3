// An operator with a copy of the project and an account (cloudflare.ts) who deploys one environment, and callers who send
// requests meanwhile.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "../command.ts";
import { copyProject, removeProject } from "../http/dev-server.ts";
import { type Cloudflare, startCloudflare } from "./cloudflare.ts";

interface Ended {
  status: number | null;
  output: string;
}

/** A command that may still be running. */
export interface Running {
  /** Waits until the output contains `text`. */
  says(text: string): Promise<void>;
  /** Does what Ctrl-C does. */
  interrupt(): void;
  ended: Promise<Ended>;
}

export interface Operator extends AsyncDisposable {
  cloudflare: Cloudflare;
  folder: string;
  /** The base URL of the environment's Worker. */
  base: string;
  /** The versions of the current deployment. */
  serving(): { version_id: string; percentage: number }[] | undefined;
  /** The status that a request with this key gets. */
  statusWith(key: string): Promise<number>;
  write(file: string, text: string): void;
  /** Runs a command in the folder, with the account. */
  run(command: string, args: string[], env?: NodeJS.Dict<string>): Promise<Ended>;
  /** Starts a deployment without npm, which would take as long again to start. */
  start(flags?: string[], env?: NodeJS.Dict<string>): Running;
  deploy(flags?: string[], env?: NodeJS.Dict<string>): Promise<Ended>;
}

export async function startOperator(environment: string, worker: string): Promise<Operator> {
  const cloudflare = await startCloudflare();
  const folder = copyProject();
  const base = `${await cloudflare.edge.address(worker)}/v1`;

  function begin(command: string, args: string[], env: NodeJS.Dict<string> = {}): Running {
    const child = launch(command, args, folder, {
      API_KEY: undefined,
      ...cloudflare.env,
      SMOKE_URL: base,
      // Nothing here takes the seconds that Cloudflare takes.
      POLL_INTERVAL: "20",
      // Wrangler is large, and starts often.
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
  const start: Operator["start"] = (flags = [], env = {}) =>
    begin(process.execPath, ["scripts/deploy/deploy.ts", environment, ...flags], env);

  return {
    cloudflare,
    folder,
    base,
    serving: () => cloudflare.workers.get(worker)?.deployments[0]?.versions,
    statusWith: async (key) => (await fetch(`${base}/pets`, { headers: { Authorization: `Bearer ${key}` } })).status,
    write: (file, text) => writeFileSync(join(folder, file), text),
    run: (command, args, env) => begin(command, args, env).ended,
    start,
    deploy: (flags, env) => start(flags, env).ended,
    [Symbol.asyncDispose]: async () => {
      await cloudflare[Symbol.asyncDispose]();
      removeProject(folder);
    },
  };
}

/** Lists pets with the key until stopped, then returns the distinct answers. */
export function callers(base: string, key: string): { stop(): Promise<{ status: number; version: string | null }[]> } {
  const seen = new Map<string, { status: number; version: string | null }>();
  let stopped = false;
  const call = async () => {
    while (!stopped) {
      const { status, headers } = await fetch(`${base}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
      const answer = { status, version: headers.get("Worker-Version") };
      seen.set(JSON.stringify(answer), answer);
      await new Promise((done) => setTimeout(done, 100));
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
