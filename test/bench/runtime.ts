// The runtime of `npm run dev`, in a fresh copy of the project, so that the developer's own local state is neither used nor
// changed.

import { copyProject, KEY, removeProject, startDev } from "../http/dev-server.ts";

const TIMEOUT = 30_000; // milliseconds

/** Runs the service on an empty database. `options` are passed to wrangler, such as a different script to run. */
export async function start(...options: string[]): Promise<{ origin: string } & AsyncDisposable> {
  const copy = project();
  // Without a log line for each request, which would be measured too.
  const { origin, stop } = await startDev(copy.folder, "--log-level", "warn", ...options);
  return { origin, [Symbol.asyncDispose]: () => stop().then(copy[Symbol.dispose]) };
}

/** A fresh copy of the project, which is removed when this process ends at the latest. */
export function project(): { folder: string } & Disposable {
  const folder = copyProject();
  const remove = () => removeProject(folder);
  process.once("exit", remove);
  return { folder, [Symbol.dispose]: remove };
}

/** Creates the given animal, or else gets the URL. Throws if the response is an error or late. */
export async function call(url: string, animal?: object): Promise<Response> {
  const json = { ...KEY, "Content-Type": "application/json" };
  const request = animal ? { method: "POST", headers: json, body: JSON.stringify(animal) } : { headers: KEY };
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(TIMEOUT) });
  if (!response.ok) throw new Error(`${url} failed: ${await response.text()}`);
  return response;
}
