// What a key and the name of its secret may be is decided by the service (http/authentication.ts). The client and the
// table decide the same.

import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { callerOf, isKey } from "../../src/http/authentication.ts";
import { AnimalStore } from "../../src/site/client.ts";
import { TABLES } from "../tables.ts";

/** Each character up to U+00FF before, after and inside of a text. U+0000 is left out, at which SQLite ends a text. */
const around = (text: string) =>
  Array.from({ length: 255 }, (_, i) => String.fromCharCode(i + 1)).flatMap((c) => [
    c + text,
    text + c,
    text + c + text,
  ]);

function expectAccepted(isAccepted: boolean, text: string, use: () => unknown): void {
  if (isAccepted) expect(use, text).not.toThrow();
  else expect(use, text).toThrow();
}

it("client.ts accepts exactly the characters of a key", () => {
  const baseUrl = "https://store.example/v1";
  for (const apiKey of around("x".repeat(16)))
    expectAccepted(isKey(apiKey), apiKey, () => new AnimalStore({ baseUrl, apiKey }));
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
  // A name with a number at its end is not a caller.
  for (const name of [...edges, ...around("API_KEY_A")].filter((name) => [name, undefined].includes(callerOf(name))))
    expectAccepted(callerOf(name) === name, name, () => insert.run(name));
});
