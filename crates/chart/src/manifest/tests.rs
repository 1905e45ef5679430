use super::*;

fn texts(contents: &str) -> Vec<String> {
    split(contents.as_bytes())
        .into_iter()
        .map(|document| String::from_utf8_lossy(document).into_owned())
        .collect()
}

#[test]
fn separators_of_all_kinds() {
    for (contents, expected) in [
        ("a: 1\n---\nb: 2\n", vec!["a: 1\n", "b: 2\n"]),
        ("---\n\n  a: 1\n\n\n---\n# c\n", vec!["a: 1\n\n\n", "# c\n"]),
        ("a: 1\n---kind: X\n", vec!["a: 1\n", "kind: X\n"]),
        ("a: 1\n--- \t # next\nb: 2", vec!["a: 1\n", "# next\nb: 2"]),
        ("a: |\n  ---\n  x\n", vec!["a: |\n  ---\n  x\n"]),
        ("a: 1\r\n---\r\nb: 2\r\n", vec!["a: 1\r\n", "b: 2\r\n"]),
        ("---\n---\n \n", vec![]),
        ("", vec![]),
        ("----\n", vec!["-\n"]),
        ("\u{a0}\n---\na: 1", vec!["a: 1"]),
    ] {
        assert_eq!(texts(contents), expected, "{contents:?}");
    }
}

#[test]
fn blanks_of_all_kinds_are_trimmed() {
    assert_eq!(trim_end("a\u{2028} \n\u{a0}\t".as_bytes()), b"a");
    assert_eq!(trim_start("\u{3000}\u{85}\r\n\u{b}a".as_bytes()), b"a");
    assert_eq!(trim_end("é".as_bytes()), "é".as_bytes());
    assert_eq!(trim_end(b"a\xff"), b"a\xff");
    assert_eq!(trim_start(b"\xffa"), b"\xffa");
}

fn all(files: &[(&str, &str)]) -> Result<Sorted, Error> {
    sort(
        files.iter().map(|(source, text)| (*source, text.as_bytes())),
        &mut Vec::new(),
    )
}

#[test]
fn kinds_have_their_order_and_unknown_ones_come_last() {
    let sorted = all(&[
        (
            "c/a",
            "kind: Zebra\n---\nkind: Deployment\nmetadata: {name: one}\n---\nkind: Alpha\n",
        ),
        (
            "c/b",
            "kind: Deployment\nmetadata: {name: two}\n---\nkind: Namespace\n---\n# comment\n",
        ),
    ])
    .unwrap();
    let kinds: Vec<_> = sorted
        .manifests
        .iter()
        .map(|m| (m.head.kind.as_str(), m.head.name.as_str()))
        .collect();
    let expected = [
        ("Namespace", ""),
        ("Deployment", "one"),
        ("Deployment", "two"),
        ("", ""),
        ("Alpha", ""),
    ];
    assert_eq!(kinds.get(..5), Some(expected.as_slice()));
}

#[test]
fn hooks_are_recognised() {
    let hook = |annotations: &str| {
        let text = format!("kind: Job\nmetadata:\n  name: j\n  annotations:\n{annotations}");
        all(&[("c/a", &text)]).unwrap()
    };
    let sorted = hook(
        "    helm.sh/hook: Pre-Install , post-upgrade\n    helm.sh/hook-weight: -5\n    \
         helm.sh/hook-delete-policy: hook-succeeded,before-hook-creation\n",
    );
    let expected = Hook {
        events: vec![HookEvent::PreInstall, HookEvent::PostUpgrade],
        weight: -5,
        delete_policies: vec![HookDeletePolicy::Succeeded, HookDeletePolicy::BeforeCreation],
    };
    assert_eq!(sorted.hooks.first().and_then(|m| m.hook.clone()), Some(expected));
    assert!(sorted.manifests.is_empty());
    // An unknown event drops the document, an odd weight counts as none.
    let sorted = hook("    helm.sh/hook: nonsense\n");
    assert!(sorted.hooks.is_empty() && sorted.manifests.is_empty());
    let sorted = hook("    helm.sh/hook: test-success\n    helm.sh/hook-weight: x\n");
    assert_eq!(
        sorted
            .hooks
            .first()
            .and_then(|m| m.hook.as_ref())
            .map(|hook| hook.weight),
        Some(0)
    );
}

#[test]
fn what_is_no_object_is_refused_with_its_file() {
    for text in [
        "just text\n",
        "- a\n",
        "kind: [a]\n",
        "metadata: x\n",
        "metadata: {annotations: {a: {b: c}}}\n",
        "a: [\n",
    ] {
        let error = all(&[("c/templates/bad.yaml", text)])
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            error.starts_with("YAML parse error on c/templates/bad.yaml: "),
            "{text}: {error}"
        );
    }
}
