// What was acknowledged is kept, whatever happens to the service afterwards.

import { expect, it } from "vitest";
import { copyProject, KEY, removeProject, startDev } from "./dev-server.ts";
import { send } from "./send.ts";

const CREATES = 1_000;
const AT_ONCE = 16;

it(`killed in the middle of ${CREATES} creates and started again, has every animal that it acknowledged, once`, async () => {
  const folder = copyProject();
  try {
    const first = await startDev(folder);
    const acknowledged: string[] = [];
    let sent = 0;
    const caller = async () => {
      while (sent < CREATES) {
        const number = sent++;
        const headers = { ...KEY, "Content-Type": "application/json", "Idempotency-Key": `create ${number}` };
        const body = `{"name":"animal ${number}","categoryId":1}`;
        const { status, text } = await send(`${first.origin}/v1/pets`, { method: "POST", headers, body });
        if (status === 201) acknowledged.push(text);
        if (acknowledged.length === CREATES / 2) await first.stop("SIGKILL");
      }
    };
    await Promise.allSettled(Array.from({ length: AT_ONCE }, caller));
    expect(acknowledged.length).toBeGreaterThanOrEqual(CREATES / 2);
    expect(acknowledged.length).toBeLessThan(CREATES);

    const second = await startDev(folder);
    try {
      const kept = await listAll(`${second.origin}/v1/pets?limit=100`);
      const names = kept.map((text) => JSON.parse(text).name);
      expect(new Set(names).size).toBe(names.length);
      expect(acknowledged.filter((text) => !kept.includes(text))).toEqual([]);
    } finally {
      await second.stop();
    }
  } finally {
    removeProject(folder);
  }
});

/** The text of every animal, page by page. */
async function listAll(url: string): Promise<string[]> {
  const { headers, text } = await send(url, { headers: KEY });
  const [, next] = headers.get("Link")?.match(/^<(.*)>/) ?? [];
  const pets = text.slice(1, -1).split(/(?<=\}),(?=\{)/);
  return next ? [...pets, ...(await listAll(next))] : pets;
}
