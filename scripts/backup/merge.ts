// Adds to the backup of an earlier state what it lacks from that of a later one: `npm run merge -- <then> <now> <out>`.
// A database that was returned to the earlier state is the beginning of `out`, so a restore continues it. That is why
// an animal keeps its id only if it is greater than all ids of `then`: a smaller one would be in between, even if it is
// free. Animals are the same if their id, caller and time are the same, or if they have neither caller nor time.

import { printJson } from "../../src/values/json.ts";
import { command } from "./command.ts";
import { createFile, readFiles, select } from "./file.ts";
import { parseLine } from "./lines.ts";

// `owner` is the id of the animal of `then` that has the same Idempotency-Key.
const DIFFERENCES = `CREATE TABLE differences AS SELECT * FROM (
  SELECT ifnull(now.id, old.id) AS id, now.line, owner.id AS owner, CASE
    WHEN now.id IS NULL THEN 'only then'
    WHEN old.id IS NULL THEN iif(now.id > (SELECT ifnull(max(id), 0) FROM old), 'newer', 'only now')
    WHEN now.line <> old.line THEN 'changed'
  END AS kind
  FROM old FULL JOIN now ON now.id = old.id AND now.caller IS old.caller AND now.time IS old.time
  LEFT JOIN old AS owner ON old.id IS NULL AND owner.caller = now.caller AND owner.key = now.key
) WHERE kind IS NOT NULL`;

/** Returns the text to end with. Throws with a message for the operator. */
export async function merge(then: string, now: string, out: string): Promise<string> {
  const database = await readFiles({ old: then, now });
  database.exec(DIFFERENCES);
  const linesToAdd = (kind: string) =>
    select(database, `SELECT line FROM differences WHERE kind = '${kind}' AND owner IS NULL ORDER BY id`);
  const newIds: string[] = [];

  function* lines(): Generator<string> {
    yield* select(database, "SELECT line FROM old ORDER BY id");
    yield* linesToAdd("newer");
    const [max = 0] = select(
      database,
      "SELECT ifnull(max(id), 0) FROM (SELECT id FROM old UNION ALL SELECT id FROM now)",
    );
    let last = BigInt(max);
    for (const line of linesToAdd("only now")) {
      const row = parseLine(line);
      newIds.push(`${row.id} ${++last}`);
      yield printJson({ ...row, id: last });
    }
  }

  const total = await createFile(out, lines());
  const leftOut = [...select(database, "SELECT id || ' ' || owner FROM differences WHERE owner ORDER BY id")];
  const list = (title: string, pairs: string[]) => (pairs.length > 0 ? [title, ...pairs] : []);
  const count = (kind: string) => {
    const ids = "ifnull(' (ids ' || min(id) || ' to ' || max(id) || ')', '')";
    const [text] = select(database, `SELECT count(*) || ${ids} FROM differences WHERE kind = '${kind}'`);
    return text;
  };
  return [
    ...list(`Not added, because ${then} has their Idempotency-Key: the id in ${now}, and the one in ${then}`, leftOut),
    ...list(`Added with a new id: the id in ${now}, and the new one`, newIds),
    `Only in ${then}: ${count("only then")}`,
    `Only in ${now}: ${count("only now")}`,
    `Newer, only in ${now}: ${count("newer")}`,
    `In both, with different values: ${count("changed")}. ${out} has those of ${then}.`,
    `Saved ${out}: ${total} lines.`,
  ].join("\n");
}

if (import.meta.main) {
  const next = "Nothing was saved. Run the same command again.";
  await command("npm run merge -- <then.jsonl> <now.jsonl> <out.jsonl>", merge, next);
}
