use super::*;

fn file(path: &str, content: &str) -> File {
    File {
        path: path.to_owned(),
        content: content.as_bytes().to_vec(),
    }
}

fn remote(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| file(path, text)).collect();
    let kustomization = Kustomization::from_files("x", files).unwrap();
    kustomization.remote().iter().map(ToString::to_string).collect()
}

#[test]
fn every_way_to_the_network_is_found() {
    for (field, text) in [
        ("resources", "resources: [https://example.com/a.yaml]"),
        (
            "resources",
            "resources: [a.yaml, 'github.com/owner/repo//base?ref=v1']",
        ),
        ("resources", "resources: ['git@example.com:owner/repo.git']"),
        ("bases", "bases: ['git::https://example.com/repo']"),
        ("components", "components: [ssh://git@example.com/repo]"),
        ("path", "patches: [{path: 'https://example.com/p.yaml'}]"),
        (
            "files",
            "configMapGenerator: [{name: a, files: ['key=http://localhost/x']}]",
        ),
        (
            "envs",
            "secretGenerator: [{name: a, envs: ['http://127.0.0.1/x']}]",
        ),
        ("path", "openapi: {path: 'https://example.com/schema.json'}"),
        ("crds", "crds: ['https://example.com/crd.json']"),
        (
            "repo",
            "helmCharts: [{name: a, repo: 'https://example.com/charts'}]",
        ),
        (
            "files",
            "generators:\n- |-\n  kind: ConfigMapGenerator\n  files: ['https://example.com/x']\n",
        ),
    ] {
        let found = remote(&[("kustomization.yaml", text), ("a.yaml", "")]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].ends_with(&format!("({field} of kustomization.yaml)")),
            "{found:?}"
        );
    }
}

#[test]
fn it_is_found_in_whatever_is_referred_to_and_nowhere_else() {
    let remote_base = "resources: [https://example.com/a.yaml]";
    assert_eq!(
        remote(&[
            ("kustomization.yaml", "resources: [base]"),
            ("base/Kustomization", remote_base),
            ("unused/kustomization.yml", remote_base),
        ]),
        ["\"https://example.com/a.yaml\" (resources of base/Kustomization)"]
    );
    let plugin = "kind: ConfigMapGenerator\nfiles: ['a=https://example.com/x']\ngenerators: [g.yaml]";
    assert_eq!(
        remote(&[("kustomization.yaml", "generators: [g.yaml]"), ("g.yaml", plugin)]),
        ["\"https://example.com/x\" (files of g.yaml)"]
    );
    // Addresses in objects, literals and patches are only text.
    let harmless = "resources: [a.yaml]\nconfigMapGenerator: [{name: a, literals: ['url=https://example.com']}]\n\
                    patches: [{patch: \"- op: add\\n  path: https://example.com\"}]";
    assert_eq!(
        remote(&[
            ("kustomization.yaml", harmless),
            ("a.yaml", "kind: A\npath: https://x"),
        ]),
        [""; 0]
    );
}

#[test]
fn a_broken_file_is_named_with_its_line() {
    let files = vec![file("kustomization.yaml", "resources:\n- [a\nb: c")];
    let error = Kustomization::from_files("apps/web", files)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("kustomization apps/web cannot be used: kustomization.yaml: ")
            && error.contains("line "),
        "{error}"
    );
}

#[test]
fn contents_do_not_show() {
    let files = vec![
        file("kustomization.yaml", ""),
        file("secret.env", "password=hunter2"),
    ];
    let kustomization = Kustomization::from_files("x", files).unwrap();
    assert!(!format!("{kustomization:?}").contains("hunter2"));
}
