// What would lead a reader astray: names that the interface lacks, links to nothing, and figures and messages that are
// not those of the code.

import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { description } from "../../src/description.ts";
import { whyIgnored } from "../../src/http/authentication.ts";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { STATUS } from "../../src/http/errors.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";
import { DEPRECATION_HEADERS, SUNSET } from "../../src/pets/deprecation.ts";
import { INT64 } from "../../src/values/int64.ts";
import { type DescribedOperation, describedHeaders, describedOperations } from "../conformance.ts";
import { ROWS, rowsOfPage } from "../rows.ts";

const { schemas } = description.components;

/** A page without its code blocks. */
const textOf = (page: string) => readFileSync(page, "utf8").replaceAll(/^ *```[\s\S]*?^ *```/gm, "");

const code = (name: string) => `\`${name}\``;
const parametersOf = ({ parameters }: DescribedOperation, areHeaders: boolean) =>
  parameters.filter((parameter) => (parameter.in === "header") === areHeaders).map(({ name }) => name);

/** What docs/INTERFACE.md must have, in the rows that begin with a text. */
const NAMES: (readonly [start: string, names: readonly string[]])[] = [
  ...Object.entries(schemas).map(([type, { properties = {}, enum: values = [] }]) => {
    return [code(type), [...Object.keys(properties), ...values]] as const;
  }),
  ...describedOperations.map((operation) => [code(operation.operationId), parametersOf(operation, false)] as const),
  ["headers of requests", describedOperations.flatMap((operation) => parametersOf(operation, true))],
  ["headers of responses", describedHeaders],
];

it.each(NAMES)("docs/INTERFACE.md has a row that begins with %s, with %j", (start, names) => {
  const lines = readFileSync("docs/INTERFACE.md", "utf8").split("\n");
  const rows = lines.filter((line) => line.startsWith(`| ${start} |`)).join();
  expect([start, ...names.map(code)].filter((name) => !rows.includes(name))).toEqual([]);
});

it("docs/SETUP.md has the rows that each operation reads and writes", () => {
  const { rows_read, rows_written } = rowsOfPage(0);
  const rows = Object.entries({ listPets: { rows_read: `limit + ${rows_read}`, rows_written }, ...ROWS });
  const page = textOf("docs/SETUP.md").replaceAll("`", "");
  for (const [what, { rows_read, rows_written }] of rows)
    expect(page).toContain(`| ${what} | ${rows_read} | ${rows_written} |`);
  for (const { operationId } of describedOperations) expect(rows.map(([what]) => what)).toContain(operationId);
});

/** The fragments of a page's headings, as GitHub makes them. */
const fragmentsIn = (page: string) =>
  Array.from(textOf(page).matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );

const PAGES = ["README.md", ...globSync("docs/*.md")];

it.each(PAGES)("%s links only to what exists", (page) => {
  const links = Array.from(textOf(page).matchAll(/\]\((?!https?:)([^)#]*)#?([^)]*)\)/g));
  const broken = links.filter(([, path = "", fragment]) => {
    const target = path ? posix.join(posix.dirname(page), path) : page;
    return !existsSync(target) || (fragment && !fragmentsIn(target).includes(fragment));
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

const { simple: RATE_LIMIT } = readConfig({ config: "wrangler.toml", env: "production" }).ratelimits[0];
const RATE = `${RATE_LIMIT.limit.toLocaleString("en")} requests in ${RATE_LIMIT.period} seconds`;
const dates = [new Date(Number(DEPRECATION_HEADERS.Deprecation.slice(1)) * 1000), SUNSET];
const days = dates.map((date) => date.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" }));
const { maxLength = 0 } = schemas["NewPet"]?.properties?.["name"] ?? {};
const codes = Map.groupBy(Object.entries(STATUS), ([, status]) => status);
const CODES = Array.from(codes, ([status, all]) => `${status} ${all.map(([name]) => code(name)).join(", ")}`);
const FREE_ROWS_WRITTEN = 100_000; // a day
const ANIMALS_A_DAY = Math.floor(FREE_ROWS_WRITTEN / ROWS["createPet with an Idempotency-Key"].rows_written / 1000);

it.each([
  ["docs/INTERFACE.md", RegExp(`^\\| \`name\` \\| At most ${maxLength.toLocaleString("en")} characters`, "m")],
  ["docs/INTERFACE.md", RegExp(`^\\| size of a body \\| At most ${BODY_LIMIT / 1024} KiB`, "m")],
  ["docs/INTERFACE.md", `| \`code\` | ${CODES.join("; ")} |`],
  [".dev.vars.example", whyIgnored("API_KEY").replace("Secret API_KEY is ignored", "Each line is a secret")],
  ["README.md", `${ANIMALS_A_DAY},000 new animals a day`],
  ["docs/SETUP.md", `| rows written | ${FREE_ROWS_WRITTEN.toLocaleString("en")} a day`],
  ["src/site/guide.md", `The default is ${RATE}`],
  ["src/site/guide.md", `\`Retry-After: ${RETRY_AFTER}\``],
  ["src/site/guide.md", `any value from ${INT64.minimum} to ${INT64.maximum} is exact`],
  ["src/site/guide.md", `has been deprecated since ${days[0]}, and will be removed on ${days[1]}`],
  ["src/site/guide.md", `published, as version ${description.info.version}.`],
  ["docs/OPERATIONS.md", `More than ${RATE}`],
])("%s has the figure of the code: %s", (page, figure) => {
  expect(textOf(page)).toMatch(figure);
});

it.each(["docs/OPERATIONS.md", "docs/SETUP.md"])("%s quotes messages and codes that the sources have", (page) => {
  const sources = globSync(["{src,scripts}/**/*.ts", "migrations/*.sql", "wrangler.toml", ".github/**/*.yml"]);
  const source = sources.map((file) => readFileSync(file, "utf8")).join("");
  // Code that is written as words, unlike a command. What others print is in italics.
  const quoted = textOf(page).matchAll(/`((?!git |npm |npx )[A-Z]?[a-z]+(?:[\s_][a-z]+)*\??)`/g);
  const messages = Array.from(quoted, ([, message = ""]) => message.replaceAll("\n", " "));
  expect(messages).not.toEqual([]);
  expect(messages.filter((message) => !source.includes(message))).toEqual([]);
});
