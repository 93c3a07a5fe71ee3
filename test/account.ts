// An account with the Worker of staging and its trial Worker, in this process: it replaces Wrangler's runner, and
// serves what was deployed. Its versions answer what the smoke test expects, and no more. cloudflare.ts is for the real
// Wrangler.

import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { ADA, REX } from "../scripts/deploy/smoke.ts";
import { type Options, WranglerFailed } from "../scripts/wrangler.ts";
import { CHALLENGE, INVALID_TOKEN } from "../src/http/authentication.ts";
import { DEPRECATION_HEADERS } from "../src/pets/deprecation.ts";
import { startServer } from "./server.ts";

type Canned = [status: number, body: string, headers?: Record<string, string>];

/** The sections of wrangler.toml that the account has Workers for. */
export type Section = "staging" | "staging-trial";

export type Account = Awaited<ReturnType<typeof startAccount>>;

/** The id of the version that was uploaded as the n-th. */
export const versionId = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** Staging serves the version `current`, and the trial Worker does not exist yet. */
export async function startAccount() {
  const start = (section: Section) =>
    startServer(async (request, response) => {
      const [status, body, headers] = serve(section, request, await text(request));
      response.writeHead(status, headers).end(body);
    });
  const servers = { staging: await start("staging"), "staging-trial": await start("staging-trial") };

  function serve(section: Section, { method, url = "", headers }: IncomingMessage, sent: string): Canned {
    const version = account.live[section]?.split(" ")[0] ?? "";
    const request = `${method} ${url.replace(/^\/v1/, "")}`;
    account.onMoment(request);
    const [status, body, others] = account.onRequest(version, request, sent) ?? answerOf(request, headers, sent);
    return [status, body, { "Worker-Version": version, ...others }];
  }

  const account = {
    base: `${servers.staging.origin}/v1`,
    trialBase: `${servers["staging-trial"].origin}/v1`,
    /** The versions that the Workers serve, the first with the greatest share. Undefined if one does not exist. */
    live: { staging: "current", "staging-trial": undefined } as Record<Section, string | undefined>,
    /** The same as Cloudflare describes it, in an order that is not documented. */
    versions(section: Section) {
      const [first = "", ...others] = account.live[section]?.split(" ") ?? [];
      const shares = others.map((version_id) => ({ version_id, percentage: 10 }));
      return [...shares, { version_id: first, percentage: 100 - 10 * others.length }];
    },
    /** The key of the trial Worker. */
    trialKey: "",
    /** The names of the secrets of staging's Worker. */
    secrets: ["API_KEY", "API_KEY_ALICE"],
    /** How many versions were uploaded. */
    uploaded: 0,
    /** The Wrangler commands that were run. */
    commands: [] as string[],
    /** Called before each command and each request that a version gets. What it throws, the command throws. */
    onMoment: (_moment: string): unknown => undefined,
    /** Called after each command. What it throws, the command throws. */
    onDone: (_command: string): void => {},
    /** Called for each request. Replaces the answer of the version. */
    onRequest: (_version: string, _request: string, _body: string): Canned | undefined => undefined,
    /** Runs a Wrangler command. */
    async run(args: string[], { env, warn }: Options = {}): Promise<string> {
      const position = args.indexOf("--env");
      const section = args[position + 1] as Section;
      const command = [...args.slice(0, position).filter((arg) => !arg.startsWith("-")), section].join(" ");
      account.commands.push(command);
      account.onMoment(command);
      const output = execute(command, section, args, env);
      if (command.startsWith("deploy ")) warn?.(`a warning about ${section}`);
      account.onDone(command);
      return output;
    },
    [Symbol.asyncDispose]: async () => {
      for (const { close } of Object.values(servers)) close();
    },
  };

  function execute(command: string, section: Section, args: string[], env: NodeJS.Dict<string> = {}): string {
    if (command.startsWith("deploy ")) {
      const version = versionId(++account.uploaded);
      const [, secrets] = args.slice(args.indexOf("--secrets-file"));
      if (section === "staging-trial") account.trialKey = JSON.parse(readFileSync(String(secrets), "utf8")).API_KEY;
      account.live[section] = version;
      const record = { type: "deploy", version_id: version, targets: [servers[section].origin] };
      writeFileSync(String(env["WRANGLER_OUTPUT_FILE_PATH"]), `{"type":"session"}\n${JSON.stringify(record)}\n`);
      return "";
    }
    if (!account.live[section])
      throw new WranglerFailed(command, `Worker "animal-store-${section}" (env: ${section}) not found.`);
    if (command.startsWith("deployments status")) return JSON.stringify({ versions: account.versions(section) });
    if (command.startsWith("secret list")) return JSON.stringify(account.secrets.map((name) => ({ name })));
    if (command.startsWith("d1 time-travel info")) return '{"bookmark":"a bookmark"}';
    if (command.startsWith("d1 execute")) {
      const isCount = String(args.at(-1)).startsWith("SELECT count");
      return JSON.stringify([{ results: isCount ? [{ rows: 2 }] : [{ drop: "DROP", name: "pets" }] }]);
    }
    return "";
  }
  return account;
}

const error = (status: number, code: string, headers: Record<string, string> = {}): Canned => [
  status,
  `{"code":"${code}"}`,
  headers,
];

/** What a good version answers that has two animals. Every key but `wrong` is valid. */
function answerOf(request: string, headers: IncomingMessage["headers"], body: string): Canned {
  const { authorization, "content-type": type, "idempotency-key": key } = headers;
  if (!authorization) return error(401, "unauthorized", { "WWW-Authenticate": CHALLENGE });
  if (authorization === "Bearer wrong") return error(401, "unauthorized", { "WWW-Authenticate": INVALID_TOKEN });
  if (type === "text/plain") return error(415, "unsupported_media_type");
  if (request === "GET /nothing") return error(404, "not_found");
  if (request === "GET /pets/1") return [200, REX, DEPRECATION_HEADERS];
  if (request === "POST /pets") {
    if (key === "rex" && body.includes("Rex")) return [201, REX, { Location: "/v1/pets/1" }];
    if (key === "ada" && body.includes("Ada")) return [201, ADA, { Location: "/v1/pets/2" }];
    return key ? error(422, "unprocessable_content") : error(400, "bad_request");
  }
  if (request === "GET /pets?status=pending") return [200, "[]"];
  if (/(after=1|status=sold)$/.test(request)) return [200, `[${ADA}]`];
  return [200, `[${REX}]`, { Link: '<http://localhost/v1/pets?limit=1&after=1>; rel="next"' }];
}
