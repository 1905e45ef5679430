//! The components of clusters: which are listed, their newest operations, fences and revisions.

use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterId, ClusterSpec, ComponentName, ComponentRevision, Fence, OperationId, OperationState,
    OperationStateKind, Strategy,
};

use super::Transaction;
use super::rows::{ComponentRow, Rows};
use crate::sql::rows::moment;
use crate::{ComponentOperation, ComponentStatus, Error};

impl Rows {
    pub(super) fn components_of<'r>(
        &'r self,
        cluster: &'r ClusterId,
    ) -> impl Iterator<Item = (&'r ComponentName, &'r ComponentRow)> + 'r {
        let of_cluster = self.components.iter().filter(move |((id, _), _)| id == cluster);
        of_cluster.map(|((_, name), row)| (name, row))
    }

    /// Those listed, and those being removed.
    pub(super) fn component_statuses(&self, cluster: &ClusterId) -> Vec<ComponentStatus> {
        let removed = |operation: &ComponentOperation| {
            operation.kind == Strategy::Delete && operation.state == OperationState::Succeeded
        };
        self.components_of(cluster)
            .filter(|(_, row)| row.listed || row.operation.as_ref().is_some_and(|of| !removed(of)))
            .map(|(name, row)| ComponentStatus {
                component: name.clone(),
                listed: row.listed,
                operation: row.operation.clone(),
                revision: row.revision,
                not_ready: row.not_ready.clone(),
            })
            .collect()
    }
}

impl Transaction<'_> {
    /// Marks the components of the newest version. One that was never worked on and is not listed leaves no trace.
    pub(super) fn list_components(&mut self, cluster: &ClusterId, spec: &ClusterSpec) {
        let rows = self.write();
        for component in &spec.components {
            rows.components
                .entry((cluster.clone(), component.name.clone()))
                .or_default()
                .listed = true;
        }
        rows.components.retain(|(id, name), row| {
            if id == cluster && row.listed && !spec.components.iter().any(|component| component.name == *name)
            {
                row.listed = false;
                row.not_ready = None;
            }
            id != cluster || row.listed || row.fence > Fence(0) || row.operation.is_some()
        });
    }

    /// Shows a new operation as its component's.
    pub(super) fn show_new(
        &mut self,
        cluster: &ClusterId,
        component: &ComponentName,
        operation: ComponentOperation,
    ) {
        let key = (cluster.clone(), component.clone());
        self.write().components.entry(key).or_default().operation = Some(operation);
    }

    /// Shows an operation's state as its component's, unless that has a newer operation.
    pub(super) fn show(&mut self, id: &OperationId) {
        let now = moment(self.now);
        let Some(operation) = self.rows.operations.get(id) else {
            return;
        };
        let (state, component) = (operation.state.clone(), operation.component.clone());
        let rows = self.write();
        let Some(row) = rows.components.get_mut(&(id.cluster().clone(), component)) else {
            return;
        };
        let Some(shown) = row.operation.as_mut().filter(|shown| shown.id == *id) else {
            return;
        };
        if shown.state.kind() != state.kind() {
            shown.since = now;
        }
        if state.kind() == OperationStateKind::Succeeded {
            row.not_ready = None;
        }
        shown.state = state;
    }

    /// Writes which components are not ready. Answers whether that is new.
    pub(super) fn write_not_ready(
        &mut self,
        cluster: &ClusterId,
        not_ready: &BTreeMap<ComponentName, String>,
    ) -> bool {
        let mut changed = false;
        for ((of, component), row) in &mut self.write().components {
            let reason = not_ready.get(component);
            if of == cluster && row.not_ready.as_ref() != reason {
                row.not_ready = reason.cloned();
                changed = true;
            }
        }
        changed
    }

    /// Raises a component's fence, at least by one. Answers the new one.
    pub(super) fn next_fence(&mut self, cluster: &ClusterId, component: &ComponentName, of: Fence) -> Fence {
        match self
            .write()
            .components
            .get_mut(&(cluster.clone(), component.clone()))
        {
            Some(row) => {
                row.fence = row.fence.next();
                row.fence
            }
            None => of.next(),
        }
    }

    pub(super) fn raise_fence(
        &mut self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error> {
        let row = self
            .write()
            .components
            .get_mut(&(cluster.clone(), component.clone()));
        let row = row.ok_or_else(|| Error::not_found("component", format!("{cluster}/{component}")))?;
        row.fence = row.fence.max(to);
        Ok(())
    }

    /// A component was deleted: the next install is revision 1 again. The fence stays.
    pub(super) fn forget_revision(&mut self, cluster: &ClusterId, component: &ComponentName) {
        let rows = self.write();
        if let Some(row) = rows.components.get_mut(&(cluster.clone(), component.clone())) {
            row.revision = ComponentRevision(0);
            row.inputs = None;
        }
        rows.renders
            .retain(|(id, name, _), _| id != cluster || name != component);
    }
}
