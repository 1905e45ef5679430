-- The first schema. Times are milliseconds since 1970; *_lane columns are DueReason in order of urgency, 0 to 4.
-- Columns named content, spec, reason, cause, timeline, not_ready of type BYTEA are encrypted where src/cipher.rs lists them.
-- The same tables and columns as on SQLite. Text sorts by bytes (COLLATE "C"): keyset pages depend on it, whatever the
-- database's locale is. No CHECK on state names: a name that an older binary does not know must fail its row alone.
-- The rows that change all the time have room in their page, and are vacuumed before they are many.

CREATE TABLE encryption_keys (
    id          BIGINT PRIMARY KEY,
    purpose     TEXT COLLATE "C" NOT NULL,   -- 'data' or 'content-hash'
    check_value BYTEA    NOT NULL,   -- proves that a ring holds this key, tells nothing about it
    created_at  BIGINT NOT NULL
);

CREATE TABLE clusters (
    id                    TEXT COLLATE "C" PRIMARY KEY,
    name                  TEXT COLLATE "C" NOT NULL,
    tenant                TEXT COLLATE "C",
    cluster_group         TEXT COLLATE "C",
    labels                TEXT COLLATE "C" NOT NULL,   -- JSON object
    version               BIGINT NOT NULL,   -- the newest configuration
    kubeconfig            BIGINT,            -- number of the newest kubeconfig
    kube_system_uid       TEXT COLLATE "C",
    created_at            BIGINT NOT NULL,
    deletion_mode         TEXT COLLATE "C",
    deletion_requested_at BIGINT,
    deleted_at            BIGINT
);
CREATE UNIQUE INDEX clusters_live_name ON clusters (name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_tenant ON clusters (tenant, name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_group ON clusters (cluster_group, name) WHERE deleted_at IS NULL;
CREATE INDEX clusters_live_uid ON clusters (kube_system_uid) WHERE deleted_at IS NULL;

-- Labels of live clusters, for selection. The name is immutable and stands here so that a page is one index range.
CREATE TABLE cluster_labels (
    key        TEXT COLLATE "C" NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    cluster_id TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    PRIMARY KEY (key, value, name)
);
CREATE INDEX cluster_labels_cluster ON cluster_labels (cluster_id);

CREATE TABLE kubeconfigs (
    cluster_id   TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    number       BIGINT NOT NULL,
    content      BYTEA    NOT NULL,
    content_hash BYTEA    NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (cluster_id, number)
);

CREATE TABLE cluster_configurations (
    cluster_id   TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    version      BIGINT NOT NULL,
    spec         BYTEA    NOT NULL,
    content_hash BYTEA    NOT NULL,
    kubeconfig   BIGINT,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (cluster_id, version)
);

CREATE TABLE archives (
    digest     TEXT COLLATE "C" PRIMARY KEY,
    content    BYTEA    NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE configuration_archives (
    digest     TEXT COLLATE "C" NOT NULL REFERENCES archives (digest),
    cluster_id TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,
    PRIMARY KEY (digest, cluster_id, version),
    FOREIGN KEY (cluster_id, version) REFERENCES cluster_configurations (cluster_id, version)
);
CREATE INDEX configuration_archives_configuration ON configuration_archives (cluster_id, version);

-- The present of each cluster: one row.
CREATE TABLE cluster_status (
    cluster_id       TEXT COLLATE "C" PRIMARY KEY REFERENCES clusters (id),
    name             TEXT COLLATE "C" NOT NULL,
    state            TEXT COLLATE "C" NOT NULL,
    since            BIGINT NOT NULL,
    observed_version BIGINT NOT NULL,
    reason           BYTEA,
    due_lane         BIGINT NOT NULL,
    next_due_at      BIGINT,
    due_stamp        BIGINT NOT NULL,   -- grows whenever the due time is set
    request_id       TEXT COLLATE "C",               -- of the API call that set it
    failures         BIGINT NOT NULL,
    suspended_until  BIGINT,
    last_check_at    BIGINT,
    changes          BIGINT NOT NULL    -- rows of history so far
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX cluster_status_due ON cluster_status (due_lane, next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX cluster_status_next ON cluster_status (next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX cluster_status_state ON cluster_status (state, name);

-- States that ended. Never updated.
CREATE TABLE status_history (
    cluster_id       TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    seq              BIGINT NOT NULL,
    state            TEXT COLLATE "C" NOT NULL,
    observed_version BIGINT NOT NULL,
    reason           BYTEA,
    since            BIGINT NOT NULL,
    until            BIGINT NOT NULL,
    PRIMARY KEY (cluster_id, seq)
);

-- The present of each component of each cluster, its revision and its fence counter.
CREATE TABLE components (
    cluster_id   TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    component    TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,   -- the cluster's
    listed       BIGINT NOT NULL,   -- by the newest configuration
    revision     BIGINT NOT NULL,
    inputs_hash  BYTEA,
    fence        BIGINT NOT NULL,
    operation_id TEXT COLLATE "C",
    kind         TEXT COLLATE "C",
    version      BIGINT,
    state        TEXT COLLATE "C",
    since        BIGINT,
    until        BIGINT,
    reason       BYTEA,
    not_ready    BYTEA,
    PRIMARY KEY (cluster_id, component)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX components_listed ON components (component, name) WHERE listed = 1;

CREATE TABLE reconciliations (
    id          TEXT COLLATE "C" PRIMARY KEY,
    cluster_id  TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    version     BIGINT NOT NULL,
    strategy    TEXT COLLATE "C" NOT NULL,
    due_lane    BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    reason      BYTEA,
    created_at  BIGINT NOT NULL,
    deadline    BIGINT NOT NULL,
    finished_at BIGINT,
    request_id  TEXT COLLATE "C"                  -- of the API call that started it
);
-- At most one live run per cluster, whatever the code does.
CREATE UNIQUE INDEX reconciliations_running ON reconciliations (cluster_id) WHERE state = 'running';
CREATE INDEX reconciliations_deadline ON reconciliations (deadline) WHERE state = 'running';
CREATE INDEX reconciliations_cluster ON reconciliations (cluster_id, id);

-- The queue. Claimable rows have a rank, rows that wake by themselves a wake_at; the rest is in neither index.
CREATE TABLE operations (
    id                TEXT COLLATE "C" PRIMARY KEY,
    reconciliation_id TEXT COLLATE "C" NOT NULL REFERENCES reconciliations (id),
    position          BIGINT NOT NULL,
    cluster_id        TEXT COLLATE "C" NOT NULL,
    component         TEXT COLLATE "C" NOT NULL,
    kind              TEXT COLLATE "C" NOT NULL,
    version           BIGINT NOT NULL,
    due_lane          BIGINT NOT NULL,
    cause             BYTEA    NOT NULL,
    state             TEXT COLLATE "C" NOT NULL,
    reason            BYTEA,
    until             BIGINT,            -- a wait's deadline, a retry's next try
    blocked_by        BIGINT NOT NULL,   -- dependencies that have not succeeded yet
    rank              BIGINT,            -- its place in the queue, while claimable
    wake_at           BIGINT,            -- until, or the end of the lease
    attempt           BIGINT NOT NULL,
    fence             BIGINT NOT NULL,
    lease_owner       TEXT COLLATE "C",
    lease_until       BIGINT,
    stop              TEXT COLLATE "C",
    reports           BIGINT NOT NULL,   -- rows in operation_reports so far
    timeline_entries  BIGINT NOT NULL,
    created_at        BIGINT NOT NULL,
    started_at        BIGINT,
    finished_at       BIGINT
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX operations_ready ON operations (rank) WHERE rank IS NOT NULL;
CREATE INDEX operations_wake ON operations (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX operations_open ON operations (reconciliation_id) WHERE finished_at IS NULL;
CREATE INDEX operations_reconciliation ON operations (reconciliation_id, position);
-- At most one running attempt per component of a cluster, also across runs.
CREATE UNIQUE INDEX operations_running ON operations (cluster_id, component) WHERE state = 'running';

CREATE TABLE operation_dependencies (
    operation_id TEXT COLLATE "C" NOT NULL REFERENCES operations (id),
    depends_on   TEXT COLLATE "C" NOT NULL REFERENCES operations (id),
    PRIMARY KEY (operation_id, depends_on)
);
CREATE INDEX operation_dependencies_reverse ON operation_dependencies (depends_on);

-- What attempts reported: changes of objects (compressed) and what was said (compressed, encrypted). One row a report.
CREATE TABLE operation_reports (
    operation_id TEXT COLLATE "C" NOT NULL REFERENCES operations (id),
    seq          BIGINT NOT NULL,
    attempt      BIGINT NOT NULL,
    at           BIGINT NOT NULL,
    changes      BYTEA,
    entries      BIGINT NOT NULL,
    timeline     BYTEA,
    PRIMARY KEY (operation_id, seq)
);

CREATE TABLE renders (
    cluster_id TEXT COLLATE "C" NOT NULL REFERENCES clusters (id),
    component  TEXT COLLATE "C" NOT NULL,
    revision   BIGINT NOT NULL,
    content    BYTEA    NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (cluster_id, component, revision)
);

CREATE TABLE settings (
    scope      TEXT COLLATE "C" NOT NULL,   -- 'default', 'group:<name>', 'cluster:<id>'
    key        TEXT COLLATE "C" NOT NULL,
    value      TEXT COLLATE "C" NOT NULL,   -- JSON
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
