// A local service for the tests over HTTP that do not stop or change it.

import type { TestProject } from "vitest/node";
import { SUNSET } from "../../src/pets/deprecation.ts";
import { copyProject, LOCAL_KEY, removeProject, startDev } from "../dev-server.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Wrangler would record every SQL statement and print every request, which takes longer than answering it.
  process.env["X_LOCAL_OBSERVABILITY"] = "false";
  if (Date.now() >= SUNSET.getTime()) console.warn("getPet returns 410: remove it from the code and the tests.");
  const server = await startDev(copyProject(), "--log-level", "warn");
  project.provide("service", { origin: server.origin, key: LOCAL_KEY, isDeployed: false });
  return async () => {
    await server.stop();
    removeProject(server.folder);
  };
}
