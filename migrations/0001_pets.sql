-- The checks repeat the rules of the service, so that other programs cannot store what it would reject.
CREATE TABLE pets (
  -- The service gives every id, by the clock, so an INSERT by hand must give one, too. AUTOINCREMENT would only write
  -- one more row for each animal.
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL CHECK (
    -- The white space of ECMA-262, sections 12.2 and 12.3: what \S excludes in the schema.
    trim(name, char(
      9, 10, 11, 12, 13, 32, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198,
      8199, 8200, 8201, 8202, 8232, 8233, 8239, 8287, 12288, 65279
    )) <> ''
    -- For SQLite, the length of a text ends at U+0000. The bytes bound what follows: a character has at most four.
    AND length(name) <= 1000 AND length(CAST(name AS BLOB)) <= 4000
  ),
  category_id INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold')),
  -- The key under which the caller added the animal.
  idempotency_key TEXT CHECK (
    length(idempotency_key) BETWEEN 1 AND 255 AND idempotency_key NOT GLOB '*[^ -~]*'
  ),
  -- The caller. Animals from elsewhere may have none, and no response shows it.
  created_by TEXT CHECK (
    length(created_by) <= 64 AND created_by NOT GLOB '*[^A-Za-z0-9_]*'
    AND (created_by = 'API_KEY' OR created_by GLOB 'API_KEY_[A-Za-z0-9]*')
  ),
  CHECK (idempotency_key IS NULL OR created_by IS NOT NULL)
) STRICT;

-- Each entry ends with the rowid, which is the id, so a filtered page is one range of this index.
CREATE INDEX pets_by_status ON pets (status);

-- Each caller has Idempotency-Keys of its own. The index is partial: an animal without a key has no entry in it.
CREATE UNIQUE INDEX pets_by_idempotency_key ON pets (created_by, idempotency_key) WHERE idempotency_key IS NOT NULL;
