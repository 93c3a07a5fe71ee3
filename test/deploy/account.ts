// An account with one Worker, in this process: it replaces Wrangler's runner, and serves what was deployed. Its versions
// answer what the smoke test expects, and no more. cloudflare.ts is for the real Wrangler.

import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";

type Canned = [status: number, body: string, headers?: Record<string, string>];

export type Account = Awaited<ReturnType<typeof startAccount>>;

/** Its version "current" has the key `key`. */
export async function startAccount() {
  const server = createServer((request, response) => {
    const [status, body, headers] = serve(request);
    response.writeHead(status, headers).end(body);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();

  function serve({ method, url = "", headers }: IncomingMessage): Canned {
    const traffic = account.traffic ?? {};
    const [, wanted = ""] = /="(.+)"/.exec(String(headers["cloudflare-workers-version-overrides"])) ?? [];
    const [first = ""] = Object.keys(traffic).sort((a, b) => (traffic[b] ?? 0) - (traffic[a] ?? 0));
    const version = account.overrides && wanted in traffic ? wanted : first;
    const [, key] = headers.authorization?.split(" ") ?? [];
    const request = `${method} ${url.replace(/^\/v1/, "")}`;
    const known = account.versions.get(version) ?? [];
    const [status, body, others] = account.onRequest(version, request) ?? answerOf(request, headers, known, key);
    return [status, body, { "Worker-Version": version, ...others }];
  }

  /** The keys of the newest version stay, unless it gets others. */
  function upload(args: string[], env: NodeJS.Dict<string>): string {
    const id = account.versions.has("new") ? `new${account.versions.size}` : "new";
    account.versions.set(id, env["API_KEY"]?.split(",") ?? [...account.versions.values()].at(-1) ?? []);
    account.messages.set(id, args.find((arg) => arg.startsWith("--message="))?.replace("--message=", "") ?? "");
    return id;
  }

  const account = {
    base: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`,
    databases: [{ name: "animal-store-staging" }],
    /** The percentage of each version. Undefined if the Worker does not exist. */
    traffic: { current: 100 } as Record<string, number> | undefined,
    /** The keys of each version. */
    versions: new Map([["current", ["key"]]]),
    /** Those of versions that have one. */
    messages: new Map<string, string>(),
    /** Whether a deployment lists a version at 0%. */
    listsZero: true,
    /** Whether the version override header is honored. */
    overrides: true,
    /** The Wrangler commands that were run, without their flags. */
    commands: [] as string[],
    /** Called before each command. What it throws, the command throws. */
    onCommand: (_command: string): void => {},
    /** Called for each request. Replaces the answer of the version. */
    onRequest: (_version: string, _request: string): Canned | undefined => undefined,
    async run(args: string[], env: NodeJS.Dict<string> = {}) {
      const command = args.filter((arg) => !/^(-|staging$)/.test(arg)).join(" ");
      account.commands.push(command);
      account.onCommand(command);
      switch (args.slice(0, 2).join(" ")) {
        case "deployments status": {
          if (!account.traffic) throw new WranglerFailed(command, "This Worker does not exist. [code: 10090]");
          const shares = Object.entries(account.traffic).filter(([, share]) => share > 0 || account.listsZero);
          return JSON.stringify({ versions: shares.map(([version_id, percentage]) => ({ version_id, percentage })) });
        }
        case "versions list":
          return JSON.stringify(
            [...account.versions.keys()].map((id) => ({
              id,
              annotations: { "workers/message": account.messages.get(id) },
            })),
          );
        case "d1 list":
          return JSON.stringify(account.databases);
        case "deploy --env": {
          const id = upload(args, env);
          account.traffic = { [id]: 100 };
          return `Current Version ID: ${id}`;
        }
        case "versions upload":
          return `Worker Version ID: ${upload(args, env)}`;
        case "rollback current":
          account.traffic = { current: 100 };
          break;
        case "versions deploy":
          account.traffic = Object.fromEntries(
            args
              .map((arg) => arg.split("@"))
              .flatMap(([id, share]) => (share ? [[id, Number.parseInt(share, 10)]] : [])),
          );
      }
      return "";
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return account;
}

export const PET = `{"id":1,"name":"Smoke test","categoryId":9223372036854775807,"status":"sold"}`;
const error = (status: number, code: string, challenge = ""): Canned => [
  status,
  `{"code":"${code}"}`,
  { "WWW-Authenticate": challenge },
];

function answerOf(request: string, headers: IncomingMessage["headers"], keys: string[], key = ""): Canned {
  if (!key) return error(401, "unauthorized", CHALLENGE);
  if (!keys.includes(key)) return error(401, "unauthorized", INVALID_TOKEN);
  if (headers["idempotency-key"]) return [201, PET, { Location: "/v1/pets/1" }];
  if (headers["content-type"] === "text/plain") return error(415, "unsupported_media_type");
  if (request === "POST /pets" || request === "GET /pets?limit=101") return error(400, "bad_request");
  if (request === "GET /nothing") return error(404, "not_found");
  return request === "GET /pets/1" ? [200, PET, { Sunset: DEPRECATION_HEADERS.Sunset }] : [200, `[${PET}]`];
}
