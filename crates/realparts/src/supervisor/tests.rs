use super::*;

/// A bound for things that take milliseconds on an idle machine.
const BOUND: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// A folder for a server inside one for its instance, neither removed by the test.
fn server_folder() -> PathBuf {
    let folder = tempfile::tempdir().unwrap().keep().join("server");
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn start(script: &str, folder: &Path, ending: Ending) -> Server {
    Server::start("sample", &shell(script), folder, ending, None).unwrap()
}

/// The watcher removes the common folder just after the server's own, for which alone a stop waits.
fn assert_goes_away(folder: &Path) {
    let started = Instant::now();
    while folder.exists() {
        assert!(started.elapsed() < BOUND, "{} is still there", folder.display());
        std::thread::sleep(POLL);
    }
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn dropping_ends_the_server_and_removes_its_folders() {
    let folder = server_folder();
    let pid_file = tempfile::NamedTempFile::new().unwrap();
    let script = format!("echo $$ > {}; exec sleep 1000", pid_file.path().display());
    let mut server = start(&script, &folder, Ending::Kill);
    let read = || std::fs::read_to_string(pid_file.path()).unwrap();
    server
        .wait_until("writing its id", BOUND, || Ok(read().ends_with('\n')))
        .unwrap();
    assert!(is_alive(&read()));
    server.stop();
    assert!(!is_alive(&read()));
    assert!(!folder.exists());
    assert_goes_away(folder.parent().unwrap());
}

#[test]
fn a_common_folder_stays_while_another_server_uses_it() {
    let folder = server_folder();
    let neighbour = folder.with_file_name("neighbour");
    std::fs::create_dir(&neighbour).unwrap();
    start("exec sleep 1000", &folder, Ending::Kill).stop();
    assert!(!folder.exists());
    assert!(neighbour.exists());
    start("exec sleep 1000", &neighbour, Ending::Kill).stop();
    assert_goes_away(neighbour.parent().unwrap());
}

#[test]
fn a_server_that_may_end_itself_does() {
    let folder = server_folder();
    let said = tempfile::NamedTempFile::new().unwrap();
    // Not a trap of the shell: a shell started with the signal ignored, as background jobs are, cannot trap it.
    let script = format!(
        "exec python3 -c \"import signal, sys, time\n\
         def bye(*_):\n    open('{}', 'w').write('bye\\\\n')\n    sys.exit(0)\n\
         signal.signal(signal.SIGINT, bye)\nprint('ready', flush=True)\ntime.sleep(1000)\"",
        said.path().display()
    );
    let ending = Ending::Interrupt {
        grace: Duration::from_secs(30),
    };
    let mut server = start(&script, &folder, ending);
    let log = server.log().to_owned();
    server
        .wait_until("ready", BOUND, || {
            Ok(std::fs::read_to_string(&log).unwrap().contains("ready"))
        })
        .unwrap();
    server.stop();
    assert_eq!(std::fs::read_to_string(said.path()).unwrap(), "bye\n");
}

#[test]
fn a_server_deaf_to_the_signal_is_killed_after_the_grace() {
    let folder = server_folder();
    let ending = Ending::Interrupt {
        grace: Duration::from_millis(300),
    };
    let mut server = start(
        "trap '' INT; echo ready; while :; do sleep 0.05; done",
        &folder,
        ending,
    );
    let log = server.log().to_owned();
    server
        .wait_until("ready", BOUND, || {
            Ok(std::fs::read_to_string(&log).unwrap().contains("ready"))
        })
        .unwrap();
    server.stop();
    assert!(!folder.exists());
}

#[test]
fn a_server_that_ends_early_is_an_error_with_its_last_words() {
    let folder = server_folder();
    let mut server = start(
        "echo one; echo 'no such flag: --x' >&2; exit 7",
        &folder,
        Ending::Kill,
    );
    let error = server
        .wait_until("ready", BOUND, || Ok(false))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("sample did not start: it ended with status 7\n"),
        "{error}"
    );
    assert!(error.ends_with("one\nno such flag: --x"), "{error}");
}

#[test]
fn a_server_that_is_never_ready_is_an_error_after_the_bound() {
    let folder = server_folder();
    let mut server = start("echo waiting; exec sleep 1000", &folder, Ending::Kill);
    let error = server
        .wait_until("ready", Duration::from_millis(200), || Ok(false))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("sample did not start: not ready after 0 s\n"),
        "{error}"
    );
}

#[test]
fn a_long_log_is_quoted_by_its_end() {
    let mut file = tempfile::tempfile().unwrap();
    let text: String = (0..5000).map(|line| format!("line {line}\n")).collect();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let quoted = last_lines(&mut file);
    assert_eq!(quoted.lines().count(), QUOTED_LINES);
    assert!(quoted.ends_with("line 4999"));
}
