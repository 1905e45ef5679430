//! Supervision: nothing dies unheard, nothing outlives shutdown.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_telemetry::{LogFormat, OnCancel, OnError, Restart, Shutdown, TaskError, Tasks};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tracing::info_span;

use crate::support::{capture, json_lines};

const DEADLINE: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn a_task_gives_its_result_and_is_listed_while_it_runs() {
    let tasks = Tasks::new();
    let (go, wait) = oneshot::channel::<()>();
    let task = tasks.spawn("adder", OnError::Log, OnCancel::Wait, |_| async move {
        wait.await?;
        Ok::<_, oneshot::error::RecvError>(1 + 1)
    });
    assert_eq!(task.name(), "adder");
    tokio::time::advance(Duration::from_secs(3)).await;
    let running = tasks.running();
    assert_eq!(
        (running.len(), &*running[0].name, running[0].age),
        (1, "adder", Duration::from_secs(3))
    );
    go.send(()).unwrap();
    assert_eq!(task.join().await.unwrap(), 2);
    assert!(tasks.running().is_empty());
    assert_eq!(tasks.shutdown(DEADLINE).await, Shutdown::default());
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_are_logged_with_the_tasks_name_and_the_callers_ids() {
    let (captured, _guard) = capture(LogFormat::Json, "error");
    let tasks = Tasks::new();
    let (failed, panicked, at_once) = info_span!("request", request_id = "r-7").in_scope(|| {
        (
            tasks.spawn("fails", OnError::Log, OnCancel::Wait, |_| async {
                Err::<(), _>(io::Error::other("disk full"))
            }),
            tasks.spawn("panics", OnError::Log, OnCancel::Abort, |_| async {
                tokio::task::yield_now().await;
                if true {
                    panic!("index out of range");
                }
                Ok::<_, Infallible>(())
            }),
            tasks.spawn(
                "at-once",
                OnError::Log,
                OnCancel::Wait,
                |_| -> std::future::Ready<Result<(), Infallible>> { panic!("in the call") },
            ),
        )
    });
    assert!(matches!(failed.join().await, Err(TaskError::Failed { .. })));
    assert_eq!(
        panicked.join().await.unwrap_err().to_string(),
        "task panics panicked: index out of range"
    );
    assert_eq!(
        at_once.join().await.unwrap_err().to_string(),
        "task at-once panicked: in the call"
    );
    let lines = json_lines(&captured);
    let mut messages: Vec<&str> = lines
        .iter()
        .map(|line| line["message"].as_str().unwrap())
        .collect();
    messages.sort_unstable();
    assert_eq!(
        messages,
        [
            "task at-once panicked: in the call",
            "task fails failed: disk full",
            "task panics panicked: index out of range",
        ]
    );
    assert!(lines.iter().all(|line| line["request_id"] == "r-7"));
    assert!(!tasks.is_cancelled(), "the rest goes on");
    assert_eq!(tasks.fatal(), None);
}

#[tokio::test(start_paused = true)]
async fn a_task_the_process_cannot_do_without_takes_it_down_cleanly() {
    let tasks = Tasks::new();
    let other = tasks.spawn("other", OnError::Log, OnCancel::Wait, |token| async move {
        token.cancelled().await;
        Ok::<_, Infallible>("ended by itself")
    });
    let vital = tasks.spawn("lease", OnError::Shutdown, OnCancel::Wait, |_| async {
        Err::<(), _>(io::Error::other("lost"))
    });
    tasks.cancelled().await;
    assert_eq!(tasks.fatal().unwrap(), "task lease failed: lost");
    assert!(vital.join().await.is_err());
    assert_eq!(other.join().await.unwrap(), "ended by itself");
    assert_eq!(tasks.shutdown(DEADLINE).await.aborted, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_those_that_wait_drops_those_that_abort_and_names_the_stuck() {
    let tasks = Tasks::new();
    let dropped = tasks.spawn("dropped", OnError::Log, OnCancel::Abort, |_| async {
        std::future::pending::<Result<(), Infallible>>().await
    });
    let slow = tasks.spawn("slow", OnError::Log, OnCancel::Wait, |token| async move {
        token.cancelled().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok::<_, Infallible>("flushed")
    });
    let begin = Instant::now();
    assert_eq!(tasks.shutdown(DEADLINE).await, Shutdown::default());
    assert_eq!(begin.elapsed(), Duration::from_secs(4));
    assert_eq!(slow.join().await.unwrap(), "flushed");
    assert!(matches!(dropped.join().await, Err(TaskError::Cancelled { .. })));

    let tasks = Tasks::new();
    let stuck = tasks.spawn("stuck", OnError::Log, OnCancel::Wait, |_| async {
        std::future::pending::<Result<(), Infallible>>().await
    });
    let begin = Instant::now();
    assert_eq!(tasks.shutdown(DEADLINE).await.aborted, ["stuck"]);
    assert_eq!(begin.elapsed(), DEADLINE);
    assert!(matches!(stuck.join().await, Err(TaskError::Cancelled { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_token_handed_out_does_not_cancel_the_others() {
    let tasks = Tasks::new();
    tasks.token().cancel();
    assert!(!tasks.is_cancelled());
    let token = tasks.token();
    tasks.cancel();
    assert!(token.is_cancelled());
    let late = tasks.spawn("late", OnError::Log, OnCancel::Wait, |token| async move {
        Ok::<_, Infallible>(token.is_cancelled())
    });
    assert!(
        late.join().await.unwrap(),
        "a task started after that knows at once"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_calls_are_bounded_and_their_panics_caught() {
    let tasks = Tasks::with_blocking_permits(2);
    let (running, most, release) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Semaphore::new(0)),
    );
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let receive = Arc::new(std::sync::Mutex::new(receive));
    let calls: Vec<_> = (0..6)
        .map(|n| {
            let (tasks, running, most, release, receive) = (
                tasks.clone(),
                running.clone(),
                most.clone(),
                release.clone(),
                receive.clone(),
            );
            tasks
                .clone()
                .spawn("caller", OnError::Log, OnCancel::Wait, move |_| async move {
                    tasks
                        .blocking("count", move || {
                            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            release.add_permits(1);
                            // Waits until the test lets one call go.
                            receive.lock().unwrap().recv().unwrap();
                            running.fetch_sub(1, Ordering::SeqCst);
                            n
                        })
                        .await
                })
        })
        .collect();
    for _ in 0..6 {
        tokio::time::timeout(DEADLINE, release.acquire())
            .await
            .unwrap()
            .unwrap()
            .forget();
        send.send(()).unwrap();
    }
    let mut sum = 0;
    for call in calls {
        sum += tokio::time::timeout(DEADLINE, call.join())
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(sum, 15);
    assert!(
        (1..=2).contains(&most.load(Ordering::SeqCst)),
        "at most two at once"
    );

    let error = tasks
        .blocking::<(), _>("parse", || panic!("bad page"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "task parse panicked: bad page");
    for _ in 0..4 {
        assert_eq!(
            tasks.blocking("fine", || 7).await.unwrap(),
            7,
            "a panic gives its permit back"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_is_started_again_after_growing_pauses() {
    let (captured, _guard) = capture(LogFormat::Json, "error");
    let tasks = Tasks::new();
    let begin = Instant::now();
    let starts = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = starts.clone();
    let restart = Restart {
        first: Duration::from_secs(1),
        cap: Duration::from_secs(4),
        healthy_after: Duration::from_secs(100),
    };
    let service = tasks.service("watch", restart, move |token| {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(begin.elapsed().as_secs());
            seen.len()
        };
        async move {
            match number {
                2 => panic!("second run"),
                5 => tokio::time::sleep(Duration::from_secs(100)).await,
                7 => {
                    token.cancelled().await;
                    return Ok(());
                }
                _ => {}
            }
            Err(io::Error::other("stream closed"))
        }
    });
    // Runs begin after pauses of 1, 2, 4, 4 s, then 100 s of health and a pause of 1 s.
    tokio::time::sleep(Duration::from_secs(114)).await;
    assert_eq!(*starts.lock().unwrap(), [0, 1, 3, 7, 11, 112]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(starts.lock().unwrap().len(), 7);
    assert_eq!(tasks.shutdown(DEADLINE).await, Shutdown::default());
    service.join().await.unwrap();
    let lines = json_lines(&captured);
    assert_eq!(lines[1]["message"], "task watch panicked: second run");
    assert_eq!(lines[0]["message"], "task watch failed: stream closed");
    assert_eq!(lines.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_pauses_ends_at_once_when_cancelled() {
    let tasks = Tasks::new();
    let restart = Restart {
        first: Duration::from_secs(1000),
        cap: Duration::from_secs(1000),
        ..Restart::default()
    };
    let service = tasks.service("watch", restart, |_| async { Err(io::Error::other("closed")) });
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begin = Instant::now();
    assert_eq!(tasks.shutdown(DEADLINE).await, Shutdown::default());
    assert_eq!(begin.elapsed(), Duration::ZERO);
    service.join().await.unwrap();
}
