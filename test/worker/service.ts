// Requests to the service as a caller sends them. What every response must carry is asserted here, and so on every
// response that any test sees.

import { env } from "cloudflare:workers";
import { expect } from "vitest";
import service from "../../src/index.ts";
import { type Answer, type DescribedOperation, expectDescribed, operations } from "../conformance.ts";

export type { Answer } from "../conformance.ts";

export const ORIGIN = "https://store.example";

export interface RequestOptions {
  /** `ORIGIN` where it is left out. */
  origin?: string;
  method?: string;
  /** The `Authorization` header; null sends none. */
  authorization?: string | null;
  headers?: Record<string, string>;
  body?: BodyInit;
  /** Bindings in place of the real ones. */
  bindings?: { [K in keyof Env]?: Env[K] | undefined };
}

export async function call(path: string, options: RequestOptions = {}): Promise<Answer> {
  const { origin = ORIGIN, authorization = "Bearer first-key", bindings, ...init } = options;
  const headers = new Headers(init.headers);
  if (authorization !== null) headers.set("Authorization", authorization);
  const request = new Request(origin + path, { ...init, headers });
  const response = await service.fetch(request, { ...env, ...bindings } as Env);
  const answer = { status: response.status, headers: response.headers, text: await response.text() };
  expectCommonHeaders(answer);
  expectDescribed(request.method, path, answer);
  return answer;
}

function expectCommonHeaders({ status, headers }: Answer): void {
  expect(Object.fromEntries(headers)).toMatchObject({
    "access-control-allow-origin": "*",
    "access-control-expose-headers":
      "Accept-Encoding, Allow, Deprecation, Link, Location, Retry-After, Sunset, WWW-Authenticate, Worker-Version, x-d1-bookmark",
    "cache-control": "no-store",
    "worker-version": env.VERSION.id,
    "x-content-type-options": "nosniff",
  });
  expect(headers.get("Content-Type")).toBe(status === 204 ? null : "application/json");
}

/** createPet with `body`: JSON text or bytes as they are, anything else as JSON. */
export function createPet(body: unknown, { headers, ...options }: RequestOptions = {}): Promise<Answer> {
  const raw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  return call("/v1/pets", {
    method: "POST",
    body: raw ? body : JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
    ...options,
  });
}

/** Every operation that is described, by its name, with a request that it can answer: identifiers are 1, a body is its example. */
export const OPERATIONS = Object.fromEntries(
  operations.map((operation) => [
    operation.operationId,
    (options: RequestOptions) => call(...requestTo(operation, options)),
  ]),
);

/** The path and the options of a request to a described operation. */
export function requestTo(
  { path, method, requestBody }: DescribedOperation,
  { headers, ...options }: RequestOptions = {},
): [path: string, options: RequestOptions] {
  const body = requestBody && {
    body: JSON.stringify(requestBody.content["application/json"].example),
    headers: { "Content-Type": "application/json", ...headers },
  };
  return [`/v1${path.replaceAll(/\{\w+\}/g, "1")}`, { method, ...(headers && { headers }), ...body, ...options }];
}

/** Asserts the status and the whole Error body. */
export function expectError({ status, text }: Answer, expected: { code: string; message: string; status: number }) {
  expect(JSON.parse(text)).toEqual(expected);
  expect(status).toBe(expected.status);
}

export const badRequest = (message: string) => ({ code: "bad_request", message, status: 400 });

export const UNAVAILABLE = {
  code: "service_unavailable",
  message: "The store cannot be reached at the moment; try again.",
  status: 503,
};

/** Asserts a success: its status and its whole body, compared as text because a parsed int64 is rounded. */
export function expectBody({ status, text }: Answer, expected: number, body: string): void {
  expect(text).toBe(body);
  expect(status).toBe(expected);
}

/** Puts a row straight into the database; int64 in decimal digits. */
export async function insertPet(
  id: string,
  { name = "Rex", categoryId = "1", status = "available" } = {},
): Promise<void> {
  await env.DB.prepare("INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)")
    .bind(id, name, categoryId, status)
    .run();
}

export async function countPets(): Promise<unknown> {
  return env.DB.prepare("SELECT count(*) AS count FROM pets").first("count");
}
