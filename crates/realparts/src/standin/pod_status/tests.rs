use super::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A Pod bound to the node, with `script` as its annotation unless that is empty.
fn pod(script: &str, restart_policy: &str) -> Pod {
    let annotations = if script.is_empty() {
        json!({})
    } else {
        json!({POD_SCRIPT_ANNOTATION: script})
    };
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": annotations},
        "spec": {
            "nodeName": "node-0",
            "restartPolicy": restart_policy,
            "initContainers": [{"name": "first"}, {"name": "sidecar", "restartPolicy": "Always"}],
            "containers": [{"name": "main", "image": "registry.example/main:1"}],
        },
    }))
    .unwrap()
}

/// Gives `pod` the status that is due; panics if none is.
fn step(pod: &mut Pod) -> Option<(&'static str, String)> {
    match next(pod, now()) {
        Next::Status { status, warning, .. } => {
            pod.status = serde_json::from_value(status).unwrap();
            warning
        }
        other => panic!("a status was expected, not {other:?}"),
    }
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().unwrap().phase.as_deref().unwrap()
}

fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").unwrap().status == "True"
}

#[test]
fn a_pod_without_a_node_is_bound_first_unless_it_is_gated() {
    let mut pod = pod("", "Always");
    pod.spec.as_mut().unwrap().node_name = None;
    assert_eq!(next(&pod, now()), Next::Bind);
    pod.spec.as_mut().unwrap().scheduling_gates = Some(vec![Default::default()]);
    assert_eq!(next(&pod, now()), Next::Nothing);
}

#[test]
fn by_default_it_becomes_ready_and_stays_so() {
    let mut pod = pod("", "Always");
    assert_eq!(step(&mut pod), None);
    assert_eq!((phase(&pod), is_ready(&pod)), ("Running", true));
    let status = pod.status.as_ref().unwrap();
    assert!(status.pod_ip.as_ref().unwrap().starts_with("10.244."));
    let init = status.init_container_statuses.as_ref().unwrap();
    assert!(init[0].state.as_ref().unwrap().terminated.is_some());
    assert!(init[1].state.as_ref().unwrap().running.is_some());
    assert_eq!(next(&pod, now()), Next::Nothing);
}

#[test]
fn one_that_may_end_runs_and_then_succeeds() {
    let mut pod = pod("", "Never");
    step(&mut pod);
    assert_eq!(phase(&pod), "Running");
    step(&mut pod);
    assert_eq!(phase(&pod), "Succeeded");
    let main = &pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0];
    assert_eq!(
        main.state
            .as_ref()
            .unwrap()
            .terminated
            .as_ref()
            .unwrap()
            .exit_code,
        0
    );
    assert_eq!(next(&pod, now()), Next::Nothing);
}

#[test]
fn every_failure_is_reached_and_kept() {
    for (script, end, warns) in [
        ("fail", "Failed", false),
        ("unready", "Running", true),
        ("crash-loop", "Running", true),
        ("image-error", "Pending", true),
        ("no-such-script", "Pending", true),
    ] {
        let mut pod = pod(script, "Always");
        let mut warned = step(&mut pod).is_some();
        if script == "fail" {
            warned |= step(&mut pod).is_some();
        }
        assert_eq!(
            (phase(&pod), is_ready(&pod), warned),
            (end, false, warns),
            "{script}"
        );
        assert_eq!(next(&pod, now()), Next::Nothing, "{script}");
    }
}

#[test]
fn a_pending_script_leaves_the_pod_alone() {
    assert_eq!(next(&pod("pending", "Always"), now()), Next::Nothing);
}

#[test]
fn a_changed_script_is_followed_and_times_of_what_stays_are_kept() {
    let mut pod = pod("unready", "Always");
    step(&mut pod);
    let scheduled = condition(&pod, "PodScheduled")
        .unwrap()
        .last_transition_time
        .clone();
    let address = pod.status.as_ref().unwrap().pod_ip.clone();
    pod.annotations_mut()
        .insert(POD_SCRIPT_ANNOTATION.to_owned(), "ready".to_owned());
    let later = Timestamp::from_second(1_800_000_100).unwrap();
    let Next::Status { status, starts, .. } = next(&pod, later) else {
        panic!()
    };
    assert!(!starts);
    pod.status = serde_json::from_value(status).unwrap();
    assert!(is_ready(&pod));
    assert_eq!(
        condition(&pod, "PodScheduled").unwrap().last_transition_time,
        scheduled
    );
    assert_eq!(
        condition(&pod, "Ready")
            .unwrap()
            .last_transition_time
            .as_ref()
            .unwrap()
            .0,
        later
    );
    assert_eq!(pod.status.as_ref().unwrap().pod_ip, address);
}

#[test]
fn a_readiness_gate_holds_a_pod_back_until_someone_opens_it() {
    let mut pod = pod("", "Always");
    pod.spec.as_mut().unwrap().readiness_gates =
        serde_json::from_value(json!([{"conditionType": "example.com/open"}])).unwrap();
    step(&mut pod);
    assert!(!is_ready(&pod));
    assert_eq!(next(&pod, now()), Next::Nothing);
    pod.status
        .as_mut()
        .unwrap()
        .conditions
        .as_mut()
        .unwrap()
        .push(PodCondition {
            type_: "example.com/open".to_owned(),
            status: "True".to_owned(),
            ..PodCondition::default()
        });
    step(&mut pod);
    assert!(is_ready(&pod));
    assert!(condition(&pod, "example.com/open").is_some());
}

#[test]
fn a_deleted_pod_ends_unless_it_is_held() {
    let mut pod = pod("", "Always");
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    pod.metadata.deletion_grace_period_seconds = Some(30);
    assert_eq!(next(&pod, now()), Next::End);
    pod.annotations_mut()
        .insert(HOLD_TERMINATION_ANNOTATION.to_owned(), String::new());
    assert_eq!(next(&pod, now()), Next::Nothing);
    pod.annotations_mut().clear();
    pod.metadata.deletion_grace_period_seconds = Some(0);
    assert_eq!(next(&pod, now()), Next::Nothing);
}
