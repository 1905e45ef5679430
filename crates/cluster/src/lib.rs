//! One target cluster: connection, discovery, plan, apply, readiness, prune, delete.
