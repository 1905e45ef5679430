-- What operations would delete only with consent, and the consent that was given. One row for each plan that was asked
-- about; a question that nobody needs any more goes with the next one about the component, and with the next version.
CREATE TABLE consents (
    cluster_id   TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    version      BIGINT NOT NULL,
    component    TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    plan         TEXT COLLATE "C" NOT NULL,   -- digest of what would be deleted
    operation_id TEXT COLLATE "C" NOT NULL,   -- that asked last
    deletions    BYTEA  NOT NULL,   -- what would be deleted, deflated JSON; the first of very many
    deleted      BIGINT NOT NULL,   -- how many would be
    of_objects   BIGINT NOT NULL,   -- of how many
    asked_at     BIGINT NOT NULL,
    until        BIGINT NOT NULL,   -- when waiting ends
    given_at     BIGINT,
    request_id   TEXT COLLATE "C",  -- of the API call that gave it
    used_at      BIGINT,
    PRIMARY KEY (cluster_id, component, kind, plan, version)
);
-- Given and not used: what waits for one of these is to go on.
CREATE INDEX consents_given ON consents (given_at) WHERE given_at IS NOT NULL AND used_at IS NULL;
