// What keeps the files easy to read and to find.

import { globSync, readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { expect, it } from "vitest";

const files = globSync(["*", ".*", "{.ci,.github,migrations,scripts,src,test}/**/*"], {
  exclude: ["package-lock.json", "LICENSE", "**/worker-configuration.d.ts", "src/site/_headers"],
  withFileTypes: true,
})
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => `${parentPath}/${name}`);

const WRAPPED = [".css", ".html", ".js", ".json", ".sql", ".toml", ".ts", ".yaml", ".yml", ""];

it("no line of code, SQL or configuration is longer than 120 characters, unless it has a link", () => {
  const long = files
    .filter((file) => WRAPPED.includes(extname(file)))
    .flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line, at) => ([...line].length > 120 && !line.includes("https://") ? [`${file}:${at + 1}`] : [])),
    );
  expect(long).toEqual([]);
});

it("a file name occurs once in src/, scripts/ and test/", () => {
  const named = files.filter((file) => /^(src|scripts|test)\//.test(file) && basename(file) !== "tsconfig.json");
  // Each resource has the same files.
  const places = new Set(named.map((file) => file.replace(/^src\/\w+\/(?=(store|operations)\.ts$)/, "src/")));
  const names = [...places].map((file) => basename(file));
  expect(names.filter((name, at) => names.indexOf(name) < at)).toEqual([]);
});
