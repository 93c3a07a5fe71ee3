// What would lead a reader astray: operations that the README does not have, links to nothing, and figures and messages
// that are not those of the code.

import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { description } from "../../src/description.ts";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { STATUS } from "../../src/http/errors.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";
import { DEPRECATION_HEADERS, SUNSET } from "../../src/pets/deprecation.ts";
import { INT64 } from "../../src/values/int64.ts";
import { describedOperations } from "../conformance.ts";

/** A page without its code blocks. */
const textOf = (page: string) => readFileSync(page, "utf8").replaceAll(/^ *```[\s\S]*?^ *```/gm, "");

it("README.md has every operation in its table", () => {
  const rows = textOf("README.md").matchAll(/^\| `(\w+)`.*?\| `(\w+ \/v1[^?`]*)/gm);
  const operations = describedOperations.map(({ operationId, method, path }) => [operationId, `${method} /v1${path}`]);
  expect(Array.from(rows, ([, name, request]) => [name, request])).toEqual(operations);
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
const { maxLength = 0 } = description.components.schemas["NewPet"]?.properties?.["name"] ?? {};
/** Those that the interface does not have. */
const OTHERS = Object.values(STATUS).filter((status) => ![401, 404].includes(status));

it.each([
  ["docs/INTERFACE.md", RegExp(`^\\| \`name\` \\| At most ${maxLength.toLocaleString("en")} characters`, "m")],
  ["docs/INTERFACE.md", RegExp(`^\\| size of a body \\| At most ${BODY_LIMIT / 1024} KiB`, "m")],
  ["docs/INTERFACE.md", RegExp(`^\\| other errors \\| ${OTHERS.join("[^|\\d]+")}[^|\\d]*\\|$`, "m")],
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
