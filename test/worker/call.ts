// Requests to the service as a caller sends them. What every response must have is asserted here, for every response of
// call().

import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { ErrorCode } from "../../src/http/errors.ts";
import service from "../../src/index.ts";
import {
  type Answer,
  type DescribedOperation,
  described,
  describedHeaders,
  describedOperations,
  expectDescribed,
} from "../conformance.ts";

export type { Answer } from "../conformance.ts";

/** The bindings of a service without an API key. */
export const NO_KEYS = { API_KEY: undefined, API_KEY_SECOND: undefined };

export const ORIGIN = "https://store.example";

/** Options of a request that came to Cloudflare over plain HTTP. */
export const PLAIN_HTTP = { origin: "http://store.example", headers: { "cf-ray": "9e7ef1dc58252cea" } };

export interface RequestOptions {
  /** The start of the URL, instead of ORIGIN. */
  origin?: string;
  method?: string;
  /** The `Authorization` header; null sends none. */
  authorization?: string | null;
  headers?: Record<string, string>;
  body?: BodyInit;
  /** Bindings that replace the real ones. An undefined one does not exist. */
  bindings?: { [K in keyof Env]?: Env[K] | undefined };
}

export async function call(path: string, options: RequestOptions = {}): Promise<Answer> {
  const { origin = ORIGIN, authorization = "Bearer first-key-for-tests", bindings, ...init } = options;
  const headers = new Headers(init.headers);
  if (authorization !== null) headers.set("Authorization", authorization);
  const request = new Request(origin + path, { ...init, headers });
  // All tests are one caller, so there is a rate limit only if a test sets it.
  const all = { ...env, RATE_LIMIT: undefined, ...bindings };
  const existing = Object.entries(all).filter(([, binding]) => binding !== undefined);
  const response = await service.fetch(request, Object.fromEntries(existing) as unknown as Env);
  const answer = { status: response.status, headers: response.headers, text: await response.text() };
  expectCommonHeaders(answer);
  expectDescribed(request.method, path, answer);
  return answer;
}

const DESCRIBED_HEADERS = describedHeaders.map((name) => name.toLowerCase());

function expectCommonHeaders({ status, headers }: Answer): void {
  expect(Object.fromEntries(headers)).toMatchObject({
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "*",
    "cache-control": "no-store",
    "worker-version": "unknown",
    "x-content-type-options": "nosniff",
  });
  expect(headers.get("Content-Type")).toBe(status === 204 ? null : "application/json");
  const known = /^(access-control-.*|cache-control|content-type|x-content-type-options)$/;
  expect([...headers.keys()].filter((name) => !known.test(name) && !DESCRIBED_HEADERS.includes(name))).toEqual([]);
}

/** createPet with `body`: text, bytes and streams are sent unchanged, anything else as JSON. */
export function createPet(body: unknown, { headers, ...options }: RequestOptions = {}): Promise<Answer> {
  const raw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  return call("/v1/pets", {
    method: "POST",
    body: raw ? body : JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
    ...options,
  });
}

/** Calls each described operation, by its name, with the id 1 and the example body. */
export const EXAMPLE_CALLS = Object.fromEntries(
  describedOperations.map((operation) => [
    operation.operationId,
    (options: RequestOptions) => call(...requestTo(operation, options)),
  ]),
);

/** The path and options of a request for a described operation. */
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

const listed = described("listPets").responses[200]?.content["application/json"];
const examples = listed?.example as Record<string, unknown>[];

/** The pets of the description's example, without their ids. They have every property and differ in each. */
export const [REX = {}, ADA = {}] = examples.map(({ id: _, ...pet }) => pet);

/** All white space and line terminators of ECMA-262, sections 12.2 and 12.3. */
export const WHITE_SPACE =
  "\t\n\v\f\r " +
  "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

/** The status and the message of each error. Where messages differ, tests give them. */
const ERRORS: Record<ErrorCode, [status: number, message: string]> = {
  invalid_request: [400, expect.any(String)],
  api_key_missing: [401, "An API key is required: send it as Authorization: Bearer <API_KEY>."],
  api_key_invalid: [401, "The API key is not valid."],
  plain_http: [
    403,
    "Send requests over https: a key that is sent over plain HTTP can be read on the way. Ask the operator for a new " +
      "one.",
  ],
  id_not_found: [404, "No animal has this id."],
  path_not_found: [404, "There is nothing at this path. Try /v1/pets, or see the guide at /."],
  method_not_allowed: [405, expect.any(String)],
  operation_removed: [
    410,
    "getPet was removed on 2030-12-05. Use GET /v1/pets instead, with the query parameter id or status.",
  ],
  body_too_large: [413, "The body must be at most 16384 bytes."],
  unsupported_media_type: [
    415,
    "The body must be sent as Content-Type: application/json and without a Content-Encoding.",
  ],
  idempotency_key_used: [
    422,
    "This Idempotency-Key was already used for a different animal. To retry, send that animal again; to add this " +
      "one, use a new key.",
  ],
  rate_limited: [429, "Your rate limit is exceeded, and this request was not carried out; try again later."],
  internal_error: [
    500,
    "The service failed. Report the failure to the operator with the value of the response header cf-ray.",
  ],
  outcome_unknown: [
    500,
    "The service failed, and what you sent may have been added: look for it before you send it again. To make " +
      "retries safe, send an Idempotency-Key with the first request.",
  ],
  store_unavailable: [503, "The store is temporarily unavailable; try again."],
  closed: [503, "The service is closed for maintenance, and this request was not carried out; try again later."],
};

/** Asserts the status and the whole Error body. */
export function expectError(answer: Answer, code: ErrorCode, message = ERRORS[code][1]): void {
  const [status] = ERRORS[code];
  expect(JSON.parse(answer.text)).toEqual({ code, message, status });
  expect(answer.status).toBe(status);
}

/** Asserts the status and the whole body of a success. Compares text, because a parsed int64 is rounded. */
export function expectBody({ status, text }: Answer, expected: number, body: string): void {
  expect(text).toBe(body);
  expect(status).toBe(expected);
}

/** Inserts a row directly into the database. An int64 is given in decimal digits. */
export async function insertRow(
  id: string,
  { name = "Rex", categoryId = "1", status = "available" } = {},
): Promise<void> {
  await env.DB.prepare("INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)")
    .bind(id, name, categoryId, status)
    .run();
}

/** Inserts animals with the ids from 1 to `count`, one third of which have each status: 1 is available, 2 pending. */
export async function insertRows(count: number): Promise<void> {
  const sql = `
    WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ?1)
    INSERT INTO pets (id, name, category_id, status)
    SELECT id, 'Rex', 1, json_extract('["sold", "available", "pending"]', format('$[%d]', id % 3)) FROM ids`;
  await env.DB.prepare(sql).bind(count).run();
}

/** Lets a test change or remove the animals that are stored now, as an operator would. */
export async function noteCorrections(): Promise<void> {
  await env.DB.exec("INSERT INTO corrections (pet_id, reason) SELECT id, 'A test' FROM pets");
}

export async function countPets(): Promise<unknown> {
  return env.DB.prepare("SELECT count(*) AS count FROM pets").first("count");
}
