// The cost of the service relative to the floor: Worker time per request, in one isolate and on one database. The runtime is
// workerd alone, because what `wrangler dev` adds to it costs more than what is measured.

import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { end, launch, run } from "../command.ts";
import { KEY } from "../http/dev-server.ts";
import { compare } from "./compare.ts";
import { ANIMALS, type Command, OPERATIONS, type Subject } from "./operations.ts";
import { project } from "./runtime.ts";

// The Worker uses only the class of DB, to create a D1 client for its own database.
const configuration = (compatibilityDate: string) => `
using Workerd = import "/workerd/workerd.capnp";
const worker :Workerd.Worker = (
  modules = [(name = "index.js", esModule = embed "built/index.js")],
  compatibilityDate = "${compatibilityDate}",
  bindings = [
    (name = "API_KEY", text = "${KEY.Authorization.replace("Bearer ", "")}"),
    (name = "VERSION", json = "{\\"id\\": \\"bench\\"}"),
    (name = "STORE", durableObjectNamespace = "Store"),
    (name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [(name = "fetcher", service = "bench")])),
  ],
  durableObjectNamespaces = [(className = "Store", uniqueKey = "store", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
const config :Workerd.Config = (
  services = [(name = "bench", worker = .worker), (name = "disk", disk = (path = "built", writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "bench")],
);
`;

const FILL = `
  WITH RECURSIVE animal (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM animal WHERE id < ${ANIMALS})
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % 90, iif(id % 2, 'available', 'pending') FROM animal`;

export async function overhead(): Promise<void> {
  await using copy = project();
  await run("wrangler", ["deploy", "--dry-run", "--outdir", "built", "test/bench/worker/index.ts"], copy.folder);
  const [, date = ""] = /^compatibility_date = "(.+)"$/m.exec(readFileSync("wrangler.toml", "utf8")) ?? [];
  writeFileSync(join(copy.folder, "bench.capnp"), configuration(date));
  const workerd = launch("workerd", ["serve", "bench.capnp", "--control-fd=1"], copy.folder);
  workerd.stderr.pipe(process.stderr);
  const [started] = (await once(createInterface(workerd.stdout), "line")) as [string];
  const { port } = JSON.parse(started) as { port: number };
  const send = async (command: Command) => {
    const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: JSON.stringify(command) });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${JSON.stringify(command)} failed:\n${answer}`);
    return answer;
  };
  for (const file of globSync("migrations/*.sql").sort()) await send({ sql: readFileSync(file, "utf8") });
  await send({ sql: FILL });

  const cases = Object.entries(OPERATIONS).map(([operation, { goal, calls }]) => {
    const timeOf = async (subject: Subject) => {
      const before = performance.now();
      await send({ subject, operation, calls });
      return ((performance.now() - before) * 1000) / calls;
    };
    const measure = async (subject: Subject) => {
      // A first, discarded run fills the caches.
      await timeOf(subject);
      return (await timeOf(subject)) - (await timeOf("none"));
    };
    return [operation, { goal, measure }];
  });
  for (const operation of Object.keys(OPERATIONS)) {
    const answerOf = (subject: Subject) => send({ subject, operation, calls: 1 });
    assert.equal(
      await answerOf("service"),
      await answerOf("floor"),
      `${operation}: the floor gives a different response`,
    );
  }
  console.log("\nWorker time per request in µs, D1's client included");
  await compare("at most", Object.fromEntries(cases), 41);
  await end(workerd);
}
