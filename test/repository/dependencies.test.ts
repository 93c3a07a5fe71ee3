// Rules for what `npm ci` installs that package.json cannot express. Some packages are published for Linux first: an
// entry that is missing for a different platform breaks `npm ci` there. npm knows `allowScripts` since 11.16.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Package {
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  optionalDependencies?: Record<string, string>;
}

const nameOf = (path: string) => path.replace(/^.*node_modules\//, "");

describe.each([".", "scripts/node"])("the lock file in %s", (folder) => {
  const read = (file: string) => JSON.parse(readFileSync(`${folder}/${file}`, "utf8"));
  const packages: Record<string, Package> = read("package-lock.json").packages;

  it("locks every package for every platform, so that npm ci works on all of them", () => {
    const locked = Object.keys(packages).map(nameOf);
    const optional = Object.values(packages).flatMap(({ optionalDependencies = {} }) =>
      Object.keys(optionalDependencies),
    );
    expect(optional.filter((name) => !locked.includes(name))).toEqual([]);
  });

  it("has a hash of every package, and names no registry, so that any mirror can serve the packages", () => {
    const wrong = Object.entries(packages).filter(
      ([path, { integrity, resolved }]) => path && (!integrity || resolved),
    );
    expect(wrong).toEqual([]);
  });

  it("lets no package run a script when it is installed", () => {
    const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
    const denied = scripted.map((path) => [nameOf(path), false]);
    expect(read("package.json").allowScripts ?? {}).toEqual(Object.fromEntries(denied));
  });
});
