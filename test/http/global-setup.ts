// One service for all tests over HTTP that need no service of their own.

import type { TestProject } from "vitest/node";
import { copyProject, removeProject, startDev } from "./dev-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Of the running service; no slash at the end. */
    origin: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startDev(copyProject());
  project.provide("origin", server.origin);
  return async () => {
    await server.stop();
    removeProject(server.folder);
  };
}
