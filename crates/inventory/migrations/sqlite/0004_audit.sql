-- Who did what, chained: each digest covers the one before it, under a key that is not in the database.

CREATE TABLE audit (
    number     INTEGER PRIMARY KEY,      -- from 1, without gaps
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    request_id TEXT,
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,
    detail     TEXT NOT NULL,       -- JSON; no secret
    digest     BLOB NOT NULL
) STRICT;
CREATE INDEX audit_target ON audit (target, number);

-- The last entry, and the last one that retention took away; each under a keyed hash of its own.
CREATE TABLE audit_ends (
    name   TEXT PRIMARY KEY,        -- 'head', 'anchor'
    number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    mac    BLOB NOT NULL
) STRICT;
