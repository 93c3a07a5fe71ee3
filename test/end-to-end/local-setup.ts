// A local service for the tests over HTTP that do not stop or change it.

import type { TestProject } from "vitest/node";
import { copyProject, LOCAL_KEY, removeProject, startDev } from "../dev-server.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Wrangler would record every SQL statement and print every request, which takes longer than answering it.
  process.env["X_LOCAL_OBSERVABILITY"] = "false";
  const server = await startDev(copyProject(), "--log-level", "warn");
  project.provide("service", { origin: server.origin, key: LOCAL_KEY, isDeployed: false, isClosed: false });
  return async () => {
    await server.stop();
    removeProject(server.folder);
  };
}
