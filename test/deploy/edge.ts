// Serves Workers as Cloudflare's edge does: every uploaded version in the Workers runtime with its own modules, bindings
// and assets, and one address for each Worker, where its deployment decides which version answers. What takes seconds there
// takes a number of requests here, so that no test depends on a clock.

import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Miniflare, type MiniflareOptions, type WorkerOptions } from "miniflare";

export type Binding =
  | { type: "secret_text"; name: string; text: string }
  | { type: "d1"; name: string; id: string }
  | { type: "version_metadata"; name: string };

export interface Version {
  id: string;
  compatibilityDate: string;
  mainModule: string;
  /** Source texts by name. */
  modules: Record<string, string>;
  bindings: Binding[];
  assets: { files: Record<string, Buffer>; runWorkerFirst: string[] };
}

export interface Share {
  version_id: string;
  percentage: number;
}

export interface Statement {
  sql: string;
  params: unknown[];
}

export interface QueryResult {
  success: boolean;
  results: Record<string, unknown>[];
  meta: { rows_written: number };
}

/** What an address answers in turn before its Worker is known there. */
const BEFORE = [
  { status: 404, body: "There is nothing here yet" },
  { status: 404, body: "error code: 1042" },
  { status: 200, body: "<h1>There will be something here soon</h1>" },
];

/** How many requests to an address are still answered by the previous deployment. */
const LATE = 3;

interface Address {
  server: Server;
  shares: Share[];
  before: Share[];
  /** The number of them since the deployment. */
  requests: number;
}

// A Worker that is bound to every database, so that one can be queried before any other Worker is bound to it.
const HUB = `export default {
  async fetch(request, env) {
    const { database, statements } = await request.json();
    const db = env[database];
    try {
      return Response.json(await db.batch(statements.map(({ sql, params }) => db.prepare(sql).bind(...params))));
    } catch (failure) {
      return new Response(failure.message, { status: 400 });
    }
  },
}`;

export class Edge implements AsyncDisposable {
  /** Whether the version override header is honored. */
  overrides = true;
  readonly #folder = mkdtempSync(join(tmpdir(), "animal-store-edge-"));
  readonly #databases: string[] = [];
  readonly #versions = new Map<string, WorkerOptions>();
  readonly #addresses = new Map<string, Address>();
  readonly #runtime = new Miniflare(this.#options());
  #underWay = 0;
  #change = Promise.resolve();

  addDatabase(id: string): Promise<void> {
    this.#databases.push(id);
    return this.#restart();
  }

  /** Runs all statements or none. Throws with SQLite's message. */
  async query(database: string, statements: Statement[]): Promise<QueryResult[]> {
    const response = await this.#whileRunning(() =>
      this.#runtime.dispatchFetch("http://hub", { method: "POST", body: JSON.stringify({ database, statements }) }),
    );
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as QueryResult[];
  }

  addVersion(version: Version): Promise<void> {
    this.#versions.set(version.id, this.#workerOptions(version));
    return this.#restart();
  }

  /** Callers get the version with the greatest share. */
  async deploy(worker: string, shares: Share[]): Promise<void> {
    await this.address(worker);
    const address = this.#addresses.get(worker);
    if (address) Object.assign(address, { shares, before: address.shares, requests: 0 });
  }

  /** The URL where a Worker is served, or will be once it is deployed, without a slash at its end. */
  async address(worker: string): Promise<string> {
    let server = this.#addresses.get(worker)?.server;
    if (!server) {
      server = createServer((incoming, outgoing) => this.#answer(worker, incoming, outgoing));
      this.#addresses.set(worker, { server, shares: [], before: [], requests: 0 });
      await once(server.listen(0, "127.0.0.1"), "listening");
    }
    const bound = server.address();
    if (!bound || typeof bound === "string") throw new Error(`${worker} does not have a port.`);
    return `http://127.0.0.1:${bound.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { server } of this.#addresses.values()) {
      server.close();
      server.closeAllConnections();
    }
    await this.#runtime.dispose();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #options(): MiniflareOptions {
    const databases = this.#databases.map((id) => [id, { type: "d1" as const, id }]);
    const hub: WorkerOptions = {
      config: {
        name: "hub",
        compatibilityDate: "2026-10-23",
        manifest: { mainModule: "hub.js", modules: { "hub.js": { type: "esm", contents: HUB } } },
        env: Object.fromEntries(databases),
      },
    };
    const workers = [hub, ...this.#versions.values()];
    return { host: "127.0.0.1", port: 0, workers, handleStructuredLogs: () => {} };
  }

  #workerOptions({ id, compatibilityDate, mainModule, modules, bindings, assets }: Version): WorkerOptions {
    const directory = join(this.#folder, id);
    mkdirSync(directory);
    for (const [path, bytes] of Object.entries(assets.files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), bytes);
    }
    const env = bindings.map((binding) => {
      if (binding.type === "d1") return [binding.name, { type: "d1" as const, id: binding.id }];
      if (binding.type === "secret_text") return [binding.name, { type: "text" as const, value: binding.text }];
      return [binding.name, { type: "json" as const, value: { id } }];
    });
    const esModules = Object.entries(modules).map(([path, contents]) => [path, { type: "esm" as const, contents }]);
    return {
      config: {
        name: id,
        compatibilityDate,
        manifest: { mainModule, modules: Object.fromEntries(esModules) },
        env: Object.fromEntries(env),
        assets: { directory, hasUserWorker: true, runWorkerFirst: assets.runWorkerFirst },
      },
      dev: { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] },
    };
  }

  /** The runtime must restart to load a change. Requests wait meanwhile, so that none is lost. */
  #restart(): Promise<void> {
    const earlier = this.#change;
    const change = async () => {
      await earlier;
      while (this.#underWay > 0) await new Promise((done) => setTimeout(done, 5));
      await this.#runtime.setOptions(this.#options());
    };
    this.#change = change();
    return this.#change;
  }

  async #whileRunning<T>(use: () => Promise<T>): Promise<T> {
    let change: Promise<void>;
    do {
      change = this.#change;
      await change;
    } while (change !== this.#change);
    this.#underWay++;
    try {
      return await use();
    } finally {
      this.#underWay--;
    }
  }

  async #answer(worker: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      await this.#whileRunning(() => this.#pass(worker, incoming, outgoing));
    } catch {
      outgoing.destroy();
    }
  }

  async #pass(worker: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const address = this.#addresses.get(worker);
    const { shares, before, requests } = address ?? { shares: [], before: [], requests: 0 };
    if (address) address.requests++;
    const known = requests < LATE ? before : shares;
    if (known.length === 0) {
      const { status, body } = BEFORE[requests % BEFORE.length] ?? { status: 500, body: "" };
      outgoing.writeHead(status, { "Content-Type": "text/html" }).end(body);
      return;
    }
    const wanted = incoming.headers["cloudflare-workers-version-overrides"];
    const named = known.find(({ version_id }) => wanted === `${worker}="${version_id}"`);
    const [first] = known.toSorted((a, b) => b.percentage - a.percentage);
    const { version_id = "" } = (this.overrides ? named : undefined) ?? first ?? {};
    const url = new URL(incoming.url ?? "/", await this.#runtime.unsafeGetDirectURL(version_id));
    const { method, headers } = incoming;
    // A new connection each time, because the runtime closes all of them when it restarts.
    const passed = request(url.href, { agent: false, ...(method && { method }), headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.rawHeaders);
      response.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
    if (!outgoing.closed) await once(outgoing, "close");
  }
}
