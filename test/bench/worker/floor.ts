// The floor: the smallest Worker that still answers listPets, createPet and getPet from the same table. It has no
// router, validation, authentication, exact int64 or headers, and the simplest SQL.

const ANIMAL = "id, name, category_id AS categoryId, status";

async function fetch(request: Request, { DB }: Env): Promise<Response> {
  const query = (sql: string, ...values: unknown[]) =>
    DB.prepare(sql)
      .bind(...values)
      .all();
  const { pathname, searchParams } = new URL(request.url);
  if (request.method === "POST") {
    const { name, categoryId, status } = await request.json<Record<string, unknown>>();
    const insert = `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?) RETURNING ${ANIMAL}`;
    const { results } = await query(insert, name, String(categoryId), status);
    return Response.json(results[0], { status: 201 });
  }
  if (pathname !== "/v1/pets") {
    const { results } = await query(`SELECT ${ANIMAL} FROM pets WHERE id = ?`, pathname.slice("/v1/pets/".length));
    return Response.json(results[0]);
  }
  const limit = Number(searchParams.get("limit") ?? 20);
  const after = searchParams.get("after") ?? "0";
  const status = searchParams.get("status");
  const { results } = status
    ? await query(`SELECT ${ANIMAL} FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?`, status, after, limit)
    : await query(`SELECT ${ANIMAL} FROM pets WHERE id > ? ORDER BY id LIMIT ?`, after, limit);
  return Response.json(results);
}

export default { fetch } satisfies ExportedHandler<Env>;
