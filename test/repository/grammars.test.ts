// What a key and the name of its secret may be is decided by the service (http/authentication.ts). The client, the
// table and the comment for whoever changes the local key say the same.

import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { callerOf, isKey, whyIgnored } from "../../src/http/authentication.ts";
import { AnimalStore } from "../../src/site/client.ts";
import { TABLES } from "../tables.ts";

/** Each character up to U+00FF before, after and inside of a text. U+0000 is left out, at which SQLite ends a text. */
const around = (text: string) =>
  Array.from({ length: 255 }, (_, i) => String.fromCharCode(i + 1)).flatMap((c) => [
    c + text,
    text + c,
    text + c + text,
  ]);

const isAccepted = (use: () => unknown) => {
  try {
    use();
    return true;
  } catch {
    return false;
  }
};

it("client.ts accepts exactly the characters of a key", () => {
  const keys = around("x".repeat(16));
  const accepts = (apiKey: string) =>
    isAccepted(() => new AnimalStore({ baseUrl: "https://store.example/v1", apiKey }));
  expect(keys.filter(accepts)).toEqual(keys.filter(isKey));
});

it("the table accepts exactly the callers of secrets", () => {
  const database = new DatabaseSync(":memory:");
  database.exec(TABLES);
  const insert = database.prepare(
    "INSERT INTO pets (name, category_id, status, created_by) VALUES ('x', 1, 'sold', ?)",
  );
  const edges = [
    "",
    "API_KEY",
    "API_KEY_",
    "API_KEY_A__B",
    ...[56, 57].map((length) => `API_KEY_${"x".repeat(length)}`),
  ];
  // A secret's name with a number at its end is not a caller.
  const names = [...edges, ...around("API_KEY_A")].filter((name) => [name, undefined].includes(callerOf(name)));
  expect(names.filter((name) => isAccepted(() => insert.run(name)))).toEqual(names.filter(callerOf));
});

it(".dev.vars.example says what a key is", () => {
  const [, rule = ""] = whyIgnored("API_KEY").split("ignored: ");
  expect(readFileSync(".dev.vars.example", "utf8").replace("\n# ", " ")).toContain(rule);
});
