// The trace of a request, which Cloudflare records for a sample of them.
// https://developers.cloudflare.com/workers/observability/traces/

import { tracing } from "cloudflare:workers";
import type { Context } from "./routing.ts";

/** Adds the caller to the root span: no other span is active while a request is routed. */
export function traceCaller({ apiKey }: Context): void {
  tracing.getActiveSpan()?.setAttribute("caller", apiKey.caller);
}
