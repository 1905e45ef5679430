//! What goes wrong, and how it is told: which component, what, where; nothing of a secret.

use evenkeel_simulator::{Fault, FaultRule};

use super::fixture::{Env, PLAIN, WEB, simulated};
use crate::ran::Ran;

#[test]
fn wrong_usage_exits_with_2() {
    let env = simulated();
    env.chart("web", WEB);
    for arguments in [
        &[][..],
        &["--component", "web"],
        &["--component", "web=web", "--no-such-flag"],
        &["--component", "web=web", "--component", "web=web"],
        &["--component", "web=web", "--set", "db.replicas=2"],
        &["--component", "web=web", "--values", "v.yaml"],
        &["--component", "web=web", "--depends-on", "web=web"],
        &[
            "--component",
            "a=web",
            "--component",
            "b=web",
            "--depends-on",
            "a=b",
            "--depends-on",
            "b=a",
        ],
        &["--component", "web=web", "--timeout", "soon"],
        &["--component", "web=web", "--namespace", "Apps"],
        &["--component", "Web=web"],
        &["--component", "web=web", "--fleet-name", "-"],
    ] {
        let ran = env.local(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty());
    }
    env.local(&["--component", "web=web", "--set", "db.replicas=2"])
        .says(&["--set names component db"]);
    let circle = [
        "--component",
        "a=web",
        "--component",
        "b=web",
        "--depends-on",
        "a=b",
        "--depends-on",
        "b=a",
    ];
    env.local(&circle).says(&["a → b → a"]);
    assert_eq!(env.target.simulated().counters().requests(), 0);
}

/// A chart that fails fails its component and those that wait for it; the others go on.
#[test]
fn a_failed_component_holds_up_only_those_that_wait_for_it() {
    let env = simulated();
    env.chart("web", WEB);
    env.chart("plain", PLAIN);
    env.chart(
        "broken",
        &[("templates/bad.yaml", "a: 1\nb: {{ .Values.x.y.z }}\n")],
    );
    let ran = env.local(&[
        "-n",
        "apps",
        "--component",
        "db=broken",
        "--component",
        "web=web",
        "--component",
        "front=plain",
        "--component",
        "other=plain",
        "--depends-on",
        "web=db",
        "--depends-on",
        "front=web",
    ]);
    let ran = ran.exits(1).says(&[
        "error: component db: ",
        "broken/templates/bad.yaml:2:",
        "component web is skipped: it waits for db, which is failed",
        "component front is skipped: it waits for web, which is skipped",
        "1 of 4 components failed, 2 skipped",
    ]);
    let states: Vec<_> = ["db", "web", "front", "other"]
        .map(|name| ran.row(name)[1].to_owned())
        .into();
    assert_eq!(states, ["failed", "skipped", "skipped", "ready"]);
    assert!(env.target.get("v1", "ConfigMap", "apps", "other").is_some());
    assert!(env.target.get("apps/v1", "Deployment", "apps", "web").is_none());
}

/// Runs one component made of `files`, which must fail and write nothing.
fn fails(env: &Env, files: &[(&str, &str)], more: &[&str], says: &[&str]) -> Ran {
    env.chart("bad", files);
    let mark = env.target.mark();
    let ran = env.local(&[&["-n", "apps", "--component", "bad=bad"], more].concat());
    let ran = ran.exits(1).says(&["error: component bad: "]).says(says);
    assert_eq!(env.target.writes(&mark), [""; 0], "{}", ran.stderr);
    ran
}

#[test]
fn charts_that_cannot_be_used_write_nothing() {
    let good = ("templates/a.yaml", PLAIN[0].1);
    let kind = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n";
    fails(
        &simulated(),
        &[good, ("templates/b.yaml", "{{ include \"nothing\" . }}")],
        &[],
        &["bad/templates/b.yaml:1:"],
    );
    fails(
        &simulated(),
        &[good, ("templates/b.yaml", "{{ if }}")],
        &[],
        &["b.yaml:1"],
    );
    fails(
        &simulated(),
        &[good, ("templates/b.yaml", "a: b: c\n")],
        &[],
        &["b.yaml"],
    );
    fails(
        &simulated(),
        &[good, ("templates/b.yaml", kind)],
        &[],
        &["Widget"],
    );
    fails(
        &simulated(),
        &[good, ("templates/b.yaml", "kind: ConfigMap\n")],
        &[],
        &["b.yaml"],
    );
    fails(&simulated(), &[("Chart.yaml", "name: [\n")], &[], &["bad"]);

    let env = simulated();
    env.write("v.yaml", "password: hunter2\n oops: hunter2\n");
    let ran = fails(&env, &[good], &["--values", "bad=v.yaml"], &["v.yaml"]);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn paths_that_do_not_exist_are_named() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let ran = env.local(&[
        "-n",
        "apps",
        "--component",
        "web=./nowhere",
        "--component",
        "plain=plain",
    ]);
    let ran = ran.exits(1).says(&["error: component web: ", "nowhere"]);
    assert_eq!(ran.row("plain")[1], "ready");
    let ran = env.local(&["--component", "plain=plain", "--values", "plain=none.yaml"]);
    ran.exits(1)
        .says(&["the values of component plain cannot be read", "none.yaml"]);
}

#[test]
fn clusters_that_cannot_be_used_are_told_once() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let arguments = ["--component", "a=plain", "--component", "b=plain"];
    let config = env.target.simulated().kubeconfig().to_owned();

    env.target.simulated().faults().unreachable(true);
    for more in [&[][..], &["--plan"], &["--delete"]] {
        let ran = env
            .local(&[&arguments[..], more].concat())
            .exits(1)
            .says(&["cannot be reached", "kubeconfig"]);
        assert_eq!(
            ran.stderr.matches("cannot be reached").count(),
            1,
            "{}",
            ran.stderr
        );
    }
    env.target.simulated().faults().unreachable(false);

    env.write(
        "kubeconfig",
        &config.replace(env.target.simulated().token(), "wrong-token"),
    );
    let ran = env
        .local(&arguments)
        .exits(1)
        .says(&["does not accept the credentials"]);
    assert!(!ran.stderr.contains("wrong-token"), "{}", ran.stderr);

    env.write("kubeconfig", "clusters: [");
    env.local(&arguments)
        .exits(1)
        .says(&["kubeconfig kubeconfig is not valid"]);
}

#[test]
fn a_forbidden_object_is_named_and_not_tried_again() {
    let env = simulated();
    env.chart("web", WEB);
    let rule = FaultRule::always(Fault::Forbidden)
        .verbs(&["patch", "create"])
        .resources(&["services"]);
    env.target.simulated().faults().add(rule);
    let ran = env.local(&["-n", "apps", "--component", "web=web"]).exits(1);
    ran.says(&["error: component web: ", "Service/web", "forbidden"]);
}

#[test]
fn a_busy_server_is_asked_again() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let busy = Fault::Unavailable { retry_after: None };
    // Secrets are read once for the whole command, and once more by the component where that failed.
    for (resource, times) in [("secrets", 2), ("configmaps", 1)] {
        let rule = FaultRule::always(busy.clone())
            .resources(&[resource])
            .times(times);
        env.target.simulated().faults().add(rule);
    }
    let ran = env.local(&["-n", "apps", "--component", "plain=plain"]).exits(0);
    assert_eq!(
        ran.stderr.matches("plain: will be tried again: ").count(),
        2,
        "{}",
        ran.stderr
    );
    assert_eq!(ran.row("plain")[..4], ["plain", "ready", "1", "2"]);

    // Not for ever.
    env.target
        .simulated()
        .faults()
        .add(FaultRule::always(busy).resources(&["secrets"]));
    let ran = env.local(&["-n", "apps", "--component", "plain=plain", "--timeout", "3s"]);
    ran.exits(1)
        .says(&["plain: will be tried again: ", "error: component plain: ", "503"]);
}

#[test]
fn a_foreign_object_is_left_alone_unless_told_to_adopt() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let cluster = env.target.simulated();
    let object = |value: serde_json::Value| cluster.create("somebody", value).unwrap();
    object(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}}));
    object(serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "apps"}, "data": {"a": "mine"},
    }));
    let run = ["-n", "apps", "--component", "plain=plain"];
    let mark = env.target.mark();
    env.local(&run).exits(1).says(&[
        "error: component plain: ",
        "ConfigMap/plain in namespace apps",
        "exist already",
    ]);
    assert_eq!(env.target.writes(&mark), [""; 0]);
    let adopted = env.local(&[&run[..], &["--adopt"]].concat()).exits(0);
    assert_eq!(adopted.row("plain")[..5], ["plain", "ready", "1", "0", "1"]);
    let object = env.target.get("v1", "ConfigMap", "apps", "plain").unwrap();
    assert_eq!(object.pointer("/data/a"), Some(&"1".into()));

    // The namespace was there before and stays.
    env.local(&[&run[..], &["--delete"]].concat()).exits(0);
    assert!(env.target.get("v1", "ConfigMap", "apps", "plain").is_none());
    assert!(env.target.get("v1", "Namespace", "", "apps").is_some());
}

#[test]
fn no_value_is_ever_shown() {
    let env = simulated();
    env.chart("secret", &[(
        "templates/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {{ .Values.password }}, n: {{ .Values.n }}}\n",
    )]);
    let run = [
        "-n",
        "apps",
        "--component",
        "secret=secret",
        "--set",
        "secret.password=hunter2",
        "--log",
        "trace",
    ];
    // A number where a text belongs: the server refuses the Secret.
    for more in [
        &["--set", "secret.n=12345"][..],
        &["--set", "secret.n=fine"],
        &["--set", "secret.n=fine", "--plan"],
    ] {
        let ran = env.local(&[&run[..], more].concat());
        for text in [&ran.stdout, &ran.stderr] {
            assert!(
                !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
                "{text}"
            );
        }
    }
}
