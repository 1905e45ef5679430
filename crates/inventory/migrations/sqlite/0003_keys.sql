-- Rotation of the keys that encrypt columns.

ALTER TABLE encryption_keys ADD COLUMN active INTEGER NOT NULL DEFAULT 0;   -- the one that encrypts
ALTER TABLE encryption_keys ADD COLUMN replaced_at INTEGER;                 -- when another one took its place
ALTER TABLE encryption_keys ADD COLUMN emptied_at INTEGER;                  -- when a pass found nothing under it
ALTER TABLE encryption_keys ADD COLUMN removed_at INTEGER;                  -- rings may go without it

-- The processes that share the database, and the keys each holds.
CREATE TABLE key_holders (
    process TEXT PRIMARY KEY,
    keys    TEXT NOT NULL,      -- ids, with a space between
    active  TEXT NOT NULL,      -- the one it encrypts with
    seen_at INTEGER NOT NULL
) STRICT;
