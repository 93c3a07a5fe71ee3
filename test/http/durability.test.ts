// Every animal that the service acknowledged is still there after the service is killed.

import { expect, it } from "vitest";
import { copyProject, KEY, removeProject, startDev } from "./dev-server.ts";
import { listAll, send } from "./send.ts";

const CREATES = 400;
const CALLERS = 16;

it(`has every acknowledged animal exactly once after it is killed during ${CREATES} creates`, async () => {
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
    await Promise.allSettled(Array.from({ length: CALLERS }, caller));
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
