// The runtime of `npm run dev`, each time in a fresh copy of the project, so that no data or setting of the developer
// is used or changed. It ends, and its copy goes, when it is disposed of, or else with this process.

import { copyProject, type DevServer, removeProject, startDev } from "../http/dev-server.ts";

/** Runs the service, or the one script that is named in its place. */
export async function start(...script: string[]): Promise<DevServer & AsyncDisposable> {
  const folder = project();
  // Without a line for each request, whose writing would be measured too.
  const server = await startDev(folder, "--log-level", "warn", ...script);
  const dispose = async () => {
    await server.stop();
    removeProject(folder);
  };
  return { ...server, [Symbol.asyncDispose]: dispose };
}

/** A fresh copy of the project, which goes with this process at the latest. */
export function project(): string {
  const folder = copyProject();
  process.once("exit", () => removeProject(folder));
  return folder;
}
