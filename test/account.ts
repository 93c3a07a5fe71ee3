// An account with one Worker, in this process: it replaces Wrangler's runner, and serves what was deployed. Its versions
// answer what the smoke test expects, and no more. cloudflare.ts is for the real Wrangler.

import type { IncomingMessage } from "node:http";
import { WranglerFailed } from "../scripts/wrangler.ts";
import { CHALLENGE, INVALID_TOKEN } from "../src/http/authentication.ts";
import { DEPRECATION_HEADERS } from "../src/pets/deprecation.ts";
import { startServer } from "./server.ts";

type Canned = [status: number, body: string, headers?: Record<string, string>];

export type Account = Awaited<ReturnType<typeof startAccount>>;

/** Its version `current` serves. The next one is `new`. */
export async function startAccount() {
  const { origin, close } = await startServer((request, response) => {
    const [status, body, headers] = serve(request);
    response.writeHead(status, headers).end(body);
  });

  function serve({ method, url = "", headers }: IncomingMessage): Canned {
    const [, wanted = ""] =
      /^animal-store-staging="(.+)"$/.exec(String(headers["cloudflare-workers-version-overrides"])) ?? [];
    const [first = ""] = account.traffic?.split("@") ?? [];
    const version = account.traffic?.includes(wanted) ? wanted || first : first;
    const request = `${method} ${url.replace(/^\/v1/, "")}`;
    account.onMoment(request);
    const [status, body, others] = account.onRequest(version, request) ?? answerOf(request, headers);
    return [status, body, { "Worker-Version": version, ...others }];
  }

  const account = {
    base: `${origin}/v1`,
    /** As Wrangler writes it, with the greatest share first. Undefined if the Worker does not exist. */
    traffic: "current@100%" as string | undefined,
    /** The traffic as Cloudflare describes it, in an order that is not documented. */
    versions() {
      const shares = account.traffic?.split(" ").map((share) => share.split("@")) ?? [];
      return shares.reverse().map(([version_id, share = ""]) => ({ version_id, percentage: parseFloat(share) }));
    },
    /** The names of the Worker's secrets. */
    secrets: ["API_KEY", "API_KEY_ALICE"],
    /** The Wrangler commands that were run. */
    commands: [] as string[],
    /** Called before each command and each request. What it throws, the command throws. */
    onMoment: (_moment: string): void => {},
    /** Called after each command. What it throws, the command throws. */
    onDone: (_command: string): void => {},
    /** Called for each request. Replaces the answer of the version. */
    onRequest: (_version: string, _request: string): Canned | undefined => undefined,
    async run(...args: string[]): Promise<string> {
      const command = args.filter((arg) => !/^-/.test(arg)).join(" ");
      account.commands.push(command);
      account.onMoment(command);
      const output = execute(command);
      account.onDone(command);
      return output;
    },
    [Symbol.asyncDispose]: async () => close(),
  };

  function execute(command: string): string {
    if (!account.traffic) throw new WranglerFailed(command, "This Worker does not exist. [code: 10090]");
    if (command === "deployments status") return JSON.stringify({ versions: account.versions() });
    if (command === "versions upload") return "Total Upload: 1 KiB\nWorker Version ID: new\nUploaded";
    if (command === "secret list")
      return JSON.stringify(account.secrets.map((name) => ({ name, type: "secret_text" })));
    if (command.startsWith("versions deploy ")) account.traffic = command.replace("versions deploy ", "");
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

function answerOf(request: string, headers: IncomingMessage["headers"]): Canned {
  const { authorization, "content-type": type } = headers;
  if (!authorization) return error(401, "unauthorized", CHALLENGE);
  if (authorization !== "Bearer key") return error(401, "unauthorized", INVALID_TOKEN);
  if (type === "text/plain") return error(415, "unsupported_media_type");
  if (request === "POST /pets") return error(400, "bad_request");
  if (request === "GET /nothing") return error(404, "not_found");
  if (request === "GET /pets/7") return [200, PET, DEPRECATION_HEADERS];
  return [200, `[${PET}]`, { Link: '<http://localhost/v1/pets?limit=1&after=7>; rel="next"' }];
}
