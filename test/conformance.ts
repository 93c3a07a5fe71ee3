// Validates responses against the published description, with a validator that the service does not use. Every response
// that a test gets through worker/call.ts or end-to-end/send.ts goes through here, so the two cannot drift apart.

import { type Schema, Validator } from "@cfworker/json-schema";
import { description, operations } from "../src/description.ts";
import { pathErrors } from "../src/openapi/components.ts";
import { printJson } from "../src/values/json.ts";

/** What JSON.parse makes of it: bigints become numbers. */
type Parsed<T> = T extends bigint ? number : T extends object ? { [Key in keyof T]: Parsed<T[Key]> } : T;

/** With its path, its method and its responses, none of which is a reference. */
export type DescribedOperation = Parsed<(typeof operations)[number]>;

type DescribedResponse = DescribedOperation["responses"][string];

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

const published: Parsed<typeof description> = JSON.parse(printJson(description));

export const describedOperations: DescribedOperation[] = JSON.parse(printJson(operations));

const describedPathErrors: DescribedOperation["responses"] = JSON.parse(printJson(pathErrors));

export function described(id: string): DescribedOperation {
  const operation = describedOperations.find(({ operationId }) => operationId === id);
  if (!operation) throw new Error(`${id} is not described.`);
  return operation;
}

/** The names of all response headers that are described anywhere. */
export const describedHeaders = [
  ...new Set(
    [...describedOperations.map(({ responses }) => responses), describedPathErrors].flatMap((responses) =>
      Object.values(responses).flatMap(({ headers }) => Object.keys(headers)),
    ),
  ),
];

export function componentOf({ $ref = "" }: Schema): Schema {
  const component = published.components.schemas[$ref.replace("#/components/schemas/", "")];
  if (!component) throw new Error(`${$ref} is not a component`);
  return component;
}

/** Throws unless the description has this response to a request for `path`, which may have a query. */
export function expectDescribed(method: string, path: string, answer: Answer): void {
  if (method === "OPTIONS") return; // a preflight belongs to the Fetch standard, not to the description
  const response = responseTo(method, path, answer.status);
  const problems = response
    ? [...headerProblems(response, answer.headers), ...bodyProblems(response, method, answer)]
    : ["this status is not described"];
  if (problems.length > 0) {
    throw new Error(`${method} ${path} was answered ${answer.status} ${answer.text}: ${problems.join("; ")}`);
  }
}

function responseTo(method: string, path: string, status: number): DescribedResponse | undefined {
  const { pathname } = new URL(path, "https://store.example");
  const requested = describedOperations.find(
    (operation) => matches(operation.path, pathname) && operation.method === (method === "HEAD" ? "GET" : method),
  );
  if (requested) return requested.responses[status];
  // Any other request gets an error that all operations have, or one of its path.
  const isShared = [401, 403, 429, 500, 503].includes(status);
  return isShared ? describedOperations[0]?.responses[status] : describedPathErrors[status];
}

const matches = (template: string, pathname: string) =>
  RegExp(`^/v1${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(pathname);

function headerProblems(response: DescribedResponse, headers: Headers): string[] {
  return describedHeaders.flatMap((name) => {
    const value = headers.get(name);
    const header = response.headers[name];
    if (value === null) return header?.required ? [`${name} is missing`] : [];
    if (!header) return [`${name} is not described`];
    const problems = schemaProblems(header.schema, header.schema.type === "integer" ? Number(value) : value);
    return problems.map((problem) => `${name}: ${problem}`);
  });
}

function bodyProblems({ content }: DescribedResponse, method: string, { status, headers, text }: Answer): string[] {
  const type = headers.get("Content-Type");
  if (type !== "application/json") return [`the media type ${type} is not described`];
  if (method === "HEAD") return text === "" ? [] : ["HEAD has a body"];
  const { schema, examples = {} } = content["application/json"];
  const value: Record<string, unknown> = JSON.parse(text);
  const problems = schemaProblems(schema, value);
  // The schema does not limit the codes of errors, but each has an example.
  const isError = schema.$ref === "#/components/schemas/Error";
  const isKnown = String(value["code"]) in examples && value["status"] === status;
  if (isError && !isKnown) problems.push("its code or status is not one of the response");
  return problems;
}

function schemaProblems(schema: Schema, value: unknown): string[] {
  const { errors } = new Validator({ ...schema, components: published.components }, "2020-12", false).validate(value);
  return errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`);
}
