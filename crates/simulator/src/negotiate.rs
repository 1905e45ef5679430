//! What form of an answer a client asks for in its Accept header.

use crate::status::ApiError;

/// The form of an object, list or event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    /// `PartialObjectMetadata` or its list.
    Metadata,
    /// `Table`, as `kubectl get` prints it.
    Table,
}

const AVAILABLE: &str = "application/json, application/json;stream=watch";

/// The first form in the header that this server can give.
pub(crate) fn form(accept: &str) -> Result<Form, ApiError> {
    if accept.trim().is_empty() {
        return Ok(Form::Plain);
    }
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !["application/json", "application/*", "*/*"].contains(&media) {
            continue;
        }
        let (mut kind, mut group, mut version) = (None, None, None);
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => kind = Some(value),
                Some(("g", value)) => group = Some(value),
                Some(("v", value)) => version = Some(value),
                _ => {}
            }
        }
        match (kind, group, version) {
            (None, _, _) => return Ok(Form::Plain),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => return Ok(Form::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => {
                return Ok(Form::Metadata);
            }
            _ => {}
        }
    }
    Err(ApiError::not_acceptable(AVAILABLE))
}

/// Whether the client takes aggregated discovery.
pub(crate) fn wants_aggregated_discovery(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let has = |part: &str| range.split(';').any(|known| known.trim() == part);
        has("as=APIGroupDiscoveryList") && has("g=apidiscovery.k8s.io") && has("v=v2")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_can_be_given_wins() {
        for (accept, expected) in [
            ("", Form::Plain),
            ("application/json", Form::Plain),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Form::Table,
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
                Form::Plain,
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Form::Plain,
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Form::Metadata,
            ),
            ("text/html, */*;q=0.8", Form::Plain),
        ] {
            assert_eq!(form(accept), Ok(expected), "{accept}");
        }
        assert_eq!(form("text/html").unwrap_err().code, 406);
    }

    #[test]
    fn aggregated_discovery_is_asked_for_by_its_kind() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert!(wants_aggregated_discovery(kubectl));
        assert!(!wants_aggregated_discovery("application/json"));
    }
}
