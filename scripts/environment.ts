// The environments, and which addresses are theirs.

/** The deployed environments, as wrangler.toml describes them. */
export const ENVIRONMENTS = ["staging", "production"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

const THIS_MACHINE = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const STAGING = /^animal-store-staging\.[\w-]+\.workers\.dev$/;

/**
 * A base URL, without a slash at its end. A key sent over plain HTTP can be read on the way, so it is for this
 * machine only. Throws with a message for the operator, which does not quote a password in it.
 */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && THIS_MACHINE.test(url.hostname));
  const path = url?.pathname.replace(/\/+$/, "") ?? "";
  if (url && isSafe && path.endsWith("/v1")) return url.origin + path;
  throw new Error(`${source} must be an https URL, or an http URL of localhost, that ends in /v1.`);
}

/** Whether tests may leave animals at a base URL. `stagingUrl`: an address that the operator has named for it. */
export function isForTests(base: string, stagingUrl = ""): boolean {
  const { hostname } = new URL(base);
  const isKnown = THIS_MACHINE.test(hostname) || STAGING.test(hostname);
  return isKnown || (stagingUrl !== "" && base === parseBase("STAGING_URL", stagingUrl));
}
