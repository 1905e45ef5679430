//! Writes kubeconfigs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::Identity;

/// A kubeconfig with one cluster, one user and one context, all called `cluster`, and everything in it.
pub(super) fn render(cluster: &str, url: &str, authority: &str, identity: &Identity) -> String {
    let authority = STANDARD.encode(authority);
    let certificate = STANDARD.encode(&identity.certificate);
    let key = STANDARD.encode(&identity.key);
    format!(
        r#"apiVersion: v1
kind: Config
clusters:
- name: "{cluster}"
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: "{cluster}"
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: "{cluster}"
  context:
    cluster: "{cluster}"
    user: "{cluster}"
current-context: "{cluster}"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::Authority;

    #[test]
    fn it_is_read_back_by_a_kubernetes_client() {
        let authority = Authority::new("one").unwrap();
        let identity = authority.client("me", Some("us")).unwrap();
        let text = render("one", "https://127.0.0.1:20000", &authority.pem(), &identity);
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("one"));
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:20000"));
    }
}
