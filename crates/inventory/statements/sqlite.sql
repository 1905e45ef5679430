CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, min_binary TEXT NOT NULL, applied_by TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT
DELETE FROM archives WHERE digest IN (SELECT digest FROM archives AS a WHERE created_at < $1 AND NOT EXISTS (SELECT 1 FROM configuration_archives c WHERE c.digest = a.digest) LIMIT $2)
DELETE FROM audit WHERE number <= $1
DELETE FROM cluster_configurations WHERE cluster_id = $1
DELETE FROM cluster_configurations WHERE cluster_id = $1 AND version = $2
DELETE FROM cluster_labels WHERE cluster_id = $1
DELETE FROM cluster_status WHERE cluster_id = $1
DELETE FROM clusters WHERE id = $1
DELETE FROM components WHERE cluster_id = $1
DELETE FROM components WHERE cluster_id = $1 AND listed = 0 AND fence = 0 AND operation_id IS NULL
DELETE FROM configuration_archives WHERE cluster_id = $1
DELETE FROM configuration_archives WHERE cluster_id = $1 AND version = $2
DELETE FROM consents WHERE cluster_id = $1
DELETE FROM consents WHERE cluster_id = $1 AND (version < $2 AND NOT (version = (SELECT version FROM clusters WHERE id = $1) OR EXISTS (SELECT 1 FROM operations o WHERE o.id = consents.operation_id AND o.finished_at IS NULL)) OR component = $3 AND given_at IS NULL AND plan <> $4)
DELETE FROM instances WHERE id = $1
DELETE FROM instances WHERE last_seen_at < $1
DELETE FROM kubeconfigs WHERE (cluster_id, number) IN (SELECT k.cluster_id, k.number FROM kubeconfigs AS k JOIN clusters AS c ON c.id = k.cluster_id WHERE k.cluster_id IN (SELECT value FROM json_each($1)) AND k.number < coalesce(c.kubeconfig, 0) AND NOT EXISTS (SELECT 1 FROM cluster_configurations AS v WHERE v.cluster_id = k.cluster_id AND v.kubeconfig = k.number) LIMIT $2)
DELETE FROM kubeconfigs WHERE cluster_id = $1
DELETE FROM operation_dependencies WHERE depends_on IN (SELECT id FROM operations WHERE reconciliation_id IN (SELECT value FROM json_each($1)))
DELETE FROM operation_dependencies WHERE operation_id IN (SELECT id FROM operations WHERE reconciliation_id IN (SELECT value FROM json_each($1)))
DELETE FROM operation_dependencies WHERE operation_id IN (SELECT value FROM json_each($1))
DELETE FROM operation_reports WHERE operation_id = $1 AND seq = $2
DELETE FROM operation_reports WHERE operation_id = $1 AND seq = $2 AND changes IS NULL
DELETE FROM operation_reports WHERE operation_id IN (SELECT id FROM operations WHERE reconciliation_id IN (SELECT value FROM json_each($1)))
DELETE FROM operations WHERE reconciliation_id IN (SELECT value FROM json_each($1))
DELETE FROM reconciliations WHERE id IN (SELECT value FROM json_each($1))
DELETE FROM renders WHERE cluster_id = $1
DELETE FROM renders WHERE cluster_id = $1 AND component = $2
DELETE FROM renders WHERE cluster_id = $1 AND component = $2 AND revision <= $3
DELETE FROM settings WHERE scope = $1 AND key = $2
DELETE FROM settings WHERE scope = 'cluster:' || $1
DELETE FROM status_history WHERE (cluster_id, seq) IN (SELECT h.cluster_id, h.seq FROM status_history AS h WHERE h.cluster_id IN (SELECT value FROM json_each($1)) AND h.until < $2 LIMIT $3)
INSERT INTO archives (digest, content, created_at) VALUES ($1, $2, $3) ON CONFLICT (digest) DO UPDATE SET created_at = $3
INSERT INTO audit (number, at, actor, request_id, action, target, detail, digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
INSERT INTO audit_ends (name, number, digest, mac) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET number = $2, digest = $3, mac = $4
INSERT INTO carried_operations (reconciliation_id, operation_id) SELECT $1, value FROM json_each($2)
INSERT INTO chores (name, owner, fence, lease_until) VALUES ($1, $2, 1, $3) ON CONFLICT (name) DO UPDATE SET owner = $2, fence = chores.fence + 1, lease_until = $3 WHERE chores.lease_until <= $4 AND (chores.done_at IS NULL OR chores.done_at <= $5) RETURNING fence
INSERT INTO cluster_configurations (cluster_id, version, spec, content_hash, kubeconfig, created_at) VALUES ($1, $2, $3, $4, $5, $6)
INSERT INTO cluster_labels (key, value, name, cluster_id) SELECT key, value, $2, $1 FROM json_each($3)
INSERT INTO cluster_status (cluster_id, name, state, since, observed_version, reason, due_lane, next_due_at, due_stamp, request_id, failures, changes) VALUES ($1, $2, $3, $4, 1, NULL, $5, $4, 1, $6, 0, 0)
INSERT INTO clusters (id, name, tenant, cluster_group, labels, version, kubeconfig, created_at) VALUES ($1, $2, NULL, NULL, '{}', 0, NULL, $3) ON CONFLICT DO NOTHING
INSERT INTO components (cluster_id, component, name, listed, revision, fence) SELECT $1, value, $2, 1, 0, 0 FROM json_each($3) WHERE true ON CONFLICT (cluster_id, component) DO UPDATE SET listed = 1 WHERE components.listed = 0
INSERT INTO components (cluster_id, component, name, listed, revision, fence, operation_id, kind, version, state, since) SELECT o.cluster_id, o.component, c.name, 0, 0, 0, o.id, o.kind, o.version, o.state, o.created_at FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE o.id IN (SELECT value FROM json_each($1)) ORDER BY o.position ON CONFLICT (cluster_id, component) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind, version = excluded.version, state = excluded.state, since = excluded.since, until = NULL, reason = NULL
INSERT INTO components (cluster_id, component, name, listed, revision, inputs_hash, fence) VALUES ($1, $2, $3, 0, $4, $5, 0) ON CONFLICT (cluster_id, component) DO UPDATE SET revision = $4, inputs_hash = $5
INSERT INTO configuration_archives (digest, cluster_id, version) SELECT digest, $2, $3 FROM archives WHERE digest = $1 ON CONFLICT DO NOTHING
INSERT INTO consents (cluster_id, version, component, kind, plan, operation_id, deletions, deleted, of_objects, asked_at, until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (cluster_id, version, component, kind, plan) DO UPDATE SET operation_id = excluded.operation_id, asked_at = CASE WHEN consents.used_at IS NULL THEN consents.asked_at ELSE excluded.asked_at END, until = CASE WHEN consents.used_at IS NULL THEN consents.until ELSE excluded.until END, given_at = CASE WHEN consents.used_at IS NULL THEN consents.given_at END, request_id = CASE WHEN consents.used_at IS NULL THEN consents.request_id END, used_at = NULL RETURNING version, component, kind, plan, operation_id, deletions, deleted, of_objects, asked_at, until, given_at, request_id
INSERT INTO encryption_keys (id, purpose, check_value, created_at, active, emptied_at) VALUES ($1, $2, $3, $4, 0, $5)
INSERT INTO instances (id, host, version, started_at, last_seen_at, draining, role) VALUES ($1, $2, $3, $4, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET last_seen_at = $4, draining = $5
INSERT INTO kubeconfigs (cluster_id, number, kind, content, content_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6)
INSERT INTO operation_dependencies (operation_id, depends_on) VALUES ($1, $2)
INSERT INTO operation_reports (operation_id, seq, attempt, at, changes, entries, timeline) VALUES ($1, $2, $3, $4, $5, $6, $7)
INSERT INTO operations (id, reconciliation_id, position, cluster_id, component, kind, version, due_lane, cause, state, blocked_by, rank, attempt, fence, reports, timeline_entries, created_at, tenant) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, 0, 0, 0, 0, $12, $13)
INSERT INTO reconciliations (id, cluster_id, version, strategy, due_lane, state, created_at, deadline, request_id) SELECT $1, cluster_id, $2, $3, $4, 'running', $5, $6, request_id FROM cluster_status WHERE cluster_id = $7
INSERT INTO renders (cluster_id, component, revision, content, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (cluster_id, component, revision) DO NOTHING
INSERT INTO schema_migrations (number, name, min_binary, applied_by, applied_at) VALUES ($1, $2, $3, $4, $5)
INSERT INTO settings (scope, key, value, updated_at) VALUES ($1, $2, $3, $4) ON CONFLICT (scope, key) DO UPDATE SET value = $3, updated_at = $4 WHERE settings.value <> $3
INSERT INTO status_history (cluster_id, seq, state, observed_version, reason, since, until) VALUES ($1, $2, $3, $4, $5, $6, $7)
SELECT (SELECT count(*) FROM cluster_configurations) + (SELECT count(*) FROM cluster_status) + (SELECT count(*) FROM status_history) + (SELECT count(*) FROM components) + (SELECT count(*) FROM reconciliations) + (SELECT count(*) FROM operations) + (SELECT count(*) FROM operation_dependencies) + (SELECT count(*) FROM operation_reports) + (SELECT count(*) FROM carried_operations) + (SELECT count(*) FROM renders)
SELECT 1 FROM archives WHERE digest = $1
SELECT 1 FROM audit LIMIT 1
SELECT 1 FROM clusters WHERE id = $1
SELECT 1 FROM operations WHERE id = $1
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM cluster_labels d CROSS JOIN clusters c ON c.id = d.cluster_id CROSS JOIN cluster_status s ON s.cluster_id = c.id WHERE c.deleted_at IS NULL AND d.key = $8 AND d.value = $9 AND d.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY d.name LIMIT $2
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM cluster_status s CROSS JOIN clusters c ON c.id = s.cluster_id WHERE c.deleted_at IS NULL AND s.state = $3 AND s.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY s.name LIMIT $2
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id WHERE c.deleted_at IS NULL AND c.cluster_group = $5 AND c.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY c.name LIMIT $2
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id WHERE c.deleted_at IS NULL AND c.tenant = $4 AND c.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY c.name LIMIT $2
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id WHERE c.deleted_at IS NULL AND true AND c.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY c.name LIMIT $2
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM clusters c JOIN cluster_status s ON s.cluster_id = c.id WHERE c.id = $1
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM clusters c JOIN cluster_status s ON s.cluster_id = c.id WHERE c.name = $1 AND c.deleted_at IS NULL
SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM components d CROSS JOIN clusters c ON c.id = d.cluster_id CROSS JOIN cluster_status s ON s.cluster_id = c.id WHERE c.deleted_at IS NULL AND d.component = $6 AND d.listed = 1 AND d.name > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) AND ($5 IS NULL OR c.cluster_group = $5) AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) AND NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY d.name LIMIT $2
SELECT c.name, k.revision, k.inputs_hash FROM clusters c LEFT JOIN components k ON k.cluster_id = c.id AND k.component = $2 WHERE c.id = $1 AND c.deleted_at IS NULL
SELECT cluster_id, CASE WHEN substr(reason, 1, 6) = $1 THEN NULL ELSE reason END FROM cluster_status WHERE (cluster_id) > ($3) ORDER BY cluster_id LIMIT $2
SELECT cluster_id, component, CASE WHEN substr(not_ready, 1, 6) = $1 THEN NULL ELSE not_ready END FROM components WHERE (cluster_id, component) > ($3, $4) ORDER BY cluster_id, component LIMIT $2
SELECT cluster_id, component, CASE WHEN substr(reason, 1, 6) = $1 THEN NULL ELSE reason END FROM components WHERE (cluster_id, component) > ($3, $4) ORDER BY cluster_id, component LIMIT $2
SELECT cluster_id, component, revision, CASE WHEN substr(content, 1, 6) = $1 THEN NULL ELSE content END FROM renders WHERE (cluster_id, component, revision) > ($3, $4, $5) ORDER BY cluster_id, component, revision LIMIT $2
SELECT cluster_id, component, revision, substr(content, 1, CAST($1 AS INTEGER)) FROM renders WHERE (cluster_id, component, revision) > ($3, $4, $5) ORDER BY cluster_id, component, revision LIMIT $2
SELECT cluster_id, component, substr(not_ready, 1, CAST($1 AS INTEGER)) FROM components WHERE (cluster_id, component) > ($3, $4) ORDER BY cluster_id, component LIMIT $2
SELECT cluster_id, component, substr(reason, 1, CAST($1 AS INTEGER)) FROM components WHERE (cluster_id, component) > ($3, $4) ORDER BY cluster_id, component LIMIT $2
SELECT cluster_id, number, CASE WHEN substr(content, 1, 6) = $1 THEN NULL ELSE content END FROM kubeconfigs WHERE (cluster_id, number) > ($3, $4) ORDER BY cluster_id, number LIMIT $2
SELECT cluster_id, number, substr(content, 1, CAST($1 AS INTEGER)) FROM kubeconfigs WHERE (cluster_id, number) > ($3, $4) ORDER BY cluster_id, number LIMIT $2
SELECT cluster_id, seq, CASE WHEN substr(reason, 1, 6) = $1 THEN NULL ELSE reason END FROM status_history WHERE (cluster_id, seq) > ($3, $4) ORDER BY cluster_id, seq LIMIT $2
SELECT cluster_id, seq, substr(reason, 1, CAST($1 AS INTEGER)) FROM status_history WHERE (cluster_id, seq) > ($3, $4) ORDER BY cluster_id, seq LIMIT $2
SELECT cluster_id, substr(reason, 1, CAST($1 AS INTEGER)) FROM cluster_status WHERE (cluster_id) > ($3) ORDER BY cluster_id LIMIT $2
SELECT cluster_id, version, CASE WHEN substr(spec, 1, 6) = $1 THEN NULL ELSE spec END FROM cluster_configurations WHERE (cluster_id, version) > ($3, $4) ORDER BY cluster_id, version LIMIT $2
SELECT cluster_id, version, substr(spec, 1, CAST($1 AS INTEGER)) FROM cluster_configurations WHERE (cluster_id, version) > ($3, $4) ORDER BY cluster_id, version LIMIT $2
SELECT coalesce(tenant, '') AS tenant, component, count(*) AS running FROM operations INDEXED BY operations_running WHERE state = 'running' GROUP BY 1, 2
SELECT component FROM operations WHERE cluster_id = $1 AND state = 'running'
SELECT component, id FROM operations WHERE reconciliation_id = $1 AND state = 'pending' AND attempt = 0 ORDER BY position
SELECT component, listed, operation_id, kind, version, state, since, until, reason, revision, not_ready FROM components WHERE cluster_id = $1 AND (listed = 1 OR (operation_id IS NOT NULL AND NOT (kind = 'delete' AND state = 'succeeded'))) ORDER BY component
SELECT component, not_ready FROM components WHERE cluster_id = $1 AND not_ready IS NOT NULL
SELECT content FROM archives WHERE digest = $1
SELECT content FROM renders WHERE cluster_id = $1 AND component = $2 AND revision = $3
SELECT content_hash FROM cluster_configurations WHERE cluster_id = $1 AND version = $2
SELECT d.cluster_id, d.name, d.due_lane, d.next_due_at, d.due_stamp, d.request_id, c.tenant, c.version FROM (SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status WHERE due_lane = 0 AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l UNION ALL SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status WHERE due_lane = 1 AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l UNION ALL SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status WHERE due_lane = 2 AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l UNION ALL SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status WHERE due_lane = 3 AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l UNION ALL SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status WHERE due_lane = 4 AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l) d JOIN clusters c ON c.id = d.cluster_id ORDER BY d.next_due_at + d.due_lane * 3600000, d.due_lane LIMIT $2
SELECT d.operation_id, d.depends_on FROM operations o JOIN operation_dependencies d ON d.operation_id = o.id WHERE o.reconciliation_id = $1
SELECT depends_on FROM operation_dependencies WHERE operation_id = $1
SELECT draining FROM instances WHERE id = $1
SELECT id FROM operations WHERE previous IS NOT NULL AND previous = reconciliation_id AND state = 'waiting' LIMIT $1
SELECT id FROM reconciliations AS r WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM operations INDEXED BY operations_open WHERE reconciliation_id = r.id AND finished_at IS NULL) ORDER BY deadline LIMIT $1
SELECT id FROM reconciliations AS r WHERE state = 'running' AND deadline <= $2 AND NOT EXISTS (SELECT 1 FROM operations INDEXED BY operations_open WHERE reconciliation_id = r.id AND finished_at IS NULL AND state = 'waiting' AND until > $2) ORDER BY deadline LIMIT $1
SELECT id FROM reconciliations WHERE cluster_id = $1 AND state = 'running'
SELECT id FROM reconciliations WHERE cluster_id IN (SELECT value FROM json_each($1)) LIMIT $2
SELECT id FROM reconciliations WHERE id IN (SELECT value FROM json_each($1)) AND finished_at IS NOT NULL
SELECT id, CASE WHEN substr(cause, 1, 6) = $1 THEN NULL ELSE cause END FROM operations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, CASE WHEN substr(reason, 1, 6) = $1 THEN NULL ELSE reason END FROM operations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, CASE WHEN substr(reason, 1, 6) = $1 THEN NULL ELSE reason END FROM reconciliations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, component FROM operations WHERE cluster_id = $1 AND state = 'running' AND reconciliation_id <> $2 ORDER BY id
SELECT id, deleted_at FROM clusters WHERE id > $1 ORDER BY id LIMIT $2
SELECT id, host, version, role, started_at, last_seen_at, draining FROM instances WHERE last_seen_at >= $1 ORDER BY last_seen_at DESC LIMIT $2
SELECT id, name, version, kubeconfig, deleted_at IS NOT NULL AS deleted FROM clusters WHERE id = $1
SELECT id, name, version, kubeconfig, deleted_at IS NOT NULL AS deleted FROM clusters WHERE name = $1 AND deleted_at IS NULL
SELECT id, purpose, check_value, created_at, active, replaced_at, emptied_at, removed_at FROM encryption_keys ORDER BY id
SELECT id, reconciliation_id, cluster_id, component, kind, state, due_lane, fence, attempt, stop, reports, timeline_entries, reason, lease_owner FROM operations WHERE id IN (SELECT value FROM json_each($1))
SELECT id, reconciliation_id, cluster_id, component, kind, state, due_lane, fence, attempt, stop, reports, timeline_entries, reason, lease_owner FROM operations WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2
SELECT id, reconciliation_id, component, kind, version, cause, state, reason, until, attempt, fence, lease_owner, lease_until, stop, created_at, started_at, finished_at FROM operations WHERE id = $1
SELECT id, reconciliation_id, component, kind, version, cause, state, reason, until, attempt, fence, lease_owner, lease_until, stop, created_at, started_at, finished_at FROM operations WHERE id IN (SELECT operation_id FROM carried_operations WHERE reconciliation_id = $1) ORDER BY id
SELECT id, reconciliation_id, component, kind, version, cause, state, reason, until, attempt, fence, lease_owner, lease_until, stop, created_at, started_at, finished_at FROM operations WHERE reconciliation_id = $1 ORDER BY position
SELECT id, request_id FROM reconciliations WHERE cluster_id = $1 AND ($2 IS NULL OR id <= $2) ORDER BY id DESC LIMIT $3
SELECT id, substr(cause, 1, CAST($1 AS INTEGER)) FROM operations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, substr(reason, 1, CAST($1 AS INTEGER)) FROM operations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, substr(reason, 1, CAST($1 AS INTEGER)) FROM reconciliations WHERE (id) > ($3) ORDER BY id LIMIT $2
SELECT id, version, strategy, due_lane, state, reason, created_at, deadline, finished_at FROM reconciliations WHERE cluster_id = $1 AND ($2 IS NULL OR id < $2) ORDER BY id DESC LIMIT $3
SELECT id, version, strategy, due_lane, state, reason, created_at, deadline, finished_at FROM reconciliations WHERE cluster_id = $1 AND state = 'running'
SELECT id, version, strategy, due_lane, state, reason, created_at, deadline, finished_at FROM reconciliations WHERE id = $1
SELECT k.number, k.kind, k.content FROM clusters c JOIN kubeconfigs k ON k.cluster_id = c.id AND k.number = c.kubeconfig WHERE c.id = $1
SELECT key, value FROM settings
SELECT kube_system_uid, (SELECT id FROM clusters WHERE kube_system_uid = $2 AND deleted_at IS NULL AND id <> $1) AS holder FROM clusters WHERE id = $1 AND deleted_at IS NULL
SELECT max(rank) FROM operations WHERE tenant = $1 AND due_lane = $2 AND rank IS NOT NULL
SELECT min(next_due_at) FROM cluster_status WHERE next_due_at > $1
SELECT min(wake_at) FROM operations WHERE wake_at IS NOT NULL
SELECT name FROM clusters WHERE id = $1
SELECT name FROM clusters WHERE id = $1 AND deleted_at IS NULL
SELECT number, at, actor, request_id, action, target, detail, digest FROM audit WHERE number < $1 AND ($3 IS NULL OR target = $3) AND ($4 IS NULL OR actor = $4) AND ($5 IS NULL OR at >= $5) AND ($6 IS NULL OR at < $6) ORDER BY number DESC LIMIT $2
SELECT number, at, actor, request_id, action, target, detail, digest FROM audit WHERE number < $1 AND target = $3 AND ($4 IS NULL OR actor = $4) AND ($5 IS NULL OR at >= $5) AND ($6 IS NULL OR at < $6) ORDER BY number DESC LIMIT $2
SELECT number, at, actor, request_id, action, target, detail, digest FROM audit WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3
SELECT number, content_hash FROM kubeconfigs WHERE cluster_id = $1 ORDER BY number DESC LIMIT 1
SELECT number, digest FROM audit WHERE number > $1 AND at < $2 ORDER BY number LIMIT $3
SELECT number, digest, mac FROM audit_ends WHERE name = 'anchor'
SELECT number, digest, mac FROM audit_ends WHERE name = 'head'
SELECT number, min_binary FROM schema_migrations ORDER BY number DESC LIMIT 1
SELECT number, name FROM schema_migrations ORDER BY number
SELECT o.id FROM consents c JOIN operations o ON o.id = c.operation_id WHERE c.given_at IS NOT NULL AND c.used_at IS NULL AND o.state = 'waiting' ORDER BY c.given_at LIMIT $1
SELECT o.id, o.cluster_id, o.component, coalesce(o.tenant, '') AS tenant, r.strategy, r.deadline, r.request_id FROM operations o CROSS JOIN reconciliations r ON r.id = o.reconciliation_id WHERE o.rank IS NOT NULL AND coalesce(o.tenant, '') NOT IN (SELECT value FROM json_each($2)) AND o.component NOT IN (SELECT value FROM json_each($3)) AND NOT EXISTS (SELECT 1 FROM operations other WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') ORDER BY o.rank LIMIT $1
SELECT o.id, o.cluster_id, o.component, r.strategy, r.deadline, r.request_id FROM operations o CROSS JOIN reconciliations r ON r.id = o.reconciliation_id WHERE o.rank IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations other WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') ORDER BY o.rank LIMIT $1
SELECT o.reconciliation_id, o.id, o.component, o.position, p.seq, p.attempt, p.changes FROM operations AS o CROSS JOIN operation_reports AS p WHERE o.reconciliation_id IN (SELECT value FROM json_each($1)) AND p.operation_id = o.id AND p.changes IS NOT NULL AND ($2 IS NULL OR o.component = $2) ORDER BY o.reconciliation_id, o.position, p.seq
SELECT operation_id, seq, CASE WHEN substr(timeline, 1, 6) = $1 THEN NULL ELSE timeline END FROM operation_reports WHERE (operation_id, seq) > ($3, $4) ORDER BY operation_id, seq LIMIT $2
SELECT operation_id, seq, substr(timeline, 1, CAST($1 AS INTEGER)) FROM operation_reports WHERE (operation_id, seq) > ($3, $4) ORDER BY operation_id, seq LIMIT $2
SELECT r.id FROM clusters AS c CROSS JOIN reconciliations AS r WHERE c.id IN (SELECT value FROM json_each($1)) AND r.cluster_id = c.id AND r.finished_at IS NOT NULL AND r.id < (SELECT max(n.id) FROM reconciliations AS n WHERE n.cluster_id = c.id) AND ((r.state <> 'failed' AND (r.id < c.id || '--' || $2 OR r.id < coalesce((SELECT k.id FROM reconciliations AS k WHERE k.cluster_id = c.id ORDER BY k.id DESC LIMIT 1 OFFSET $4), ''))) OR (r.state = 'failed' AND r.id < c.id || '--' || $3)) AND NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.reconciliation_id = r.id AND o.finished_at IS NULL) ORDER BY r.id LIMIT $5
SELECT reconciliation_id, count(*) FROM operations INDEXED BY operations_open WHERE reconciliation_id IN (SELECT value FROM json_each($1)) AND finished_at IS NULL GROUP BY reconciliation_id
SELECT s.scope, s.value FROM clusters c JOIN settings s ON s.key = $2 AND s.scope IN ('default', 'group:' || c.cluster_group, 'cluster:' || c.id) WHERE c.id = $1 ORDER BY CASE s.scope WHEN 'default' THEN 2 WHEN 'cluster:' || c.id THEN 0 ELSE 1 END LIMIT 1
SELECT s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.changes, c.version, coalesce(c.tenant, '') AS tenant, c.deletion_requested_at IS NOT NULL AS deleting FROM cluster_status s JOIN clusters c ON c.id = s.cluster_id WHERE s.cluster_id = $1
SELECT scope, key, value FROM settings WHERE (scope, key) > ($1, $2) ORDER BY scope, key LIMIT $3
SELECT seq, changes FROM operation_reports WHERE operation_id = $1 AND changes IS NOT NULL ORDER BY seq
SELECT seq, entries FROM operation_reports WHERE operation_id = $1 AND timeline IS NOT NULL ORDER BY seq LIMIT 1
SELECT seq, state, observed_version, reason, since, until FROM status_history WHERE cluster_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3
SELECT seq, timeline FROM operation_reports WHERE operation_id = $1 AND timeline IS NOT NULL ORDER BY seq
SELECT state, (SELECT count(*) FROM operations INDEXED BY operations_open WHERE reconciliation_id = $1 AND finished_at IS NULL) AS open FROM reconciliations WHERE id = $1
SELECT state, count(*) FROM cluster_status WHERE state <> 'deleted' GROUP BY state
SELECT timeline FROM operation_reports WHERE operation_id = $1 AND seq = $2 AND attempt = $3 AND changes IS NULL AND timeline IS NOT NULL AND entries < $4
SELECT total_changes()
SELECT v.cluster_id, v.version FROM clusters AS c CROSS JOIN cluster_configurations AS v WHERE c.id IN (SELECT value FROM json_each($1)) AND v.cluster_id = c.id AND v.version <= c.version - $2 AND NOT EXISTS (SELECT 1 FROM cluster_status AS s WHERE s.cluster_id = c.id AND s.observed_version = v.version) AND NOT EXISTS (SELECT 1 FROM components AS k WHERE k.cluster_id = c.id AND k.version = v.version) AND NOT EXISTS (SELECT 1 FROM reconciliations AS r WHERE r.cluster_id = c.id AND r.version = v.version) AND NOT EXISTS (SELECT 1 FROM reconciliations AS r JOIN operations AS o ON o.reconciliation_id = r.id WHERE r.cluster_id = c.id AND o.version = v.version) ORDER BY v.cluster_id, v.version LIMIT $3
SELECT v.version, v.spec, v.kubeconfig, v.created_at FROM clusters c JOIN cluster_configurations v ON v.cluster_id = c.id AND v.version = c.version WHERE c.id = $1
SELECT value FROM settings WHERE scope = $1 AND key = $2
SELECT version FROM clusters WHERE id = $1 AND deleted_at IS NULL
SELECT version, component, kind, plan, operation_id, deletions, deleted, of_objects, asked_at, until, given_at, request_id FROM consents WHERE cluster_id = $1 AND used_at IS NULL AND (version = (SELECT version FROM clusters WHERE id = $1) OR EXISTS (SELECT 1 FROM operations o WHERE o.id = consents.operation_id AND o.finished_at IS NULL)) ORDER BY component, kind, plan
SELECT version, kubeconfig, created_at FROM cluster_configurations WHERE cluster_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3
SELECT version, spec, kubeconfig, created_at FROM cluster_configurations WHERE cluster_id = $1 AND version = $2
UPDATE chores SET lease_until = $3, done_at = coalesce($4, done_at) WHERE name = $1 AND fence = $2 AND lease_until > $5
UPDATE cluster_configurations SET spec = $1 WHERE cluster_id = $3 AND version = $4 AND spec = $2
UPDATE cluster_status SET asked = $2 WHERE cluster_id = $1
UPDATE cluster_status SET asked = NULL WHERE cluster_id = $1
UPDATE cluster_status SET last_check_at = n.checked, next_due_at = CASE WHEN due_stamp = n.stamp THEN max(n.next, coalesce(suspended_until, 0)) ELSE next_due_at END, due_lane = CASE WHEN due_stamp = n.stamp THEN $2 ELSE due_lane END, request_id = CASE WHEN due_stamp = n.stamp THEN NULL ELSE request_id END, asked = CASE WHEN due_stamp = n.stamp THEN NULL ELSE asked END, due_stamp = CASE WHEN due_stamp = n.stamp THEN due_stamp + 1 ELSE due_stamp END FROM (SELECT value ->> 'id' AS id, value ->> 'stamp' AS stamp, value ->> 'checked' AS checked, value ->> 'next' AS next FROM json_each($1)) AS n WHERE cluster_status.cluster_id = n.id AND cluster_status.state <> 'deleted'
UPDATE cluster_status SET next_due_at = $2, due_lane = $3, due_stamp = $4, request_id = CASE WHEN $5 THEN $6 ELSE request_id END WHERE cluster_id = $1
UPDATE cluster_status SET next_due_at = NULL, suspended_until = NULL WHERE cluster_id = $1
UPDATE cluster_status SET reason = $1 WHERE cluster_id = $3 AND reason = $2
UPDATE cluster_status SET state = $2, since = $3, observed_version = $4, reason = $5, due_lane = $6, next_due_at = $7, due_stamp = $8, failures = $9, changes = $10, request_id = CASE WHEN $11 THEN $12 ELSE request_id END WHERE cluster_id = $1
UPDATE cluster_status SET suspended_until = $2 WHERE cluster_id = $1
UPDATE clusters SET deleted_at = $2 WHERE id = $1
UPDATE clusters SET deletion_mode = $2, deletion_requested_at = coalesce(deletion_requested_at, $3) WHERE id = $1
UPDATE clusters SET kube_system_uid = $2 WHERE id = $1
UPDATE clusters SET kube_system_uid = $2 WHERE id = $1 AND deleted_at IS NULL
UPDATE clusters SET tenant = $2, cluster_group = $3, labels = $4, version = $5, kubeconfig = $6 WHERE id = $1
UPDATE components SET fence = CASE WHEN fence < $3 THEN $3 ELSE fence END WHERE cluster_id = $1 AND component = $2
UPDATE components SET fence = fence + 1, state = iif(operation_id IN (SELECT value FROM json_each($1)), 'running', state), since = iif(operation_id IN (SELECT value FROM json_each($1)), $2, since), until = iif(operation_id IN (SELECT value FROM json_each($1)), NULL, until), reason = iif(operation_id IN (SELECT value FROM json_each($1)), NULL, reason) WHERE (cluster_id, component) IN (SELECT o.cluster_id, o.component FROM json_each($1) j CROSS JOIN operations o ON o.id = j.value)
UPDATE components SET listed = 0, not_ready = NULL WHERE cluster_id = $1 AND listed = 1 AND component NOT IN (SELECT value FROM json_each($2))
UPDATE components SET not_ready = $1 WHERE cluster_id = $3 AND component = $4 AND not_ready = $2
UPDATE components SET not_ready = $3 WHERE cluster_id = $1 AND component = $2
UPDATE components SET reason = $1 WHERE cluster_id = $3 AND component = $4 AND reason = $2
UPDATE components SET revision = 0, inputs_hash = NULL WHERE cluster_id = $1 AND component = $2
UPDATE components SET state = $2, since = $3, reason = NULL, until = NULL WHERE (cluster_id, component) IN (SELECT cluster_id, component FROM operations WHERE reconciliation_id = $1 AND state = $2) AND operation_id IN (SELECT id FROM operations WHERE reconciliation_id = $1 AND state = $2)
UPDATE components SET state = n.state, since = iif(components.state = n.state, components.since, n.at), reason = n.reason, until = n.until, not_ready = iif(n.state = 'succeeded', NULL, components.not_ready) FROM (SELECT value ->> 0 AS cluster_id, value ->> 1 AS component, value ->> 2 AS operation_id, value ->> 3 AS state, value ->> 4 AS at, unhex(value ->> 5) AS reason, value ->> 6 AS until FROM json_each($1)) AS n WHERE components.cluster_id = n.cluster_id AND components.component = n.component AND components.operation_id = n.operation_id
UPDATE consents SET given_at = coalesce(given_at, $6), request_id = CASE WHEN given_at IS NULL THEN $7 ELSE request_id END WHERE cluster_id = $1 AND version = $2 AND component = $3 AND kind = $4 AND plan = $5 AND used_at IS NULL AND (version = (SELECT version FROM clusters WHERE id = $1) OR EXISTS (SELECT 1 FROM operations o WHERE o.id = consents.operation_id AND o.finished_at IS NULL)) RETURNING version, component, kind, plan, operation_id, deletions, deleted, of_objects, asked_at, until, given_at, request_id
UPDATE consents SET used_at = $3 WHERE cluster_id = $1 AND component = $2 AND given_at IS NOT NULL AND used_at IS NULL
UPDATE encryption_keys SET active = 0, replaced_at = $1, emptied_at = NULL WHERE active = 1
UPDATE encryption_keys SET active = 1, replaced_at = NULL, emptied_at = NULL WHERE id = $1
UPDATE encryption_keys SET emptied_at = $1 WHERE purpose = 'data' AND active = 0 AND removed_at IS NULL AND emptied_at IS NULL AND coalesce(replaced_at, 0) <= $2
UPDATE encryption_keys SET emptied_at = NULL WHERE id = $1
UPDATE encryption_keys SET removed_at = coalesce(removed_at, $2) WHERE id = $1 AND active = 0
UPDATE kubeconfigs SET content = $1 WHERE cluster_id = $3 AND number = $4 AND content = $2
UPDATE operation_reports SET timeline = $1 WHERE operation_id = $3 AND seq = $4 AND timeline = $2
UPDATE operation_reports SET timeline = NULL WHERE operation_id = $1 AND seq = $2
UPDATE operations SET blocked_by = blocked_by - n.done, rank = CASE WHEN blocked_by = n.done AND state = 'pending' THEN $2 + due_lane * $3 ELSE rank END FROM (SELECT operation_id, count(*) AS done FROM operation_dependencies WHERE depends_on IN (SELECT value FROM json_each($1)) GROUP BY operation_id) AS n WHERE operations.id = n.operation_id
UPDATE operations SET cause = $1 WHERE id = $3 AND cause = $2
UPDATE operations SET lease_until = $2, wake_at = $2 FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence FROM json_each($1)) AS h WHERE operations.id = h.id AND operations.fence = h.fence AND operations.state = 'running' RETURNING operations.id, operations.fence, operations.stop
UPDATE operations SET position = $2, due_lane = $3, blocked_by = $4, state = $5, reason = CASE WHEN state = 'retrying' THEN NULL ELSE reason END, until = CASE WHEN state = 'retrying' THEN NULL ELSE until END, wake_at = CASE WHEN state = 'retrying' THEN NULL ELSE wake_at END, rank = CASE WHEN state NOT IN ('pending', 'retrying') OR $4 > 0 THEN NULL WHEN rank < $6 THEN rank ELSE $6 END WHERE id = $1
UPDATE operations SET previous = CASE WHEN previous = reconciliation_id THEN $1 ELSE previous END, reconciliation_id = $1 WHERE id IN (SELECT value FROM json_each($2))
UPDATE operations SET rank = $2, wake_at = NULL WHERE id = $1
UPDATE operations SET reason = $1 WHERE id = $3 AND reason = $2
UPDATE operations SET reports = $2, timeline_entries = $3 WHERE id = $1
UPDATE operations SET state = $2, finished_at = $3, reason = NULL, until = NULL, rank = NULL, wake_at = NULL, previous = NULL WHERE reconciliation_id = $1 AND finished_at IS NULL AND state <> 'running'
UPDATE operations SET state = 'pending', rank = $2, wake_at = NULL, lease_owner = NULL, lease_until = NULL WHERE id = $1
UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, previous = NULL, rank = CASE WHEN blocked_by = 0 THEN $2 + due_lane * $3 END WHERE previous IN (SELECT value FROM json_each($1)) AND state = 'waiting' RETURNING id
UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, previous = NULL, rank = CASE WHEN blocked_by = 0 THEN $2 END WHERE id = $1
UPDATE operations SET state = 'running', reason = NULL, until = NULL, rank = NULL, wake_at = $2, attempt = attempt + 1, lease_owner = $3, lease_until = $2, started_at = coalesce(started_at, $4), fence = coalesce((SELECT c.fence FROM components c WHERE c.cluster_id = operations.cluster_id AND c.component = operations.component), fence + 1) WHERE id IN (SELECT value FROM json_each($1)) RETURNING id, reconciliation_id, cluster_id, component, kind, version, due_lane, cause, attempt, fence
UPDATE operations SET state = 'waiting', reason = $2, until = $3, wake_at = $3, rank = NULL, previous = $4 WHERE id = $1
UPDATE operations SET state = n.state, reason = n.reason, finished_at = n.at, until = NULL, rank = NULL, wake_at = NULL, lease_owner = NULL, lease_until = NULL, stop = NULL, previous = NULL FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, unhex(value ->> 2) AS reason, value ->> 3 AS at FROM json_each($1)) AS n WHERE operations.id = n.id
UPDATE operations SET state = n.state, reason = n.reason, until = n.until, wake_at = n.until, rank = n.rank, attempt = n.attempt, previous = n.previous, lease_owner = NULL, lease_until = NULL FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, unhex(value ->> 2) AS reason, value ->> 3 AS until, value ->> 4 AS rank, value ->> 5 AS attempt, value ->> 6 AS previous FROM json_each($1)) AS n WHERE operations.id = n.id
UPDATE operations SET stop = $2 WHERE reconciliation_id = $1 AND finished_at IS NULL AND stop IS NULL
UPDATE reconciliations SET deadline = CASE WHEN deadline < $2 THEN $2 ELSE deadline END WHERE id = (SELECT reconciliation_id FROM operations WHERE id = $1)
UPDATE reconciliations SET reason = $1 WHERE id = $3 AND reason = $2
UPDATE reconciliations SET state = $2, finished_at = $3 WHERE cluster_id = $1 AND state = 'running' RETURNING id
UPDATE reconciliations SET state = $2, reason = $3, finished_at = $4 WHERE id = $1
UPDATE renders SET content = $1 WHERE cluster_id = $3 AND component = $4 AND revision = $5 AND content = $2
UPDATE status_history SET reason = $1 WHERE cluster_id = $3 AND seq = $4 AND reason = $2
WITH RECURSIVE dependent (operation) AS (SELECT operation_id FROM operation_dependencies WHERE depends_on = $1 UNION SELECT d.operation_id FROM dependent JOIN operation_dependencies d ON d.depends_on = dependent.operation) SELECT id, reconciliation_id, cluster_id, component, kind, state, due_lane, fence, attempt, stop, reports, timeline_entries, reason, lease_owner FROM operations WHERE id IN (SELECT operation FROM dependent) AND finished_at IS NULL AND state <> 'running' ORDER BY position
