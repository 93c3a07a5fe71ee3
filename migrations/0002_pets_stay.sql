-- Animals stay as they were added: no operation changes or removes one, so a DELETE or an UPDATE by hand or in a
-- migration is an accident. To correct or remove animals, an operator first notes each of them here, with the reason,
-- which exempts it for an hour and stays as a log.
CREATE TABLE IF NOT EXISTS corrections (
  pet_id INTEGER NOT NULL,
  reason TEXT NOT NULL,
  noted_at INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;

CREATE INDEX IF NOT EXISTS corrections_by_pet ON corrections (pet_id, noted_at);

CREATE TRIGGER IF NOT EXISTS pets_stay BEFORE DELETE ON pets
WHEN NOT EXISTS (SELECT 1 FROM corrections WHERE pet_id = OLD.id AND noted_at > unixepoch() - 3600)
BEGIN
  SELECT RAISE(ABORT, 'Animals stay. To remove some, first note their ids: docs/OPERATIONS.md, Correct or remove animals.');
END;

-- Values are compared, because repeating a create with its Idempotency-Key updates its row without changing it.
CREATE TRIGGER IF NOT EXISTS pets_stay_unchanged BEFORE UPDATE ON pets
WHEN (NEW.id, NEW.name, NEW.category_id, NEW.status, NEW.idempotency_key, NEW.created_by)
  IS NOT (OLD.id, OLD.name, OLD.category_id, OLD.status, OLD.idempotency_key, OLD.created_by)
  AND NOT EXISTS (SELECT 1 FROM corrections WHERE pet_id = OLD.id AND noted_at > unixepoch() - 3600)
BEGIN
  SELECT RAISE(ABORT, 'Animals stay. To change some, first note their ids: docs/OPERATIONS.md, Correct or remove animals.');
END;

-- An animal gets an id after all others, so one that is ahead of the clock would lead to more of these, and one that is
-- removed could be given again. An hour, because clocks differ.
CREATE TRIGGER IF NOT EXISTS pets_follow_the_clock BEFORE INSERT ON pets
WHEN NEW.id > (unixepoch() + 3600) * 1000
BEGIN
  SELECT RAISE(ABORT, 'An id is a time in milliseconds, and this one is ahead of the clock.');
END;
