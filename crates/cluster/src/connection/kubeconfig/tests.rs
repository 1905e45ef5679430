use super::*;

const CA: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJnRENDQVNXZ0F3SUJBZ0lVVnJRZjVkLy9TMDFhMGZiWHhZUkl4OXdjMFZRd0NnWUlLb1pJemowRUF3SXcKRkRFU01CQUdBMVVFQXd3SmRHVnpkQzFqWVMweE1DQVhEVEkyTURNd05ERXpNRGsxTUZvWUR6SXhNall3TWpBNApNVE13T1RVd1dqQVVNUkl3RUFZRFZRUUREQWwwWlhOMExXTmhMVEV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPClBRTUJCd05DQUFSZzV1bVdKUERzQUlFUUFnWHFNT09mak1RUCtQRTlIcWNab2J5Y084ejk0ci91UnVWMHdLeC8KMFN2TXNLRnRucmV1dDBiamdGdG1aYVdZKzZkODdJczlvMU13VVRBZEJnTlZIUTRFRmdRVWp0R3Voa003THRIQgpnTVBDSkl4TXdiWTY5T1F3SHdZRFZSMGpCQmd3Rm9BVWp0R3Voa003THRIQmdNUENKSXhNd2JZNjlPUXdEd1lEClZSMFRBUUgvQkFVd0F3RUIvekFLQmdncWhrak9QUVFEQWdOSkFEQkdBaUVBai9XelBsVkRnL2NCdExxUVZNNzcKdGtCK1F5SVhMRzNWaTlYajFZZlc5UUVDSVFEREZXOHlGdGdMZUNnMlpocjR4UU5xMy8yNHIvMDFrSTJyakZQTwp4QmtETXc9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==";

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: other\n  cluster: {{server: 'https://x'}}\n- name: c\n  cluster: \
         {{server: 'https://127.0.0.1:1', {cluster}}}\nusers:\n- name: u\n  user: {{{user}}}\ncontexts:\n- name: k\n  \
         context: {{cluster: c, user: u}}\ncurrent-context: k\n"
    )
}

async fn refusal(content: &str, policy: &KubeconfigPolicy) -> Option<(String, String)> {
    match read(content, policy).await {
        Err(Error::Kubeconfig { field, reason }) => Some((field, reason)),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[tokio::test]
async fn a_registered_kubeconfig_holds_content_only() {
    for (cluster, user, field) in [
        (
            "certificate-authority: /etc/ca",
            "",
            "clusters[1].cluster.certificate-authority",
        ),
        (
            "insecure-skip-tls-verify: true",
            "",
            "clusters[1].cluster.insecure-skip-tls-verify",
        ),
        ("proxy-url: 'https://p'", "", "clusters[1].cluster.proxy-url"),
        ("proxy-url: 'a b'", "", "clusters[1].cluster.proxy-url"),
        (
            "certificate-authority-data: '%%'",
            "",
            "clusters[1].cluster.certificate-authority-data",
        ),
        (
            "certificate-authority-data: aGVsbG8=",
            "",
            "clusters[1].cluster.certificate-authority-data",
        ),
        (
            "",
            "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}",
            "users[0].user.exec",
        ),
        (
            "",
            "auth-provider: {name: gcp, config: {}}",
            "users[0].user.auth-provider",
        ),
        (
            "",
            "client-certificate: c.pem",
            "users[0].user.client-certificate",
        ),
        ("", "client-key: k.pem", "users[0].user.client-key"),
        ("", "tokenFile: /var/run/token", "users[0].user.tokenFile"),
    ] {
        let found = refusal(&kubeconfig(cluster, user), &KubeconfigPolicy::Registered).await;
        assert_eq!(
            found.map(|(field, _)| field).as_deref(),
            Some(field),
            "{cluster} {user}"
        );
    }
    let good = kubeconfig(&format!("certificate-authority-data: {CA}"), "token: t");
    assert_eq!(refusal(&good, &KubeconfigPolicy::Registered).await, None);
}

#[tokio::test]
async fn what_other_contexts_use_does_not_matter() {
    let content = kubeconfig("", "token: t") + "extra: 1\n";
    let content = content.replace(
        "server: 'https://x'",
        "server: 'https://x', certificate-authority: /etc/ca",
    );
    assert_eq!(refusal(&content, &KubeconfigPolicy::Registered).await, None);
}

#[tokio::test]
async fn faults_name_the_field_and_quote_nothing() {
    for (content, field) in [
        ("users: [{name: u, user: {token: hunter2, exec: 7", "(document)"),
        ("[1,2]", "(document)"),
        ("", "current-context"),
        ("current-context: k\n", "current-context"),
    ] {
        let (found, reason) = refusal(content, &KubeconfigPolicy::Registered)
            .await
            .expect("refused");
        assert_eq!(found, field, "{content}");
        assert!(!reason.contains("hunter2"));
    }
    let clear_text = kubeconfig("", "token: t").replace("https://127", "http://127");
    let (found, _) = refusal(&clear_text, &KubeconfigPolicy::Registered)
        .await
        .expect("refused");
    assert_eq!(found, "clusters[1].cluster.server");
}

#[tokio::test]
async fn the_users_own_may_name_files_and_with_consent_programs() {
    let folder = std::env::temp_dir();
    let own = |allow_exec| KubeconfigPolicy::Own {
        allow_exec,
        base: folder.clone(),
    };
    let file = folder.join(format!("evenkeel-cluster-token-{}", std::process::id()));
    std::fs::write(&file, "t").expect("write");
    let relative = file.file_name().and_then(|name| name.to_str()).expect("name");
    let content = kubeconfig(
        "insecure-skip-tls-verify: true",
        &format!("tokenFile: {relative}"),
    );
    let config = read(&content, &own(false)).await.expect("allowed");
    assert_eq!(config.auth_info.token_file.as_deref(), file.to_str());
    std::fs::remove_file(&file).expect("remove");
    let (field, reason) = refusal(&content, &own(false)).await.expect("refused");
    assert_eq!(field, "users[0].user.tokenFile");
    assert!(reason.contains("cannot be read"), "{reason}");
    let exec = kubeconfig(
        "",
        "exec: {command: 'true', apiVersion: client.authentication.k8s.io/v1}",
    );
    let (field, reason) = refusal(&exec, &own(false)).await.expect("refused");
    assert_eq!(field, "users[0].user.exec");
    assert!(reason.contains("--allow-exec"));
    assert_eq!(refusal(&exec, &own(true)).await, None);
}
