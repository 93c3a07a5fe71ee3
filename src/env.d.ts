// Secrets that an environment can have, in addition to those that wrangler.toml requires: for `env` of `fetch`, and
// that of cloudflare:workers.

interface Env extends OptionalSecrets {}

declare namespace Cloudflare {
  interface Env extends OptionalSecrets {}
}

interface OptionalSecrets {
  /** While it exists, whatever its value, the service is closed. */
  MAINTENANCE?: string;
  /** The keys of callers. */
  [name: `API_KEY_${string}`]: string;
}
