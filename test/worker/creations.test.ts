// Common rules for every operation that adds something: it accepts an Idempotency-Key and retries with it, stores every
// property, and compares every property under a key. A list at the same path returns what it added. The description's examples
// differ in every property.

import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { componentOf, type DescribedOperation, operations } from "../conformance.ts";
import { intercepted } from "./binding.ts";
import { call, type RequestOptions, requestTo } from "./service.ts";

type Resource = Record<string, unknown>;

/** The examples of the list at the path of `creation`, without their ids. */
function examplesOf(creation: DescribedOperation): Resource[] {
  const list = operations.find(({ path, method }) => path === creation.path && method === "GET");
  const examples = list?.responses[200]?.content?.["application/json"].example;
  return Array.isArray(examples) ? examples.map(withoutId) : [];
}

const withoutId = ({ id: _, ...others }: Resource): Resource => others;

const creations = operations
  .filter(({ responses }) => responses[201])
  .map((creation) => {
    const add = (resource: Resource, key: string, options: RequestOptions = {}) =>
      call(...requestTo(creation, { ...options, body: JSON.stringify(resource), headers: { "Idempotency-Key": key } }));
    return { ...creation, examples: examplesOf(creation), add };
  });

describe.each(creations)("$operationId", ({ path, add, examples, ...creation }) => {
  const [first = {}, second = {}] = examples;
  const optional = Object.keys(first).filter((name) => !requiredOf(creation).includes(name));

  it("is described with an Idempotency-Key", () => {
    expect(creation.parameters.map(({ name }) => name)).toContain("Idempotency-Key");
  });

  it("has two examples, which differ in every property", () => {
    expect(examples.length).toBe(2);
    for (const name of Object.keys(first)) expect(second[name]).not.toEqual(first[name]);
  });

  it.each(examples)("stores every property of %j", async (resource) => {
    const { status, headers, text } = await add(resource, "key");
    expect(status).toBe(201);
    expect(JSON.parse(text)).toEqual({ id: 1, ...resource });
    expect(JSON.parse((await call(`/v1${path}`)).text)).toEqual([{ id: 1, ...resource }]);
    expect(headers.get("Location")).toBe(`/v1${path}/1`);
    expect(await add(resource, "key")).toMatchObject({ status: 201, text });
  });

  it("is retried with its key when D1 fails transiently", async () => {
    vi.spyOn(scheduler, "wait").mockResolvedValue();
    let tries = 0;
    const DB = intercepted(env.DB, async (_, execute) => {
      const result = await execute();
      if (++tries === 1) throw new Error("D1_ERROR: Network connection lost.");
      return result;
    });
    expect((await add(first, "key", { bindings: { DB } })).status).toBe(201);
    expect(JSON.parse((await call(`/v1${path}`)).text)).toEqual([{ id: 1, ...first }]);
  });

  it.each(Object.keys(first))("says what a wrong %s must be", async (name) => {
    const { status, text } = await add({ ...first, [name]: [] }, "key");
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toMatch(RegExp(`^${name} must be `));
  });

  it.each(Object.keys(first))("responds 422 to a different %s under the same key", async (name) => {
    await add(first, "key");
    expect((await add({ ...first, [name]: second[name] }, "key")).status).toBe(422);
  });

  it.each(optional)("compares an omitted %s under the same key", async (name) => {
    const { [name]: _, ...others } = second;
    const { status, text } = await add(others, "key");
    expect(status).toBe(201);
    expect(Object.values(JSON.parse(text))).not.toContain(null);
    expect(await add(others, "key")).toMatchObject({ status, text });
    expect((await add(second, "key")).status).toBe(422);
  });
});

function requiredOf({ requestBody }: Pick<DescribedOperation, "requestBody">): string[] {
  return (requestBody && componentOf(requestBody.content["application/json"].schema).required) ?? [];
}
