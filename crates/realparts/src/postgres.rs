//! A PostgreSQL server for tests and benches.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::supervisor::{Ending, Server};
use crate::{Error, binaries, ports};

/// How long `initdb` is followed by a server that answers, on a busy machine. An idle one needs a second.
const START_BOUND: Duration = Duration::from_secs(60);

/// Time for a fast shutdown: the server frees its shared memory only when it may end itself.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// How often a start is tried again because another process took the port first.
const PORT_TRIES: usize = 5;

/// A running PostgreSQL with an empty database. It listens on loopback only, trusts every connection, and forgets
/// everything when dropped. Durability is off: use it to test behaviour, and say so where a figure is measured.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    port: u16,
}

impl Postgres {
    /// Makes a database in a temporary folder and starts a server on it, as an unprivileged user if we are root.
    ///
    /// # Errors
    /// When the machine has no PostgreSQL, or it does not start; with the last lines of its log.
    pub fn start() -> Result<Self, Error> {
        let binaries = binaries::postgres_binaries()?;
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_on(&binaries, ports::free()?) {
                Err(Error::Start { last_lines, .. })
                    if last_lines.contains("Address already in use") && tries < PORT_TRIES => {}
                result => return result,
            }
        }
    }

    fn start_on(binaries: &Path, port: u16) -> Result<Self, Error> {
        let (folder, user) = instance_folder()?;
        let data = folder.join("data");
        initdb(binaries, &folder, &data, user)?;

        let mut command = Command::new(binaries.join("postgres"));
        command
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&folder)
            .arg("-p")
            .arg(port.to_string());
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "max_connections=200",
            "logging_collector=off",
        ] {
            command.args(["-c", setting]);
        }
        let ending = Ending::Interrupt {
            grace: SHUTDOWN_GRACE,
        };
        let mut server = Server::start("postgres", &command, &folder, ending, user)?;
        server.wait_until("ready", START_BOUND, || {
            let mut probe = Command::new(binaries.join("pg_isready"));
            probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"]);
            probe
                .status()
                .map(|status| status.success())
                .map_err(Error::io("run pg_isready"))
        })?;
        Ok(Self { server, port })
    }

    /// Connection URL of the superuser and the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The log file, for as long as the server runs.
    pub fn log(&self) -> &Path {
        self.server.log()
    }
}

/// A new folder for one server inside one for its instance, and the user that it belongs to and that shall run in it:
/// none but our own, unless we are root.
fn instance_folder() -> Result<(PathBuf, Option<(u32, u32)>), Error> {
    use std::os::unix::fs::{MetadataExt as _, chown};

    let doing = "create a temporary folder for PostgreSQL";
    let instance = tempfile::Builder::new()
        .prefix("ek-pg-")
        .tempdir()
        .map_err(Error::io(doing))?;
    let folder = instance.path().join("server");
    std::fs::create_dir(&folder).map_err(Error::io(doing))?;
    // What we create is ours: the portable way to ask who we are.
    let is_root = folder.metadata().map_err(Error::io(doing))?.uid() == 0;
    let user = if is_root { Some(unprivileged_user()?) } else { None };
    if let Some((user, group)) = user {
        for path in [instance.path(), &folder] {
            chown(path, Some(user), Some(group)).map_err(Error::io(doing))?;
        }
    }
    // From here on the watcher of the server removes both.
    let _ = instance.keep();
    Ok((folder, user))
}

fn initdb(binaries: &Path, folder: &Path, data: &Path, user: Option<(u32, u32)>) -> Result<(), Error> {
    use std::os::unix::process::CommandExt as _;

    let mut command = Command::new(binaries.join("initdb"));
    command.args([
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "-D",
    ]);
    command.arg(data).current_dir(folder);
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    let output = command.output().map_err(Error::io("run initdb"))?;
    if output.status.success() {
        return Ok(());
    }
    let last_lines = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    let error = Error::Start {
        server: "initdb".to_owned(),
        reason: output.status.to_string(),
        log: data.to_owned(),
        last_lines,
    };
    if let Some(instance) = folder.parent() {
        let _ = std::fs::remove_dir_all(instance);
    }
    Err(error)
}

/// User and group to run as in root's stead, as which PostgreSQL refuses to run.
fn unprivileged_user() -> Result<(u32, u32), Error> {
    let passwd = std::fs::read_to_string("/etc/passwd").map_err(Error::io("read /etc/passwd"))?;
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| user_in(&passwd, name))
        .ok_or(Error::NoUnprivilegedUser)
}

/// User and group id of a line of `/etc/passwd`.
fn user_in(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some((user, group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:105:113:,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(user_in(passwd, "postgres"), Some((105, 113)));
        assert_eq!(user_in(passwd, "post"), None);
        assert_eq!(user_in("broken", "broken"), None);
    }

    #[test]
    fn a_server_starts_answers_and_leaves_nothing() {
        let postgres = Postgres::start().unwrap();
        let psql = binaries::postgres_binaries().unwrap().join("psql");
        let output = Command::new(psql)
            .args([&postgres.url(), "-Atc", "select 6 * 7"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{output:?}");
        let folder = postgres.log().parent().unwrap().to_owned();
        assert!(folder.exists());
        drop(postgres);
        assert!(!folder.exists());
    }
}
