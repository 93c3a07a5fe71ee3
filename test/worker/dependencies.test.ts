// Rules for what `npm ci` installs that package.json cannot express. docs/CONTRIBUTING.md,
// "Dependencies", explains them.

import { expect, it } from "vitest";
import { allowScripts, overrides } from "../../package.json";
import lock from "../../package-lock.json";

interface Package {
  name?: string;
  version?: string;
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

const packages: Record<string, Package> = lock.packages;
const SCALAR = "@scalar/api-reference";

/** The path of the package that `name` refers to in the package at `path`: the nearest one, as Node resolves it. */
function resolve(name: string, path: string): string | undefined {
  const nested = `${path}${path && "/"}node_modules/${name}`;
  if (packages[nested]) return nested;
  return path === "" ? undefined : resolve(name, path.slice(0, Math.max(0, path.lastIndexOf("/node_modules/"))));
}

it("replaces every dependency of Scalar, whose browser bundle contains them all", () => {
  const dependencies = Object.keys(packages[`node_modules/${SCALAR}`]?.dependencies ?? {});
  expect(dependencies.length).toBeGreaterThan(0);
  expect(Object.keys(overrides[SCALAR]).toSorted()).toEqual(dependencies.toSorted());
  const installed = dependencies.filter((name) => {
    const path = resolve(name, `node_modules/${SCALAR}`) ?? "";
    return packages[path]?.name !== "@favware/skip-dependency";
  });
  expect(installed).toEqual([]);
});

it("locks every package for every platform, so that npm ci works on all of them", () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !resolve(name, path)),
  );
  expect(missing).toEqual([]);
});

it("has a hash of every package, and names no registry, so that any mirror can serve the packages", () => {
  const wrong = Object.entries(packages).filter(([path, { integrity, resolved }]) => path && (!integrity || resolved));
  expect(wrong).toEqual([]);
});

it("lets no package run a script when it is installed", () => {
  const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
  const denied = scripted.map((path) => [path.replace(/^.*node_modules\//, ""), false]);
  expect(allowScripts).toEqual(Object.fromEntries(denied));
});
