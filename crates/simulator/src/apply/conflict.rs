//! Conflicts as the API server words them.

use std::collections::BTreeMap;

use super::managed::{ManagerId, Operation};
use super::path::path_text;
use super::updater::Conflict;
use crate::status::{ApiError, Cause};

fn manager_text(id: &ManagerId) -> String {
    let mut text = format!("{:?}", id.name);
    if !id.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", id.subresource));
    }
    if id.operation == Operation::Update {
        text.push_str(&format!(" using {}", id.api_version));
    }
    text
}

/// The 409 answer with one cause for each conflicting field.
pub(crate) fn error(conflicts: &[Conflict]) -> ApiError {
    let causes = conflicts
        .iter()
        .map(|conflict| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", manager_text(&conflict.manager)),
            field: path_text(&conflict.path),
        })
        .collect();
    let message = match conflicts {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            manager_text(&one.manager),
            path_text(&one.path)
        ),
        many => {
            let mut by_manager: BTreeMap<&ManagerId, Vec<String>> = BTreeMap::new();
            for conflict in many {
                by_manager
                    .entry(&conflict.manager)
                    .or_default()
                    .push(path_text(&conflict.path));
            }
            let mut lines = Vec::new();
            for (manager, paths) in by_manager {
                lines.push(format!("conflicts with {}:", manager_text(manager)));
                lines.extend(paths.into_iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    ApiError::conflict_causes(message, causes)
}
