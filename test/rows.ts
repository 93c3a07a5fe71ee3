// What D1 bills: the rows that a request reads and writes. The tests of the Worker assert these numbers, and the
// documentation has them.

export const rowsOfPage = (limit: number) => ({ rows_read: limit + 1, rows_written: 0 });

/** By what docs/SETUP.md calls it. */
export const ROWS = {
  "listPets with an id": { rows_read: 1, rows_written: 0 },
  createPet: { rows_read: 4, rows_written: 2 },
  "createPet with an Idempotency-Key": { rows_read: 4, rows_written: 3 },
  "createPet, repeated": { rows_read: 5, rows_written: 1 },
  getPet: { rows_read: 1, rows_written: 0 },
};
