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

const KEYS = around("x".repeat(16));
const useKey = (apiKey: string) => new AnimalStore({ baseUrl: "https://store.example/v1", apiKey });

const LENGTHS = [0, 1, 56, 57].map((length) => `API_KEY_${"x".repeat(length)}`);
const NAMES = ["", "api_key", "API_KEY", "API_KEYS", "API_KEY_A__B", ...LENGTHS, ...around("API_KEY_A")];
// A name with a number at its end is not a caller.
const CALLERS = NAMES.filter((name) => [name, undefined].includes(callerOf(name)));
const database = new DatabaseSync(":memory:");
database.exec(TABLES);
const insert = database.prepare("INSERT INTO pets (name, category_id, status, created_by) VALUES ('x', 1, 'sold', ?)");

it.each([
  ["client.ts accepts exactly the characters of a key", KEYS, isKey, useKey],
  ["the table accepts exactly the callers of secrets", CALLERS, callerOf, (name: string) => insert.run(name)],
])("%s", (_, texts, isValid, use) => {
  for (const text of texts)
    if (isValid(text)) expect(() => use(text), text).not.toThrow();
    else expect(() => use(text), text).toThrow();
});
