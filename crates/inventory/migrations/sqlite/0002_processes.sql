-- The processes of an installation, and what only one of them does at a time.

CREATE TABLE instances (
    id           TEXT    PRIMARY KEY,
    host         TEXT    NOT NULL,   -- for people
    version      TEXT    NOT NULL,   -- of the binary
    started_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    draining     INTEGER NOT NULL    -- takes no new work
) STRICT;
CREATE INDEX instances_last_seen ON instances (last_seen_at);

CREATE TABLE chores (
    name        TEXT    PRIMARY KEY,
    owner       TEXT    NOT NULL,    -- an instance
    fence       INTEGER NOT NULL,    -- grows with each taking
    lease_until INTEGER NOT NULL,
    done_at     INTEGER              -- when it was last done
) STRICT;
