//! The ways to change a part of an object.

/// The content type of a PATCH.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PatchKind {
    /// Server-side apply. JSON is YAML.
    Apply,
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
}

impl PatchKind {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Apply => "application/apply-patch+yaml",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}
