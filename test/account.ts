// An account with the Worker of staging and its trial Worker, in this process: it replaces Wrangler's runner, and
// serves what was deployed. Its versions answer what the smoke test expects, and no more. cloudflare.ts is for the real
// Wrangler.

import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { TRIAL_HEADER } from "../scripts/deploy/gate.ts";
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
  const servers = {
    staging: await startServer((request, response) => {
      const [status, body, headers] = serve("staging", request);
      response.writeHead(status, headers).end(body);
    }),
    "staging-trial": await startServer((request, response) => {
      const isOpen = request.headers[TRIAL_HEADER.toLowerCase()] === account.trialKey;
      const [status, body, headers] = isOpen ? serve("staging-trial", request) : [404, ""];
      response.writeHead(status, headers).end(body);
    }),
  };

  function serve(section: Section, { method, url = "", headers }: IncomingMessage): Canned {
    const [version = ""] = account.live[section]?.split("@") ?? [];
    const request = `${method} ${url.replace(/^\/v1/, "")}`;
    account.onMoment(section === "staging" ? request : `trial ${request}`);
    const [status, body, others] = account.onRequest(version, request) ?? answerOf(request, headers);
    return [status, body, { "Worker-Version": version, ...others }];
  }

  const account = {
    base: `${servers.staging.origin}/v1`,
    trialBase: `${servers["staging-trial"].origin}/v1`,
    /**
     * What the Workers serve, as Wrangler writes it, with the greatest share first. Undefined if one does not exist.
     */
    live: { staging: "current@100%", "staging-trial": undefined } as Record<Section, string | undefined>,
    /** The same as Cloudflare describes it, in an order that is not documented. */
    versions(section: Section) {
      const shares = account.live[section]?.split(" ").map((share) => share.split("@")) ?? [];
      return shares.reverse().map(([version_id, share = ""]) => ({ version_id, percentage: parseFloat(share) }));
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
    onRequest: (_version: string, _request: string): Canned | undefined => undefined,
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
      account.live[section] = `${version}@100%`;
      const record = { type: "deploy", version_id: version, targets: [servers[section].origin] };
      writeFileSync(String(env["WRANGLER_OUTPUT_FILE_PATH"]), `{"type":"session"}\n${JSON.stringify(record)}\n`);
      return "";
    }
    if (!account.live[section])
      throw new WranglerFailed(command, `Worker "animal-store-${section}" (env: ${section}) not found.`);
    if (command.startsWith("deployments status")) return JSON.stringify({ versions: account.versions(section) });
    if (command.startsWith("secret list")) return JSON.stringify(account.secrets.map((name) => ({ name })));
    if (command.startsWith("d1 time-travel info")) return '{"bookmark":"a bookmark"}';
    return "";
  }
  return account;
}

const PET = '{"id":7,"name":"Rex","categoryId":1,"status":"sold"}';
const error = (status: number, code: string, challenge = ""): Canned => [
  status,
  `{"code":"${code}"}`,
  { "WWW-Authenticate": challenge, ...(status === 404 && DEPRECATION_HEADERS) },
];

/** What a good version answers. Every key but `wrong` is valid. */
function answerOf(request: string, headers: IncomingMessage["headers"]): Canned {
  const { authorization, "content-type": type } = headers;
  if (!authorization) return error(401, "unauthorized", CHALLENGE);
  if (authorization === "Bearer wrong") return error(401, "unauthorized", INVALID_TOKEN);
  if (type === "text/plain") return error(415, "unsupported_media_type");
  if (request === "POST /pets") return error(400, "bad_request");
  if (request === "GET /nothing") return error(404, "not_found");
  if (request === "GET /pets/7") return [200, PET, DEPRECATION_HEADERS];
  return [200, `[${PET}]`, { Link: '<http://localhost/v1/pets?limit=1&after=7>; rel="next"' }];
}
