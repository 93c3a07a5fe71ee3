// Single requests over HTTP. Each has to be answered in time.

import { KEY } from "../http/dev-server.ts";

const PATIENCE = 30_000; // milliseconds

export function create(origin: string, name: string) {
  return call(`${origin}/v1/pets`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name, categoryId: 1, status: "available" }),
  });
}

export async function call(url: string, { headers, ...init }: RequestInit = {}) {
  const signal = AbortSignal.timeout(PATIENCE);
  const response = await fetch(url, { ...init, headers: { ...KEY, ...headers }, signal });
  const { ok, headers: received } = response;
  const text = await response.text();
  return { ok, headers: received, body: ok ? (JSON.parse(text) as unknown) : text };
}
