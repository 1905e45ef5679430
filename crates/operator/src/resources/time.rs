//! Points in time as the schema knows them.

use schemars::{Schema, SchemaGenerator, json_schema};

/// RFC 3339, as `metav1.Time`.
pub(super) fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}
