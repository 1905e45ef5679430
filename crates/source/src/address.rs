//! Addresses as they may be shown, and how one follows from another.

use reqwest::Url;

/// An address without what may be secret: user, password, query, fragment.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for addresses without a host, which hold neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Host, with the port when it is not the scheme's own.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether two addresses lead to the same server by the same scheme.
pub(crate) fn same_origin(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

/// An address as an index writes it: relative to the repository, whose query (often a token) comes along.
pub(crate) fn relative_to(repository: &Url, reference: &str) -> Result<Url, String> {
    if let Ok(absolute) = Url::parse(reference) {
        return Ok(absolute);
    }
    let mut base = repository.clone();
    base.set_path(&format!("{}/", repository.path().trim_end_matches('/')));
    let mut url = base.join(reference).map_err(|error| error.to_string())?;
    url.set_query(repository.query());
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_relative_to_the_repository() {
        for (repository, reference, expected) in [
            ("https://a/x", "index.yaml", "https://a/x/index.yaml"),
            ("https://a/x/", "charts/w.tgz", "https://a/x/charts/w.tgz"),
            ("https://a/x", "/w.tgz", "https://a/w.tgz"),
            ("https://a/x?sig=1", "w.tgz", "https://a/x/w.tgz?sig=1"),
            ("https://a/x?sig=1", "https://b/w.tgz", "https://b/w.tgz"),
            ("https://a/x", "oci://b/w:1.0", "oci://b/w:1.0"),
        ] {
            let url = relative_to(&repository.parse().unwrap(), reference).unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        let url = "https://me:hunter2@a:8443/x?token=hunter2#hunter2"
            .parse()
            .unwrap();
        assert_eq!(shown(&url), "https://a:8443/x");
        assert_eq!(host(&url), "a:8443");
    }
}
