-- Who did what, chained: each digest covers the one before it, under a key that is not in the database.

CREATE TABLE audit (
    number     BIGINT PRIMARY KEY,      -- from 1, without gaps
    at         BIGINT NOT NULL,
    actor      TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C",
    action     TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    detail     TEXT COLLATE "C" NOT NULL,       -- JSON; no secret
    digest     BYTEA NOT NULL
);
CREATE INDEX audit_target ON audit (target, number);

-- The last entry, and the last one that retention took away; each under a keyed hash of its own.
CREATE TABLE audit_ends (
    name   TEXT COLLATE "C" PRIMARY KEY,        -- 'head', 'anchor'
    number BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    mac    BYTEA NOT NULL
);
