//! The program that builds kustomizations: run seldom, within bounds, and without a way out.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel_component::{End, KustomizeOptions, Outcome, RemoteBases};
use evenkeel_telemetry::CancellationToken;
use evenkeel_testkit::eventually;

use crate::bench::{Bench, kustomize};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";

/// A program of a few lines that stands in for kustomize.
struct StandIn {
    folder: tempfile::TempDir,
}

impl StandIn {
    /// It says its version itself; `build` is what it does otherwise, `$here` being a folder of its own.
    fn new(build: &str) -> Self {
        let stand_in = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        stand_in.write("v1.0.0", build);
        stand_in
    }

    fn write(&self, version: &str, build: &str) {
        let here = self.folder.path().display();
        // Aside and renamed: a file that is being written cannot be run.
        let aside = self.path("aside");
        std::fs::write(
            &aside,
            format!(
                "#!/bin/sh\nPATH=/usr/bin:/bin\nhere={here}\n[ \"$1\" = version ] && echo {version} && exit\n{build}\n"
            ),
        )
        .unwrap();
        std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(aside, self.path("kustomize")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn options(&self, timeout: Duration) -> KustomizeOptions {
        KustomizeOptions {
            program: self.path("kustomize"),
            remote: RemoteBases::Refused,
            timeout,
        }
    }

    async fn bench(&self, scenario: &str) -> Bench {
        kustomized(scenario, Some(self.options(Duration::from_secs(30)))).await
    }
}

async fn kustomized(scenario: &str, options: Option<KustomizeOptions>) -> Bench {
    let bench = Bench::simulated_with(scenario, options).await;
    bench.remove("Chart.yaml");
    bench.write("kustomization.yaml", "resources: [a.yaml]\n");
    bench.write("a.yaml", MAP);
    bench
}

fn reason(outcome: &Outcome) -> &str {
    match &outcome.end {
        End::Failed { reason } | End::Retry { reason, .. } => reason,
        other => panic!("expected a failure, found {other:?}"),
    }
}

fn is_final(outcome: &Outcome) -> bool {
    matches!(outcome.end, End::Failed { .. })
}

/// A script that is being written by one thread while another forks may be busy for a moment; the pipeline tries again.
async fn apply(bench: &Bench) -> Outcome {
    loop {
        let outcome = bench.apply_plain().await;
        let is_busy = matches!(&outcome.end, End::Retry { reason, .. } if reason.contains("Text file busy"));
        if !is_busy {
            return outcome;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_program_the_way_out_is_named() {
    let bench = kustomized("none", None).await;
    let outcome = bench.apply_plain().await;
    assert!(
        reason(&outcome).contains("name kustomize with --kustomize or EVENKEEL_KUSTOMIZE"),
        "{}",
        reason(&outcome)
    );
    assert!(is_final(&outcome));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_gone_may_come_back() {
    let options = KustomizeOptions {
        program: PathBuf::from("/nowhere/kustomize"),
        ..kustomize()
    };
    let outcome = kustomized("gone", Some(options)).await.apply_plain().await;
    assert!(
        reason(&outcome).contains("kustomize (/nowhere/kustomize) cannot be used: No such file"),
        "{}",
        reason(&outcome)
    );
    assert!(!is_final(&outcome));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_programs_complaint_is_shown_in_the_users_paths() {
    let bench = kustomized("complaint", Some(kustomize())).await;
    bench.write(
        "kustomization.yaml",
        "resources: [a.yaml, sub/missing.yaml]\nkind: Kustomization\n",
    );
    let outcome = bench.apply_plain().await;
    let reason = reason(&outcome);
    assert!(is_final(&outcome));
    assert!(
        reason.contains("kustomize build failed") && reason.contains("sub/missing.yaml"),
        "{reason}"
    );
    assert!(!reason.contains("evenkeel-kustomize-"), "{reason}");
    assert_eq!(bench.get("ConfigMap", "one").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_program_is_quoted_within_bounds() {
    let stand_in =
        StandIn::new("echo 'it is broken' >&2; head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 7");
    let bench = stand_in.bench("failing").await;
    let outcome = apply(&bench).await;
    let reason = reason(&outcome);
    assert!(
        is_final(&outcome) && reason.contains("exit status: 7):\nit is broken"),
        "{reason:.200}"
    );
    assert!(reason.len() < 5_000, "{}", reason.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_prints_without_end_is_ended() {
    let stand_in = StandIn::new("head -c 100000000 /dev/zero");
    let bench = stand_in.bench("printing").await;
    let outcome = apply(&bench).await;
    assert!(
        reason(&outcome).contains("printed more than 33554432 bytes"),
        "{}",
        reason(&outcome)
    );
    assert!(is_final(&outcome));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_ended_with_its_children() {
    let stand_in = StandIn::new("sleep 1000 & echo $! > $here/child; wait");
    let bench = kustomized("hanging", Some(stand_in.options(Duration::from_secs(2)))).await;
    let outcome = apply(&bench).await;
    assert!(
        reason(&outcome).contains("it was ended after 2 s"),
        "{}",
        reason(&outcome)
    );
    assert!(!is_final(&outcome), "a machine may be slow for a while");
    gone(&stand_in.read("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_ends_when_its_operation_is_stopped() {
    let stand_in = StandIn::new("sleep 1000 & echo $! > $here/child; wait");
    let bench = stand_in.bench("stopped").await;
    let cancel = CancellationToken::new();
    let stop = async {
        eventually("the build runs", async || {
            let child = stand_in.read("child");
            if child.ends_with('\n') { Ok(()) } else { Err(child) }
        })
        .await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(bench.apply_until(cancel.clone()), stop);
    assert!(matches!(outcome.end, End::Stopped(_)), "{:?}", outcome.end);
    gone(&stand_in.read("child")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_build_serves_all_until_files_or_program_change() {
    let real = kustomize().program;
    let build = format!("echo run >> $here/runs; exec {} \"$@\"", real.display());
    let stand_in = StandIn::new(&build);
    let bench = stand_in.bench("shared").await;
    let runs = || stand_in.read("runs").lines().count();
    assert!(matches!(apply(&bench).await.end, End::Succeeded));
    let first = bench.consider().await.unwrap();
    for _ in 0..3 {
        let outcome = apply(&bench).await;
        assert!(matches!(outcome.end, End::Succeeded), "{outcome:#?}");
        assert_eq!(outcome.changes, []);
    }
    assert_eq!(bench.consider().await.unwrap(), first);
    assert_eq!(runs(), 1);

    bench.write("a.yaml", &MAP.replace("one", "two"));
    assert!(matches!(apply(&bench).await.end, End::Succeeded));
    assert_eq!(runs(), 2);
    let second = bench.consider().await.unwrap();
    assert_ne!(first.revision, second.revision);

    // Another release of the program is worth another look, and no new revision.
    stand_in.write("v1.0.1", &build);
    let third = bench.consider().await.unwrap();
    assert_eq!(second.revision, third.revision);
    assert_ne!(second.all, third.all);
    assert!(matches!(apply(&bench).await.end, End::Succeeded));
    assert_eq!(runs(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_sees_nothing_of_its_surroundings() {
    let stand_in = StandIn::new(
        "env > $here/env; pwd > $here/pwd; echo \"$@\" > $here/arguments; printf 'apiVersion: v1\\nkind: \
         ConfigMap\\nmetadata: {name: one}\\n'",
    );
    let bench = stand_in.bench("surroundings").await;
    let outcome = apply(&bench).await;
    assert!(matches!(outcome.end, End::Succeeded), "{outcome:#?}");
    let environment = stand_in.read("env");
    assert!(!environment.contains("CARGO"), "{environment}");
    let home = environment.lines().find_map(|line| line.strip_prefix("HOME="));
    let private = stand_in.read("pwd");
    assert!(home.unwrap().starts_with(private.trim()), "{environment}");
    assert!(
        !Path::new(private.trim()).exists(),
        "the private copy is removed: {private}"
    );
    assert!(
        stand_in
            .read("arguments")
            .starts_with("build --load-restrictor LoadRestrictionsRootOnly /"),
        "{}",
        stand_in.read("arguments")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_loaded_from_the_network_unless_allowed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/base.yaml", listener.local_addr().unwrap());
    let bench = kustomized("offline", Some(kustomize())).await;
    bench.write("kustomization.yaml", &format!("resources: ['{address}']\n"));
    let outcome = bench.apply_plain().await;
    let expected = format!(
        "it refers to the network: \"{address}\" (resources of kustomization.yaml); put it into the source, or let \
         builds load it with --kustomize-remote"
    );
    assert!(reason(&outcome).ends_with(&expected), "{}", reason(&outcome));
    assert!(is_final(&outcome));

    let allowed = KustomizeOptions {
        remote: RemoteBases::Allowed,
        ..kustomize()
    };
    let bench = kustomized("online", Some(allowed)).await;
    bench.write("kustomization.yaml", &format!("resources: ['{address}']\n"));
    let serve = async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        assert!(request[..length].starts_with(b"GET /base.yaml"));
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{MAP}",
            MAP.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(bench.apply_plain(), serve);
    assert!(matches!(outcome.end, End::Succeeded), "{outcome:#?}");
    assert!(bench.get("ConfigMap", "one").await.is_some());
}

/// Waits until a process has ended.
async fn gone(process: &str) {
    let stat = format!("/proc/{}/stat", process.trim());
    assert!(!process.trim().is_empty());
    eventually("the child is gone", async || {
        match std::fs::read_to_string(&stat) {
            // Killed, and not waited for by whoever inherited it.
            Ok(text) if !text.contains(") Z ") => Err(text),
            _ => Ok(()),
        }
    })
    .await;
}
