// One service for all tests over HTTP that do not stop or change it. Every test creates the animals it needs, and does not
// rely on the absence of others, so the files can run in parallel.

import type { TestProject } from "vitest/node";
import { copyProject, removeProject, startDev } from "./dev-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Of the running service, without a slash at the end. */
    origin: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Wrangler would record every SQL statement and print every request, which takes longer than answering it.
  process.env["X_LOCAL_OBSERVABILITY"] = "false";
  const server = await startDev(copyProject(), "--log-level", "warn");
  project.provide("origin", server.origin);
  return async () => {
    await server.stop();
    removeProject(server.folder);
  };
}
