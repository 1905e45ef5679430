-- What operations would delete only with consent, and the consent that was given. One row for each plan that was asked
-- about; a question that nobody needs any more goes with the next one about the component, and with the next version.
CREATE TABLE consents (
    cluster_id   TEXT    NOT NULL REFERENCES clusters (id),
    version      INTEGER NOT NULL,
    component    TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    plan         TEXT    NOT NULL,   -- digest of what would be deleted
    operation_id TEXT    NOT NULL,   -- that asked last
    deletions    BLOB    NOT NULL,   -- what would be deleted, deflated JSON; the first of very many
    deleted      INTEGER NOT NULL,   -- how many would be
    of_objects   INTEGER NOT NULL,   -- of how many
    asked_at     INTEGER NOT NULL,
    until        INTEGER NOT NULL,   -- when waiting ends
    given_at     INTEGER,
    request_id   TEXT,               -- of the API call that gave it
    used_at      INTEGER,
    PRIMARY KEY (cluster_id, component, kind, plan, version)
) STRICT;
-- Given and not used: what waits for one of these is to go on.
CREATE INDEX consents_given ON consents (given_at) WHERE given_at IS NOT NULL AND used_at IS NULL;
