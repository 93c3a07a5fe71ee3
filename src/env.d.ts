// Declares the secrets that wrangler.toml does not require, for the `env` of `fetch` and that of cloudflare:workers.

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
