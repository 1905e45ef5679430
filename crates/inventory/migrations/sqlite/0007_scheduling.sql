-- What a person asked for beyond being looked at, and whose operations wait.

ALTER TABLE cluster_status ADD COLUMN asked TEXT;      -- JSON, until it is acted upon

ALTER TABLE operations ADD COLUMN tenant TEXT;         -- the cluster's, when the operation was made
CREATE INDEX operations_tenant ON operations (tenant, due_lane, rank) WHERE rank IS NOT NULL;
