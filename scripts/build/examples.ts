// The example of an operation in each language, in the form of the guide's: tabs, with programs that fail if anything
// does.

import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";

export interface Call {
  method: string;
  /** Relative to the base URL. */
  path: string;
  body: unknown;
  hasIdempotencyKey: boolean;
  /** Of the response to a request that succeeds. */
  status: string;
  /** How the body of that response starts; undefined if it has none. */
  start: string | undefined;
}

const USER_AGENT = `${description.info.title.toLowerCase().replaceAll(" ", "-")}-example`;

/** The programs as Markdown. `name` is common to the tabs, of which the browser keeps one open. */
export function tabs(name: string, call: Call): string {
  const tab = (title: string, language: string, program: string, open = "") =>
    `<details name="${name}"${open}><summary>${title}</summary>\n\n\`\`\`${language}\n${program}\n\`\`\`\n\n</details>`;
  return [
    "<div>",
    tab("curl", "sh", curl(call), " open"),
    tab("JavaScript", "js", javaScript(call)),
    tab("Python", "python", python(call)),
    "</div>",
  ].join("\n\n");
}

function curl({ method, path, body, hasIdempotencyKey }: Call): string {
  return [
    `curl -i --fail-with-body --max-time 30 "$ANIMAL_STORE${path}"`,
    ...(method === (body ? "POST" : "GET") ? [] : [`-X ${method}`]),
    `-H "Authorization: Bearer $API_KEY"`,
    ...(hasIdempotencyKey ? [`-H "${IDEMPOTENCY_HEADER}: $(openssl rand -hex 16)"`] : []),
    ...(body ? [`-H "Content-Type: application/json"`, `-d '${printJson(body).replaceAll("'", "'\\''")}'`] : []),
  ].join(" \\\n  ");
}

function javaScript({ method, path, body, hasIdempotencyKey, status, start }: Call): string {
  const headers = [
    `Authorization: \`Bearer \${API_KEY}\`,`,
    ...(hasIdempotencyKey ? [`"${IDEMPOTENCY_HEADER}": crypto.randomUUID(),`] : []),
    ...(body ? [`"Content-Type": "application/json",`] : []),
  ];
  return [
    "const { ANIMAL_STORE, API_KEY } = process.env;",
    `const response = await fetch(\`\${ANIMAL_STORE}${path}\`, {`,
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    "  headers: {",
    ...headers.map((header) => `    ${header}`),
    "  },",
    ...(body ? [`  body: JSON.stringify(${literal(body, 2).replaceAll(/^(\s*)"(\w+)":/gm, "$1$2:")}),`] : []),
    '  redirect: "manual",',
    "  signal: AbortSignal.timeout(30_000),",
    "});",
    "const body = await response.text();",
    `if (response.status !== ${status}${start ? ` || !body.startsWith(${quoted(start)})` : ""}) {`,
    `  throw new Error(\`\${response.status} \${response.headers.get("cf-ray")} \${body}\`);`,
    "}",
    `console.log(${start ? "JSON.parse(body)" : "response.status"});`,
  ].join("\n");
}

function python({ method, path, body, hasIdempotencyKey, status, start }: Call): string {
  const headers = [
    `"Authorization": "Bearer " + os.environ["API_KEY"],`,
    `"User-Agent": "${USER_AGENT}",`,
    ...(hasIdempotencyKey ? [`"${IDEMPOTENCY_HEADER}": str(uuid.uuid4()),`] : []),
    ...(body ? [`"Content-Type": "application/json",`] : []),
  ];
  return [
    `import json, os, urllib.request${hasIdempotencyKey ? ", uuid" : ""}`,
    "",
    "# Returns errors and redirects like every other response.",
    "class AnyStatus(urllib.request.HTTPErrorProcessor):",
    "    def http_response(self, request, response):",
    "        return response",
    "    https_response = http_response",
    "",
    "opener = urllib.request.build_opener(AnyStatus)",
    "request = urllib.request.Request(",
    `    os.environ["ANIMAL_STORE"] + "${path}",`,
    ...(method === (body ? "POST" : "GET") ? [] : [`    method="${method}",`]),
    "    headers={",
    ...headers.map((header) => `        ${header}`),
    "    },",
    ...(body ? [`    data=json.dumps(${literal(body, 4)}).encode(),`] : []),
    ")",
    "with opener.open(request, timeout=30) as response:",
    "    body = response.read().decode()",
    `if response.status != ${status}${start ? ` or not body.startswith(${quoted(start)})` : ""}:`,
    `    raise RuntimeError(f"{response.status} {response.headers['cf-ray']} {body}")`,
    `print(${start ? "json.loads(body)" : "response.status"})`,
  ].join("\n");
}

/** A text of JSON in quotes, for JavaScript and Python. */
const quoted = (text: string) => (text.includes('"') ? `'${text}'` : `"${text}"`);

/** JSON as an argument in a program that indents by `width`. */
const literal = (value: unknown, width: number) =>
  printJson(value, width)
    .replace(/\n\}$/, ",$&")
    .replaceAll("\n", `\n${" ".repeat(width)}`);
