// Secrets that an environment can have, beside those that wrangler.toml requires. Also merged into the Env of cloudflare:workers.

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
