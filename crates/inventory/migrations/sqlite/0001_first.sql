-- The first schema. Times are milliseconds since 1970; *_lane columns are DueReason in order of urgency, 0 to 4.
-- Columns named content, spec, reason, cause, timeline, not_ready of type BLOB are encrypted where src/cipher.rs lists them.
-- No CHECK on state names: SQLite cannot change one without rebuilding the table, and a name that an older binary does
-- not know must fail its row alone.

CREATE TABLE encryption_keys (
    id          INTEGER PRIMARY KEY,
    purpose     TEXT    NOT NULL,   -- 'data' or 'content-hash'
    check_value BLOB    NOT NULL,   -- proves that a ring holds this key, tells nothing about it
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE clusters (
    id                    TEXT    PRIMARY KEY,
    name                  TEXT    NOT NULL,
    tenant                TEXT,
    cluster_group         TEXT,
    labels                TEXT    NOT NULL,   -- JSON object
    version               INTEGER NOT NULL,   -- the newest configuration
    kubeconfig            INTEGER,            -- number of the newest kubeconfig
    kube_system_uid       TEXT,
    created_at            INTEGER NOT NULL,
    deletion_mode         TEXT,
    deletion_requested_at INTEGER,
    deleted_at            INTEGER
) STRICT;
CREATE UNIQUE INDEX clusters_live_name ON clusters (name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_tenant ON clusters (tenant, name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_group ON clusters (cluster_group, name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_uid ON clusters (kube_system_uid) WHERE deleted_at IS NULL;

-- Labels of live clusters, for selection. The name is immutable and stands here so that a page is one index range.
CREATE TABLE cluster_labels (
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    name       TEXT NOT NULL,
    cluster_id TEXT NOT NULL REFERENCES clusters (id),
    PRIMARY KEY (key, value, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX cluster_labels_cluster ON cluster_labels (cluster_id);

CREATE TABLE kubeconfigs (
    cluster_id   TEXT    NOT NULL REFERENCES clusters (id),
    number       INTEGER NOT NULL,
    content      BLOB    NOT NULL,
    content_hash BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, number)
) STRICT;

CREATE TABLE cluster_configurations (
    cluster_id   TEXT    NOT NULL REFERENCES clusters (id),
    version      INTEGER NOT NULL,
    spec         BLOB    NOT NULL,
    content_hash BLOB    NOT NULL,
    kubeconfig   INTEGER,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, version)
) STRICT;

CREATE TABLE archives (
    digest     TEXT    PRIMARY KEY,
    content    BLOB    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE configuration_archives (
    digest     TEXT    NOT NULL REFERENCES archives (digest),
    cluster_id TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (digest, cluster_id, version),
    FOREIGN KEY (cluster_id, version) REFERENCES cluster_configurations (cluster_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX configuration_archives_configuration ON configuration_archives (cluster_id, version);

-- The present of each cluster: one row.
CREATE TABLE cluster_status (
    cluster_id       TEXT    PRIMARY KEY REFERENCES clusters (id),
    name             TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    since            INTEGER NOT NULL,
    observed_version INTEGER NOT NULL,
    reason           BLOB,
    due_lane         INTEGER NOT NULL,
    next_due_at      INTEGER,
    due_stamp        INTEGER NOT NULL,   -- grows whenever the due time is set
    request_id       TEXT,               -- of the API call that set it
    failures         INTEGER NOT NULL,
    suspended_until  INTEGER,
    last_check_at    INTEGER,
    changes          INTEGER NOT NULL    -- rows of history so far
) STRICT;
CREATE INDEX cluster_status_due ON cluster_status (due_lane, next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX cluster_status_next ON cluster_status (next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX cluster_status_state ON cluster_status (state, name);

-- States that ended. Never updated.
CREATE TABLE status_history (
    cluster_id       TEXT    NOT NULL REFERENCES clusters (id),
    seq              INTEGER NOT NULL,
    state            TEXT    NOT NULL,
    observed_version INTEGER NOT NULL,
    reason           BLOB,
    since            INTEGER NOT NULL,
    until            INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, seq)
) STRICT;

-- The present of each component of each cluster, its revision and its fence counter.
CREATE TABLE components (
    cluster_id   TEXT    NOT NULL REFERENCES clusters (id),
    component    TEXT    NOT NULL,
    name         TEXT    NOT NULL,   -- the cluster's
    listed       INTEGER NOT NULL,   -- by the newest configuration
    revision     INTEGER NOT NULL,
    inputs_hash  BLOB,
    fence        INTEGER NOT NULL,
    operation_id TEXT,
    kind         TEXT,
    version      INTEGER,
    state        TEXT,
    since        INTEGER,
    until        INTEGER,
    reason       BLOB,
    not_ready    BLOB,
    PRIMARY KEY (cluster_id, component)
) STRICT, WITHOUT ROWID;
CREATE INDEX components_listed ON components (component, name) WHERE listed = 1;

CREATE TABLE reconciliations (
    id          TEXT    PRIMARY KEY,
    cluster_id  TEXT    NOT NULL REFERENCES clusters (id),
    version     INTEGER NOT NULL,
    strategy    TEXT    NOT NULL,
    due_lane    INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    reason      BLOB,
    created_at  INTEGER NOT NULL,
    deadline    INTEGER NOT NULL,
    finished_at INTEGER,
    request_id  TEXT                     -- of the API call that started it
) STRICT;
-- At most one live run per cluster, whatever the code does.
CREATE UNIQUE INDEX reconciliations_running ON reconciliations (cluster_id) WHERE state = 'running';
CREATE INDEX reconciliations_deadline ON reconciliations (deadline) WHERE state = 'running';
CREATE INDEX reconciliations_cluster ON reconciliations (cluster_id, id);

-- The queue. Claimable rows have a rank, rows that wake by themselves a wake_at; the rest is in neither index.
CREATE TABLE operations (
    id                TEXT    PRIMARY KEY,
    reconciliation_id TEXT    NOT NULL REFERENCES reconciliations (id),
    position          INTEGER NOT NULL,
    cluster_id        TEXT    NOT NULL,
    component         TEXT    NOT NULL,
    kind              TEXT    NOT NULL,
    version           INTEGER NOT NULL,
    due_lane          INTEGER NOT NULL,
    cause             BLOB    NOT NULL,
    state             TEXT    NOT NULL,
    reason            BLOB,
    until             INTEGER,            -- a wait's deadline, a retry's next try
    blocked_by        INTEGER NOT NULL,   -- dependencies that have not succeeded yet
    rank              INTEGER,            -- its place in the queue, while claimable
    wake_at           INTEGER,            -- until, or the end of the lease
    attempt           INTEGER NOT NULL,
    fence             INTEGER NOT NULL,
    lease_owner       TEXT,
    lease_until       INTEGER,
    stop              TEXT,
    reports           INTEGER NOT NULL,   -- rows in operation_reports so far
    timeline_entries  INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    started_at        INTEGER,
    finished_at       INTEGER
) STRICT;
CREATE INDEX operations_ready ON operations (rank) WHERE rank IS NOT NULL;
CREATE INDEX operations_wake ON operations (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX operations_open ON operations (reconciliation_id) WHERE finished_at IS NULL;
CREATE INDEX operations_reconciliation ON operations (reconciliation_id, position);
-- At most one running attempt per component of a cluster, also across runs.
CREATE UNIQUE INDEX operations_running ON operations (cluster_id, component) WHERE state = 'running';

CREATE TABLE operation_dependencies (
    operation_id TEXT NOT NULL REFERENCES operations (id),
    depends_on   TEXT NOT NULL REFERENCES operations (id),
    PRIMARY KEY (operation_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_dependencies_reverse ON operation_dependencies (depends_on);

-- What attempts reported: changes of objects (compressed) and what was said (compressed, encrypted). One row a report.
CREATE TABLE operation_reports (
    operation_id TEXT    NOT NULL REFERENCES operations (id),
    seq          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    changes      BLOB,
    entries      INTEGER NOT NULL,
    timeline     BLOB,
    PRIMARY KEY (operation_id, seq)
) STRICT;

CREATE TABLE renders (
    cluster_id TEXT    NOT NULL REFERENCES clusters (id),
    component  TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    content    BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, component, revision)
) STRICT;

CREATE TABLE settings (
    scope      TEXT    NOT NULL,   -- 'default', 'group:<name>', 'cluster:<id>'
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,   -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
