-- The processes of an installation, and what only one of them does at a time.

CREATE TABLE instances (
    id           TEXT COLLATE "C" PRIMARY KEY,
    host         TEXT COLLATE "C" NOT NULL,   -- for people
    version      TEXT COLLATE "C" NOT NULL,   -- of the binary
    started_at   BIGINT  NOT NULL,
    last_seen_at BIGINT  NOT NULL,
    draining     BIGINT  NOT NULL    -- takes no new work
);
CREATE INDEX instances_last_seen ON instances (last_seen_at);

CREATE TABLE chores (
    name        TEXT COLLATE "C" PRIMARY KEY,
    owner       TEXT COLLATE "C" NOT NULL,    -- an instance
    fence       BIGINT  NOT NULL,    -- grows with each taking
    lease_until BIGINT  NOT NULL,
    done_at     BIGINT               -- when it was last done
);
