-- Rotation of the keys that encrypt columns.

ALTER TABLE encryption_keys ADD COLUMN active BIGINT NOT NULL DEFAULT 0;   -- the one that encrypts
ALTER TABLE encryption_keys ADD COLUMN replaced_at BIGINT;                 -- when another one took its place
ALTER TABLE encryption_keys ADD COLUMN emptied_at BIGINT;                  -- when a pass found nothing under it
ALTER TABLE encryption_keys ADD COLUMN removed_at BIGINT;                  -- rings may go without it

-- The processes that share the database, and the keys each holds.
CREATE TABLE key_holders (
    process TEXT COLLATE "C" PRIMARY KEY,
    keys    TEXT COLLATE "C" NOT NULL,      -- ids, with a space between
    active  TEXT COLLATE "C" NOT NULL,      -- the one it encrypts with
    seen_at BIGINT NOT NULL
);
