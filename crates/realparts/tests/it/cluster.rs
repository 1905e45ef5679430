use evenkeel_realparts::{ControlPlane, Error};

use crate::support::{ask, cluster, expect, kubectl};

#[test]
fn it_has_the_version_it_is_stamped_with() {
    let version = ask(cluster(), &["version", "-o", "json"]);
    assert!(version.contains(r#""gitVersion": "v1.37.2""#), "{version}");
}

#[test]
fn requests_are_counted_exactly_and_by_client() {
    let cluster = cluster();
    let mark = cluster.audit().mark().unwrap();
    for _ in 0..20 {
        ask(
            cluster,
            &["get", "--raw", "/api/v1/namespaces/default/configmaps?limit=7"],
        );
        let all = cluster.audit().since(mark).unwrap();
        let last = all
            .iter()
            .rfind(|request| request.uri.ends_with("configmaps?limit=7"))
            .unwrap();
        assert_eq!(
            (last.verb.as_str(), last.resource.as_str(), last.user.as_str()),
            ("list", "configmaps", "admin")
        );
        assert!(last.user_agent.starts_with("kubectl/"), "{last:?}");
        assert!(!last.is_write());
    }
    let all = cluster.audit().since(mark).unwrap();
    assert_eq!(
        all.iter()
            .filter(|request| request.uri.ends_with("configmaps?limit=7"))
            .count(),
        20
    );
    // Neither controllers nor stand-ins are counted; the visitor is another test's.
    let others: Vec<_> = all
        .iter()
        .filter(|request| !["admin", "visitor"].contains(&request.user.as_str()))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn another_user_has_no_rights_until_it_is_given_some() {
    let cluster = cluster();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        cluster.kubeconfig_for("visitor", Some("visitors")).unwrap(),
    )
    .unwrap();
    let path = file.path().to_str().unwrap();
    let refused = kubectl(cluster, &["--kubeconfig", path, "get", "nodes"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        message.contains(r#"nodes is forbidden: User "visitor" cannot list resource "nodes""#),
        "{message}"
    );
    ask(
        cluster,
        &[
            "create",
            "clusterrole",
            "see-nodes",
            "--verb=list",
            "--resource=nodes",
        ],
    );
    ask(
        cluster,
        &[
            "create",
            "clusterrolebinding",
            "see-nodes",
            "--clusterrole=see-nodes",
            "--group=visitors",
        ],
    );
    expect(
        cluster,
        &["--kubeconfig", path, "get", "nodes", "-o", "name"],
        "node/node-0",
    );
}

#[test]
fn clusters_of_one_control_plane_share_nothing_and_survive_their_server() {
    let control_plane = ControlPlane::start().unwrap();
    assert!(matches!(
        control_plane.start_cluster("No Name"),
        Err(Error::ClusterName { .. })
    ));
    let started = std::time::Instant::now();
    let one = control_plane.start_cluster("one").unwrap();
    eprintln!("a cluster started in {:.1} s", started.elapsed().as_secs_f64());
    let two = control_plane.start_cluster("two").unwrap();

    let uid = [
        "get",
        "namespace",
        "kube-system",
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    assert_ne!(ask(&one, &uid), ask(&two, &uid));
    ask(&one, &["create", "configmap", "mine", "--from-literal=a=b"]);
    assert!(!kubectl(&two, &["get", "configmap", "mine"]).status.success());

    // The credentials of one are worth nothing at the other.
    let foreign = kubectl(
        &one,
        &[
            "--server",
            &two.url(),
            "--insecure-skip-tls-verify",
            "--certificate-authority=",
            "get",
            "nodes",
        ],
    );
    assert!(!foreign.status.success());

    one.stop_api_server();
    let refused = kubectl(&one, &["get", "nodes"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("refused"),
        "{refused:?}"
    );
    one.start_api_server().unwrap();
    one.start_api_server().unwrap();
    assert_eq!(
        ask(&one, &["get", "configmap", "mine", "-o", "jsonpath={.data.a}"]),
        "b"
    );

    let folder = control_plane.folder().to_owned();
    drop((one, two, control_plane));
    let started = std::time::Instant::now();
    while folder.exists() {
        assert!(
            started.elapsed() < crate::support::BOUND,
            "{} is left behind",
            folder.display()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
