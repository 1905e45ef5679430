//! Ctrl-C and SIGTERM, in a process of their own.

use crate::child::Process;
use crate::support::json;

#[test]
fn the_first_signal_ends_the_process_cleanly() {
    for signal in ["INT", "TERM"] {
        let mut process = Process::start("graceful");
        process.wait_for("ready");
        process.signal(signal);
        assert_eq!(process.exit_code(), Some(0), "{:#?}", process.seen);
        let all = process.seen.join("\n");
        assert!(all.contains(&format!("\"signal\":\"SIG{signal}\"")), "{all}");
        assert!(
            all.contains("\"message\":\"ended cleanly\",\"aborted\":0"),
            "{all}"
        );
    }
}

#[test]
fn the_second_signal_ends_it_at_once() {
    for (first, second) in [("INT", "INT"), ("TERM", "INT"), ("INT", "TERM")] {
        let mut process = Process::start("stuck");
        process.wait_for("ready");
        process.signal(first);
        process.wait_for("\"cancelled\"");
        process.signal(second);
        assert_eq!(process.exit_code(), Some(130), "{:#?}", process.seen);
    }
}

#[test]
fn panics_are_lines_of_the_log_like_all_else() {
    let mut process = Process::start("panics");
    process.wait_for("task worker panicked: worker broke");
    process.signal("INT");
    assert_eq!(process.exit_code(), Some(0), "{:#?}", process.seen);
    let all = process.seen.join("\n");
    assert!(
        all.contains("\"target\":\"rustls::client\",\"message\":\"bridged\"}"),
        "{all}"
    );
    let lines: Vec<_> = process.seen.iter().map(|line| json(line)).collect();
    let hook = lines.iter().find(|line| line["target"] == "panic").unwrap();
    assert_eq!(hook["message"], "panicked: worker broke");
    assert!(hook["location"].as_str().unwrap().contains("child.rs:"));
    assert_eq!(hook["task"], "worker");
}
