-- A run that takes the place of another carries over what is equal, and waits for what still runs.

-- The running operation of the same component that this one waits for.
ALTER TABLE operations ADD COLUMN previous TEXT;
CREATE INDEX operations_previous ON operations (previous) WHERE previous IS NOT NULL;

-- Which operations a run began with and a later one has carried over.
CREATE TABLE carried_operations (
    reconciliation_id TEXT NOT NULL REFERENCES reconciliations (id) ON DELETE CASCADE,
    operation_id      TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    PRIMARY KEY (reconciliation_id, operation_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX carried_operations_operation ON carried_operations (operation_id);
