//! Faults B26 to B29 of the predecessor: what is changed is what was asked for, all of it, and nothing else.

use evenkeel_operator::resources::{Cluster, DeletionPolicy, Tenant};
use evenkeel_testkit::{CallFault, FaultProxy};
use futures::future::join_all;
use serde_json::{Value, json};

use super::site::{Site, send};

/// A patch of an object's spec and status that the API cannot express is still there afterwards.
#[tokio::test]
async fn b26_put_replaces_what_callers_see_and_nothing_else() {
    let site = Site::new("b26").await;
    site.seed_tenant(
        "t-one",
        json!({
            "displayName": "One",
            "gitRepoURL": "ssh://git@git.example.org/a/one.git",
            "gitRepoRevision": "v1",
            "deletionPolicy": "Retain",
            "clusterTemplate": {"facts": {"from": "template"}},
            "compilePipeline": {"enabled": true, "pipelineFiles": {"a.yml": "b"}},
            "gitRepoTemplate": {
                "path": "a", "repoName": "one", "repoType": "auto",
                "apiSecretRef": {"name": "other"},
                "deployKeys": {"ci": {"type": "ssh-ed25519", "key": "AAAA"}},
                "ciVariables": [{"name": "A", "value": "b"}],
            },
        }),
    )
    .await;
    let marks = json!({"metadata": {"annotations": {"syn.tools/protected-delete": "true", "own": "x"}}});
    let before: Tenant = site.patch("t-one", marks.clone()).await;
    let body = json!({"displayName": "New", "gitRepo": {"url": "ssh://git@git.example.org/b/new.git"}});
    site.call("PUT", "/tenants/t-one", Some(body.clone()))
        .await
        .assert(200);
    let after = site.api::<Tenant>().get("t-one").await.unwrap();
    let mut expected = before.spec.clone();
    expected.display_name = Some("New".to_owned());
    expected.git_repo_url = Some("ssh://git@git.example.org/b/new.git".to_owned());
    expected.git_repo_revision = None;
    let template = expected.git_repo_template.as_mut().unwrap();
    (template.path, template.repo_name) = (Some("b".to_owned()), Some("new".to_owned()));
    assert_eq!(after.spec, expected);
    let annotations = after.metadata.annotations.clone().unwrap();
    assert_eq!(
        annotations.keys().collect::<Vec<_>>(),
        ["syn.tools/protected-delete"]
    );

    site.seed_cluster(
        "c-one",
        json!({
            "tenantRef": {"name": "t-one"},
            "enableCompilePipeline": true,
            "tokenLifeTime": "1h",
            "deletionPolicy": "Delete",
            "facts": {"a": "b"},
            "gitRepoTemplate": {
                "path": "a", "repoName": "c-one",
                "deployKeys": {
                    "ci": {"type": "ssh-ed25519", "key": "AAAA"},
                    "steward": {"type": "ssh-ed25519", "key": "BBBB"},
                },
            },
        }),
        json!({"facts": {"kubernetesVersion": "\"1\""}}),
    )
    .await;
    let _: Cluster = site.patch("c-one", marks).await;
    let body = json!({"tenant": "t-one", "displayName": "C"});
    let answer = site.call("PUT", "/clusters/c-one", Some(body)).await;
    answer.assert(200);
    assert_eq!(answer.json()["dynamicFacts"], json!({"kubernetesVersion": "1"}));
    let spec = site.api::<Cluster>().get("c-one").await.unwrap().spec;
    assert_eq!(spec.enable_compile_pipeline, Some(true));
    assert_eq!(spec.token_life_time.as_deref(), Some("1h"));
    assert_eq!(spec.deletion_policy, Some(DeletionPolicy::Delete));
    assert_eq!(spec.display_name.as_deref(), Some("C"));
    assert!(spec.facts.is_empty());
    let template = spec.git_repo_template.unwrap();
    assert_eq!(template.deploy_keys.keys().collect::<Vec<_>>(), ["ci"]);
    // What was not asked for stays where it is: no address was, or is, seen.
    assert_eq!(template.repo_name.as_deref(), Some("c-one"));
}

#[tokio::test]
async fn b26_put_may_be_repeated_and_takes_the_id_of_the_path() {
    let site = Site::new("b26-id").await;
    let body = json!({"id": "t-other", "gitRepo": {"url": "ssh://git@git.example.org/a/one.git"}});
    site.call("PUT", "/tenants/t-one", Some(body.clone()))
        .await
        .assert(201);
    let again = site.call("PUT", "/tenants/t-one", Some(body.clone())).await;
    again.assert(200);
    assert_eq!(again.json()["id"], "t-one");
    // Not rewritten to t-plain, which the second call could not make again.
    for _ in 0..2 {
        let answer = site.call("PUT", "/tenants/plain", Some(body.clone())).await;
        answer.assert(400);
        assert!(answer.reason().contains("'plain'"), "{}", answer.reason());
    }
    // One that was made otherwise can be replaced, whatever it is called.
    site.seed_tenant(
        "plain",
        json!({"gitRepoURL": "ssh://git@git.example.org/a/x.git"}),
    )
    .await;
    site.call("PUT", "/tenants/plain", Some(body)).await.assert(200);
    // What was read can be put back, and nothing changes.
    let cluster = json!({"id": "c-one", "tenant": "t-one", "facts": {"a": "b"}, "annotations": {"x": "y"},
        "dynamicFacts": {"v": {"w": 1}},
        "gitRepo": {"url": "git@git.example.org:a/c-one.git", "deployKey": "ssh-ed25519 AAAA", "hostKeys": "h"}});
    site.call("POST", "/clusters", Some(cluster)).await.assert(201);
    let read = site.call("GET", "/clusters/c-one", None).await.json();
    assert_eq!(read["dynamicFacts"], json!({"v": {"w": 1}}));
    let before = site.api::<Cluster>().get("c-one").await.unwrap();
    let put = site.call("PUT", "/clusters/c-one", Some(read.clone())).await;
    assert_eq!(put.assert(200).json(), read);
    let after = site.api::<Cluster>().get("c-one").await.unwrap();
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
}

#[tokio::test]
async fn b27_addresses_of_repositories_are_understood() {
    let site = Site::new("b27").await;
    for (id, url, path, name) in [
        (
            "t-a",
            "ssh://git@git.example.org/g/a.github.io.git",
            "g",
            "a.github.io",
        ),
        ("t-b", "git@git.example.org:g/sub/b.git", "g/sub", "b"),
        ("t-c", "https://git.example.org/g/c", "g", "c"),
    ] {
        let body = json!({"id": id, "gitRepo": {"url": url}});
        let answer = site.call("POST", "/tenants", Some(body)).await;
        assert_eq!(answer.assert(201).json()["gitRepo"]["url"], url);
        let template = site
            .api::<Tenant>()
            .get(id)
            .await
            .unwrap()
            .spec
            .git_repo_template
            .unwrap();
        assert_eq!(template.path.as_deref(), Some(path), "{url}");
        assert_eq!(template.repo_name.as_deref(), Some(name), "{url}");
        assert_eq!(template.api_secret_ref.unwrap().name.as_deref(), Some("git"));
    }
    let body = json!({"tenant": "t-a", "gitRepo": {"url": "nonsense"}});
    let answer = site.call("POST", "/clusters", Some(body)).await;
    answer.assert(400);
    assert!(
        answer
            .reason()
            .ends_with("expected 2+ path elements in 'nonsense'")
    );
}

#[tokio::test]
async fn b28_compile_metadata_is_stored_where_there_was_none_and_replaced_where_there_was() {
    let site = Site::new("b28").await;
    site.seed_tenant("t-one", json!({})).await;
    let body = json!({"id": "c-one", "tenant": "t-one"});
    site.call("POST", "/clusters", Some(body)).await.assert(201);
    assert!(site.api::<Cluster>().get("c-one").await.unwrap().status.is_none());
    let path = "/clusters/c-one/compileMeta";
    let first = json!({"commodoreBuildInfo": {"version": "v1"}, "packages": {"p": {"url": "u"}}});
    site.call("POST", path, Some(first.clone())).await.assert(204);
    let meta = site.call("GET", "/clusters/c-one", None).await.json()["compileMeta"].clone();
    assert_eq!(
        meta,
        json!({"commodoreBuildInfo": {"version": "v1"}, "packages": {"p": {"url": "u"}}, "global": {}, "tenant": {}})
    );
    let second = json!({"instances": {"i": {"component": "c"}}, "global": {"gitSha": "s"}});
    site.call("POST", path, Some(second)).await.assert(204);
    let meta = site.call("GET", "/clusters/c-one", None).await.json()["compileMeta"].clone();
    assert_eq!(
        meta,
        json!({"instances": {"i": {"component": "c"}}, "global": {"gitSha": "s"}, "tenant": {}})
    );
    let answer = site
        .call("POST", path, Some(json!({"packages": {"p": {"sha": "s"}}})))
        .await;
    answer.assert(400);
    assert!(answer.reason().contains("/packages/p/sha"), "{}", answer.reason());
}

#[tokio::test]
async fn b29_a_patch_is_merged_as_rfc_7396_says() {
    let site = Site::new("b29").await;
    site.seed_tenant("t-one", json!({})).await;
    let body = json!({"id": "c-one", "tenant": "t-one", "displayName": "C", "facts": {"a": "1", "b": "2"},
        "annotations": {"x": "y", "z": "z"}, "tenantGitRepoRevision": "v1",
        "dynamicFacts": {"version": {"major": "1", "minor": "36"}, "old": true},
        "compileMeta": {"commodoreBuildInfo": {"version": "v1"}},
        "gitRepo": {"url": "ssh://git@git.example.org/a/c-one.git", "deployKey": "ssh-ed25519 AAAA"}});
    site.call("POST", "/clusters", Some(body)).await.assert(201);
    let patch = json!({
        "displayName": null,
        "facts": {"a": null, "c": "3"},
        "annotations": {"x": null},
        "tenantGitRepoRevision": null,
        "dynamicFacts": {"version": {"minor": "37"}, "old": null},
        "compileMeta": null,
        "gitRepo": {"deployKey": null, "hostKeys": "h"},
    });
    let answer = site.call("PATCH", "/clusters/c-one", Some(patch)).await;
    let expected = json!({
        "id": "c-one",
        "tenant": "t-one",
        "annotations": {"z": "z"},
        "facts": {"b": "2", "c": "3", "lieutenant-instance": "inst1"},
        "dynamicFacts": {"version": {"major": "1", "minor": "37"}},
        "compileMeta": {"global": {}, "tenant": {}},
        "gitRepo": {"type": "auto", "url": "ssh://git@git.example.org/a/c-one.git", "hostKeys": "h"},
    });
    assert_eq!(answer.assert(200).json(), expected);
    assert_eq!(site.call("GET", "/clusters/c-one", None).await.json(), expected);
    // An empty patch writes nothing.
    let before = site.api::<Cluster>().get("c-one").await.unwrap();
    let answer = site.call("PATCH", "/clusters/c-one", Some(json!({}))).await;
    assert_eq!(answer.assert(200).json(), expected);
    let after = site.api::<Cluster>().get("c-one").await.unwrap();
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
}

#[tokio::test]
async fn b29_changes_at_the_same_time_all_arrive() {
    let site = Site::new("b29-race").await;
    site.seed_cluster("c-one", json!({"tenantRef": {"name": "t-one"}}), json!({}))
        .await;
    let changes = ["a", "b", "c", "d"].map(|name| {
        let patch = json!({"facts": {name: "set"}, "dynamicFacts": {name: {"seen": true}}});
        site.call("PATCH", "/clusters/c-one", Some(patch))
    });
    for answer in join_all(changes).await {
        answer.assert(200);
    }
    let cluster = site.call("GET", "/clusters/c-one", None).await.json();
    assert_eq!(
        cluster["facts"],
        json!({"a": "set", "b": "set", "c": "set", "d": "set"})
    );
    let seen = json!({"seen": true});
    assert_eq!(
        cluster["dynamicFacts"],
        json!({"a": seen, "b": seen, "c": seen, "d": seen})
    );
}

#[tokio::test]
async fn b29_of_a_change_that_is_half_allowed_what_an_agent_reports_arrives_and_a_repetition_completes_it() {
    let site = Site::new("b29-half").await;
    site.seed_cluster("c-one", json!({"tenantRef": {"name": "t-one"}}), json!({}))
        .await;
    let read = json!({"apiGroups": ["syn.tools"], "resources": ["clusters"], "verbs": ["get"]});
    let status = json!({"apiGroups": ["syn.tools"], "resources": ["clusters/status"], "verbs": ["patch"]});
    let spec = json!({"apiGroups": ["syn.tools"], "resources": ["clusters"], "verbs": ["get", "patch"]});
    let patch = json!({"facts": {"a": "b"}, "dynamicFacts": {"c": "d"}}).to_string();
    let send_as = async |token: &str| {
        let body = Some(("application/merge-patch+json", patch.clone()));
        send(&site.router, "PATCH", "/clusters/c-one", Some(token), body).await
    };
    let facts = async || {
        let cluster = site.call("GET", "/clusters/c-one", None).await.json();
        [cluster["facts"].clone(), cluster["dynamicFacts"].clone()]
    };
    // Without the status, nothing.
    let answer = send_as(&site.caller("spec-only", json!([spec])).await).await;
    answer.assert(403);
    assert_eq!(facts().await, [Value::Null, Value::Null]);
    let answer = send_as(&site.caller("status-only", json!([read, status])).await).await;
    answer.assert(403);
    assert_eq!(facts().await, [Value::Null, json!({"c": "d"})]);
    let answer = send_as(&site.caller("both", json!([spec, status])).await).await;
    answer.assert(200);
    assert_eq!(facts().await, [json!({"a": "b"}), json!({"c": "d"})]);
}

#[tokio::test]
async fn a_change_that_cannot_be_carried_out_says_so_and_a_repetition_completes_it() {
    let proxy = FaultProxy::start(evenkeel_testkit::cluster("lieutenant").client().await).await;
    let site = Site::behind("faults", &proxy).await;
    site.seed_cluster("c-one", json!({"tenantRef": {"name": "t-one"}}), json!({}))
        .await;
    site.call("GET", "/clusters/c-one", None).await.assert(200);
    for fault in [
        CallFault::CutBefore,
        CallFault::CutAfter,
        CallFault::InternalError,
    ] {
        for at in 0..3 {
            let patch = json!({"facts": {"at": format!("{fault:?}-{at}")}, "dynamicFacts": {"at": format!("{fault:?}-{at}")}});
            proxy.fail(at, fault);
            let answer = site.call("PATCH", "/clusters/c-one", Some(patch.clone())).await;
            assert!(answer.status.is_server_error(), "{fault:?} {at}: {answer:?}");
            assert!(proxy.heal(), "{fault:?} {at}: it did not happen");
            site.call("PATCH", "/clusters/c-one", Some(patch.clone()))
                .await
                .assert(200);
            let cluster = site.call("GET", "/clusters/c-one", None).await.json();
            assert_eq!(cluster["facts"], patch["facts"]);
            assert_eq!(cluster["dynamicFacts"], patch["dynamicFacts"]);
        }
    }
}
