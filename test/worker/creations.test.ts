// What holds of every operation that adds something, and is listed at the same path: it takes an Idempotency-Key, no
// property is lost, and none is left out of the comparison under a key. The description's examples differ in each.

import { describe, expect, it } from "vitest";
import { componentOf, type DescribedOperation, operations } from "../conformance.ts";
import { call, requestTo } from "./service.ts";

type Resource = Record<string, unknown>;

/** The examples of what is listed where `creation` adds it, without their ids. */
function examplesOf(creation: DescribedOperation): Resource[] {
  const list = operations.find(({ path, method }) => path === creation.path && method === "GET");
  const examples = list?.responses[200]?.content?.["application/json"].example;
  return Array.isArray(examples) ? examples.map(withoutId) : [];
}

const withoutId = ({ id: _, ...others }: Resource): Resource => others;

const creations = operations
  .filter(({ responses }) => responses[201])
  .map((creation) => {
    const add = (resource: Resource, key: string) =>
      call(...requestTo(creation, { body: JSON.stringify(resource), headers: { "Idempotency-Key": key } }));
    return { ...creation, examples: examplesOf(creation), add };
  });

describe.each(creations)("$operationId", ({ path, add, examples, ...creation }) => {
  const [first = {}, second = {}] = examples;
  const optional = Object.keys(first).filter((name) => !requiredOf(creation).includes(name));

  it("is described to take an Idempotency-Key", () => {
    expect(creation.parameters.map(({ name }) => name)).toContain("Idempotency-Key");
  });

  it("has two examples", () => {
    expect(examples.length).toBe(2);
  });

  it.each(examples)("keeps every property of %j", async (resource) => {
    const { status, headers, text } = await add(resource, "key");
    expect(status).toBe(201);
    expect(JSON.parse(text)).toEqual({ id: 1, ...resource });
    expect(JSON.parse((await call(`/v1${path}`)).text)).toEqual([{ id: 1, ...resource }]);
    expect(headers.get("Location")).toBe(`/v1${path}/1`);
    expect(await add(resource, "key")).toMatchObject({ status: 201, text });
  });

  it.each(Object.keys(first))("takes another %s under the same key for another one", async (name) => {
    expect(second[name]).not.toEqual(first[name]);
    await add(first, "key");
    expect((await add({ ...first, [name]: second[name] }, "key")).status).toBe(422);
  });

  it.each(optional)("takes none of %s for the same under the same key", async (name) => {
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
