// The runtime of `npm run dev`, each time in a fresh copy of the project, so that no data or setting of the developer
// is used or changed.

import { copyProject, KEY, removeProject, startDev } from "../http/dev-server.ts";

const PATIENCE = 30_000; // milliseconds

/** Runs the service on an empty database; `options` go to wrangler, such as the script to run in its place. */
export async function start(...options: string[]): Promise<{ origin: string } & AsyncDisposable> {
  const copy = project();
  // Without a line for each request, whose writing would be measured too.
  const { origin, stop } = await startDev(copy.folder, "--log-level", "warn", ...options);
  return { origin, [Symbol.asyncDispose]: () => stop().then(copy[Symbol.dispose]) };
}

/** A fresh copy of the project, which goes with this process at the latest. */
export function project(): { folder: string } & Disposable {
  const folder = copyProject();
  const remove = () => removeProject(folder);
  process.once("exit", remove);
  return { folder, [Symbol.dispose]: remove };
}

/** Creates the animal that is given, and gets the URL otherwise. Throws unless a good answer comes in time. */
export async function call(url: string, animal?: object): Promise<Response> {
  const json = { ...KEY, "Content-Type": "application/json" };
  const request = animal ? { method: "POST", headers: json, body: JSON.stringify(animal) } : { headers: KEY };
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(PATIENCE) });
  if (!response.ok) throw new Error(`${url} failed: ${await response.text()}`);
  return response;
}
