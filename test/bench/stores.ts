// The Node side of the Worker that calls handlers by the hundred: databases of animals in Durable Objects, and batches
// of calls, timed here, outside the runtime. The runtime is workerd alone, because what `wrangler dev` puts around it
// costs more than what is measured.

import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch, run } from "../command.ts";
import { KEY, removeProject } from "../http/dev-server.ts";
import type { Call, Command, Operation, Rows } from "./batch.ts";
import { project } from "./runtime.ts";
import { progress } from "./terminal.ts";

// So many that a batch takes tens of milliseconds, beside which the one request that asks for it is little.
const CALLS: Record<Operation, number> = { first: 100, deep: 100, filtered: 50, rare: 100, get: 200, create: 100 };

// DB is there for its class alone, of which the Worker makes clients of its own databases.
const configuration = (date: string) => `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "bench", worker = (
      modules = [(name = "index.js", esModule = embed "built/index.js")],
      compatibilityDate = "${date}",
      bindings = [
        (name = "API_KEY", text = "${KEY.Authorization.replace("Bearer ", "")}"),
        (name = "STORES", durableObjectNamespace = "Store"),
        (name = "DB", wrapped = (
          moduleName = "cloudflare-internal:d1-api",
          innerBindings = [(name = "fetcher", service = "bench")],
        )),
      ],
      durableObjectNamespaces = [(className = "Store", uniqueKey = "store", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),
    )),
    (name = "disk", disk = (path = "built", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "bench")],
);
`;

export interface Stores extends AsyncDisposable {
  answer(call: Call): Promise<string>;
  rows(call: Call): Promise<Rows>;
  /** The Worker time of a call in microseconds, without what it takes to make the request and to call a handler. */
  time(call: Call): Promise<number>;
}

/** One database of each size, filled. */
export async function startStores(sizes: number[]): Promise<Stores> {
  progress("starting the runtime");
  const runtime = await startWorkerd();
  const send = async (command: Command) => {
    const response = await fetch(runtime.origin, { method: "POST", body: JSON.stringify(command) });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${JSON.stringify(command)} failed:\n${answer}`);
    return answer;
  };
  const runBatch = (call: Call) => send({ do: "run", ...call, calls: CALLS[call.operation] });
  const timeOf = async (call: Call) => {
    const before = performance.now();
    await runBatch(call);
    return ((performance.now() - before) * 1000) / CALLS[call.operation];
  };
  const migrations = globSync("migrations/*.sql").sort();
  const schema = migrations.map((file) => readFileSync(file, "utf8")).join("\n");
  for (const size of sizes) {
    progress(`filling a database with ${size.toLocaleString("en")} animals`);
    await send({ do: "fill", size, schema });
  }
  return {
    answer: (call) => send({ do: "answer", ...call }),
    rows: async (call) => JSON.parse(await runBatch(call)) as Rows,
    time: async (call) => {
      // Once for nothing: what ran before has left the caches full of other pages.
      await runBatch(call);
      return (await timeOf(call)) - (await timeOf({ ...call, subject: "none" }));
    },
    [Symbol.asyncDispose]: runtime.stop,
  };
}

async function startWorkerd(): Promise<{ origin: string; stop(): Promise<void> }> {
  const folder = project();
  await run("wrangler", ["deploy", "--dry-run", "--outdir", "built", "test/bench/worker/index.ts"], folder);
  const [, date = ""] = /^compatibility_date = "(.+)"$/m.exec(readFileSync("wrangler.toml", "utf8")) ?? [];
  writeFileSync(join(folder, "bench.capnp"), configuration(date));
  const workerd = launch("workerd", ["serve", "bench.capnp", "--control-fd=1"], folder);
  workerd.stderr.pipe(process.stderr);
  const [event] = (await once(createInterface(workerd.stdout), "line")) as [string];
  const { port } = JSON.parse(event) as { port: number };
  const stop = async () => {
    const ended = once(workerd, "exit");
    workerd.kill();
    await ended;
    removeProject(folder);
  };
  return { origin: `http://127.0.0.1:${port}`, stop };
}
