// Holds a response against the published description, by a validator that is not the service's. Every response
// that a test sees goes through here, so that the two cannot drift apart.

import { type Schema, Validator } from "@cfworker/json-schema";
import description from "../dist/site/openapi.json" with { type: "json" };

type Described = { required?: boolean; schema: { type?: string; $ref?: string } };
interface DescribedResponse {
  headers?: Record<string, Described>;
  content: Record<string, Described & { example?: unknown }>;
}
type Operation = { operationId: string; responses: Record<string, DescribedResponse> };

export interface Seen {
  status: number;
  headers: Headers;
  text: string;
}

const { paths, components }: { paths: Record<string, Record<string, Operation>>; components: object } = description;

export const operations = Object.values(paths).flatMap((operations) => Object.values(operations));
const responses = operations.flatMap((operation) => Object.values(operation.responses));
/** The names of all headers that are described anywhere. */
const HEADERS = [...new Set(responses.flatMap(({ headers }) => Object.keys(headers ?? {})))];

/** Where the path is not described: no key, no such path, no secret. */
const ELSEWHERE = [401, 404, 500];

/** Throws unless the description has this response to a request for `path`, with or without a query. */
export function expectDescribed(method: string, path: string, seen: Seen): void {
  if (method === "OPTIONS") return; // preflight: a matter of the Fetch standard, not of the description
  const described = responseTo(method, path, seen.status);
  const problems = described
    ? [...headerProblems(described, seen.headers), ...bodyProblems(described, method, seen)]
    : ["this status is not described"];
  if (problems.length > 0) {
    throw new Error(`${method} ${path} was answered ${seen.status} ${seen.text}: ${problems.join("; ")}`);
  }
}

function responseTo(method: string, path: string, status: number): DescribedResponse | undefined {
  const { pathname } = new URL(path, "https://store.example");
  const [, pathItem] = Object.entries(paths).find(([template]) => matches(template, pathname)) ?? [];
  if (!pathItem) {
    const response = operations.find(({ responses }) => responses[status])?.responses[status];
    return ELSEWHERE.includes(status) && response
      ? { ...response, headers: only(response, "WWW-Authenticate") }
      : undefined;
  }
  const [anyOperation] = Object.values(pathItem);
  const operation = pathItem[method === "HEAD" ? "get" : method.toLowerCase()] ?? anyOperation;
  return operation?.responses[status];
}

const matches = (template: string, pathname: string) =>
  RegExp(`^/v1${template.replace(/\{\w+\}/, "[^/]+")}$`).test(pathname);

const only = ({ headers = {} }: DescribedResponse, name: string) => (headers[name] ? { [name]: headers[name] } : {});

function headerProblems({ headers = {} }: DescribedResponse, seen: Headers): string[] {
  return HEADERS.flatMap((name) => {
    const value = seen.get(name);
    const described = headers[name];
    if (value === null) return described?.required ? [`${name} is missing`] : [];
    if (!described) return [`${name} is not described`];
    const { type } = described.schema;
    return schemaProblems(described.schema, type === "integer" ? Number(value) : value).map(
      (problem) => `${name}: ${problem}`,
    );
  });
}

function bodyProblems({ content }: DescribedResponse, method: string, { headers, text }: Seen): string[] {
  const media = content[headers.get("Content-Type") ?? ""];
  if (!media) return [`the media type ${headers.get("Content-Type")} is not described`];
  if (method === "HEAD") return text === "" ? [] : ["HEAD has a body"];
  return schemaProblems(media.schema, JSON.parse(text));
}

function schemaProblems(schema: object, value: unknown): string[] {
  const root: Schema = { ...schema, components };
  const { errors } = new Validator(root, "2020-12", false).validate(value);
  return errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`);
}
