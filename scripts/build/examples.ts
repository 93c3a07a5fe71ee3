// The example of an operation in each language: programs like the guide's, which fail if anything does. One that
// creates starts with its Idempotency-Key, and prints it: so it can be run again without adding a second animal.

import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { printJson } from "../../src/values/json.ts";

export interface Call {
  method: string;
  /** Relative to the base URL. */
  path: string;
  body: unknown;
  hasIdempotencyKey: boolean;
  /** Of the response to a request that succeeds. */
  status: string;
  /** How the body of that response starts. Undefined if it has none. */
  start: string | undefined;
}

/** The programs as Markdown. */
export function examples(call: Call): string {
  const programs = { sh: curl(call), js: javaScript(call), python: python(call) };
  return Object.entries(programs)
    .map(([language, program]) => `\`\`\`${language}\n${program}\n\`\`\``)
    .join("\n\n");
}

function curl({ method, path, body, hasIdempotencyKey }: Call): string {
  const key = `key=$(openssl rand -hex 16)\necho "${IDEMPOTENCY_HEADER}: $key" >&2\n`;
  const command = [
    "curl -i --fail-with-body --max-time 30",
    `-w '\\n' "$ANIMAL_STORE${path}"`,
    ...(method === (body ? "POST" : "GET") ? [] : [`-X ${method}`]),
    `-H "Authorization: Bearer $API_KEY"`,
    // Without the line of the key, this ends the command: an empty header would be left out.
    ...(hasIdempotencyKey ? [`-H "${IDEMPOTENCY_HEADER}: \${key:?}"`] : []),
    ...(body ? [`-H "Content-Type: application/json"`, `-d '${printJson(body, 2).replaceAll("'", "'\\''")}'`] : []),
  ].join(" \\\n  ");
  return hasIdempotencyKey ? key + command : command;
}

function javaScript({ method, path, body, hasIdempotencyKey, status, start }: Call): string {
  const pattern = start && `/^\\${start}.*\\${start.startsWith("[") ? "]" : "}"}$/s`;
  return [
    ...(hasIdempotencyKey
      ? ["const key = crypto.randomUUID();", `console.error(\`${IDEMPOTENCY_HEADER}: \${key}\`);`, ""]
      : []),
    "const { ANIMAL_STORE, API_KEY } = process.env;",
    `const response = await fetch(\`\${ANIMAL_STORE}${path}\`, {`,
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    "  headers: {",
    `    Authorization: \`Bearer \${API_KEY}\`,`,
    ...(hasIdempotencyKey ? [`    "${IDEMPOTENCY_HEADER}": key,`] : []),
    ...(body ? ['    "Content-Type": "application/json",'] : []),
    "  },",
    ...(body ? [`  body: JSON.stringify(${literal(body, 2).replaceAll(/^(\s*)"(\w+)":/gm, "$1$2:")}),`] : []),
    '  redirect: "manual",',
    "  signal: AbortSignal.timeout(30_000),",
    "});",
    "const { status, headers } = response;",
    "const body = await response.text();",
    `if (status !== ${status}${pattern ? ` || !${pattern}.test(body)` : ""}) {`,
    `  throw new Error(\`\${status} \${headers.get("cf-ray")} \${body}\`);`,
    "}",
    ...(start
      ? ['// Text is exact. To parse it exactly, see "Large integers".', "console.log(body);"]
      : ["console.log(status);"]),
  ].join("\n");
}

function python({ method, path, body, hasIdempotencyKey, status, start }: Call): string {
  return [
    `import os, requests${hasIdempotencyKey ? ", sys, uuid" : ""}`,
    "",
    ...(hasIdempotencyKey
      ? ["key = str(uuid.uuid4())", `print("${IDEMPOTENCY_HEADER}:", key, file=sys.stderr)`, ""]
      : []),
    `response = requests.${method.toLowerCase()}(`,
    `    os.environ["ANIMAL_STORE"] + "${path}",`,
    "    headers={",
    '        "Authorization": "Bearer " + os.environ["API_KEY"],',
    ...(hasIdempotencyKey ? [`        "${IDEMPOTENCY_HEADER}": key,`] : []),
    "    },",
    ...(body ? [`    json=${literal(body, 4)},`] : []),
    "    allow_redirects=False,",
    "    timeout=30,",
    ")",
    "status, body = response.status_code, response.text",
    `if status != ${status}${start ? ` or not body.startswith('${start}')` : ""}:`,
    '    ray = response.headers.get("cf-ray")',
    '    raise RuntimeError(f"{status} {ray} {body}")',
    `print(${start ? "response.json()" : "status"})`,
  ].join("\n");
}

/** JSON as an argument in a program that indents by `width`. */
const literal = (value: unknown, width: number) =>
  printJson(value, width)
    .replace(/\n\}$/, ",$&")
    .replaceAll("\n", `\n${" ".repeat(width)}`);
