// The servers of tests.

import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** Starts a server on a free port of this machine. `close` also ends its connections. */
export async function startServer(respond?: RequestListener, host = "127.0.0.1") {
  const server = createServer(respond).listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { server, origin: `http://${host}:${port}`, close };
}
