/// <reference types="vite/types/importMeta.d.ts" />

declare module "*?raw" {
  const text: string;
  export default text;
}

declare namespace Cloudflare {
  interface Env {
    MIGRATIONS: import("cloudflare:test").D1Migration[];
    /** The binding with a limit of three requests. */
    LOW_RATE_LIMIT: RateLimit;
  }
}
