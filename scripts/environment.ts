// The environments, and which addresses are theirs.

import { existsSync, readFileSync } from "node:fs";

/** The deployed environments, as wrangler.toml describes them. */
export const ENVIRONMENTS = ["staging", "production"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** What commands call the database of the local service. */
export const LOCAL = "local";

const secrets = Object.keys(process.env).filter((name) => /^(CLOUDFLARE_|CF_|API_KEY$)/.test(name));
/** Keeps them from programs that run many packages. It prevents accidents: packages could read those of the parent. */
export const WITHOUT_ACCOUNT = Object.fromEntries(secrets.map((name) => [name, undefined]));

/** The arguments of `npm run <command> -- <environment> <file>`. Throws with the usage. */
export function parseArguments(command: string): { environment: string; file: string } {
  const [environment = "", file = "", ...more] = process.argv.slice(2);
  const names: string[] = [LOCAL, ...ENVIRONMENTS];
  if (names.includes(environment) && file && more.length === 0) return { environment, file };
  throw new Error(`usage: npm run ${command} -- <${names.join("|")}> <file>`);
}

/** The domains of staging besides workers.dev, if any. Tests leave animals there. */
const STAGING_DOMAINS: string[] = [];
const STAGING_WORKER = /^animal-store-staging\.[\w-]+\.workers\.dev$/;

export const isOnThisMachine = (url: string): boolean =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);

/** Whether tests may leave animals at a base URL: on this machine, and in staging. */
export function isForTests(base: string): boolean {
  const { hostname } = new URL(base);
  return isOnThisMachine(base) || STAGING_WORKER.test(hostname) || STAGING_DOMAINS.includes(hostname);
}

/**
 * A base URL, without a slash at its end. A key sent over plain HTTP can be read on the way, so it is for this
 * machine only. Throws with a message for the operator, which does not quote a password in it.
 */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isOnThisMachine(text));
  const path = url?.pathname.replace(/\/+$/, "") ?? "";
  if (url && isSafe && path.endsWith("/v1")) return url.origin + path;
  throw new Error(`${source} must be an https URL, or an http URL of localhost, that ends in /v1.`);
}

/** The base URL in Wrangler's report of a deployment. */
export function addressIn(report: string): string {
  const lines = existsSync(report) ? readFileSync(report, "utf8").split("\n").filter(Boolean) : [];
  const deployment = lines.map((line) => JSON.parse(line)).find(({ type }) => type === "deploy");
  return parseBase(`The address in ${report}`, baseUrlOf(deployment?.targets ?? []));
}

/**
 * The base URL of the first address among the targets. One of workers.dev works at once, a new domain later. Throws if
 * there is neither.
 */
export function baseUrlOf(targets: string[]): string {
  const url = targets.find((target) => /^https?:\/\//.test(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  if (!url && !domain) throw new Error("Wrangler reports no address of workers.dev and no custom domain.");
  return `${url ?? `https://${domain}`}/v1`;
}
