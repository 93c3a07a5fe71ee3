-- The key under which a caller added the animal. The index is partial: an animal without a key has no entry in it, and
-- costs no more than before.
ALTER TABLE pets ADD COLUMN idempotency_key TEXT CHECK (
  length(idempotency_key) BETWEEN 1 AND 255 AND idempotency_key NOT GLOB '*[^ -~]*'
);

CREATE UNIQUE INDEX pets_by_idempotency_key ON pets (idempotency_key) WHERE idempotency_key IS NOT NULL;
