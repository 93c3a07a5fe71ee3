import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { insertRow, EXAMPLE_CALLS } from "./call.ts";

const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;
const GIVEN = "00000001-00000002-00000003-0123456789abcdef0123456789abcdef";

/** The real database, and the constraints or bookmarks that its sessions start with. */
function watched() {
  const starts: unknown[] = [];
  const DB = new Proxy(env.DB, {
    get(target, name) {
      if (name !== "withSession") throw new Error(`${String(name)} is used outside a session`);
      return (start: string) => {
        starts.push(start);
        return target.withSession(start);
      };
    },
  });
  return { starts, bindings: { DB } };
}

describe.each(Object.entries(EXAMPLE_CALLS))("%s", (_, perform) => {
  it("starts an unconstrained session, and returns a bookmark", async () => {
    await insertRow("1");
    const { starts, bindings } = watched();
    const { status, headers } = await perform({ bindings });
    expect(status).toBeLessThan(300);
    expect(starts).toEqual(["first-unconstrained"]);
    expect(headers.get("x-d1-bookmark")).toMatch(BOOKMARK);
  });

  it("starts its session at the bookmark of the request", async () => {
    const { starts, bindings } = watched();
    // A 404, if the operation needs an animal.
    const { headers } = await perform({ bindings, headers: { "x-d1-bookmark": GIVEN } });
    expect(starts).toEqual([GIVEN]);
    expect(headers.get("x-d1-bookmark")).toMatch(BOOKMARK);
  });

  it("reads from the primary if the format of the bookmark is unknown", async () => {
    const others = ["", "first-unconstrained", GIVEN.toUpperCase(), GIVEN.slice(1), `${GIVEN}, ${GIVEN}`];
    await insertRow("1");
    for (const bookmark of others) {
      const { starts, bindings } = watched();
      const { status, headers } = await perform({ bindings, headers: { "x-d1-bookmark": bookmark } });
      expect(status).toBeLessThan(300);
      expect(starts).toEqual(["first-primary"]);
      expect(headers.get("x-d1-bookmark")).toMatch(BOOKMARK);
    }
  });
});
