//! A PostgreSQL server for tests and benches.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::supervisor::{Ending, Server};
use crate::unprivileged::Instance;
use crate::{Error, binaries, ports};

/// How long `initdb` is followed by a server that answers, on a busy machine. An idle one needs a second.
const START_BOUND: Duration = Duration::from_secs(60);

/// Time for a fast shutdown: the server frees its shared memory only when it may end itself.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The name of the folder with the data.
const DATA: &str = "data";

/// How often a start is tried again because another process took the port first.
const PORT_TRIES: usize = 5;

/// Whether a commit survives a loss of power. Off is faster, and all the same to tests of behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `fsync=off`: for tests.
    Off,
    /// `fsync=on`, as installed: for figures.
    On,
}

/// A running PostgreSQL with an empty database. It listens on loopback only, trusts every connection, and forgets
/// everything when dropped.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    instance: Instance,
    port: u16,
    settings: Vec<String>,
    starts: u32,
}

impl Postgres {
    /// Makes a database in a temporary folder and starts a server on it, as an unprivileged user if we are root.
    /// Durability is off.
    ///
    /// # Errors
    /// When the machine has no PostgreSQL, or it does not start; with the last lines of its log.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(Durability::Off, &[])
    }

    /// The same with more settings, each `name=value`.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(durability: Durability, settings: &[&str]) -> Result<Self, Error> {
        Self::start_prepared(durability, settings, &[])
    }

    /// The same, taking connections over TLS only; certificate and key in PEM.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_encrypted(certificate: &str, key: &str) -> Result<Self, Error> {
        let files = [
            ("server.crt", certificate),
            ("server.key", key),
            ("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n"),
        ];
        Self::start_prepared(Durability::Off, &["ssl=on"], &files)
    }

    /// The same with these files among its data.
    fn start_prepared(
        durability: Durability,
        settings: &[&str],
        files: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let binaries = binaries::postgres_binaries()?;
        let mut all = vec![
            "listen_addresses=127.0.0.1",
            "max_connections=200",
            "logging_collector=off",
        ];
        if durability == Durability::Off {
            all.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"]);
        }
        all.extend(settings);
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_on(&binaries, ports::free()?, &all, files) {
                Err(Error::Start { last_lines, .. })
                    if last_lines.contains("Address already in use") && tries < PORT_TRIES => {}
                result => return result,
            }
        }
    }

    fn start_on(
        binaries: &Path,
        port: u16,
        settings: &[&str],
        files: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let instance = Instance::new("PostgreSQL", "ek-pg-")?;
        let made = initdb(binaries, &instance, &instance.folder.join(DATA));
        let written = made.and_then(|()| {
            files.iter().try_for_each(|(name, text)| {
                let path = instance.write(&format!("{DATA}/{name}"), text)?;
                // It reads no key that others could read, too.
                std::fs::set_permissions(&path, Permissions::from_mode(0o600))
                    .map_err(Error::io(format!("close {} to others", path.display())))
            })
        });
        if let Err(error) = written {
            instance.remove();
            return Err(error);
        }
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let server = run(binaries, &instance, port, &settings)?;
        Ok(Self {
            server,
            instance,
            port,
            settings,
            starts: 1,
        })
    }

    /// Ends the server and keeps its data for [`Self::start_again`]. Connections are ended, transactions undone.
    ///
    /// # Errors
    /// When it cannot be signalled or does not end.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.server.end("INT", SHUTDOWN_GRACE)
    }

    /// Ends the server as a crash does: it writes nothing more, and recovers when it is started again.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub fn crash(&mut self) -> Result<(), Error> {
        self.server.end("QUIT", SHUTDOWN_GRACE)
    }

    /// Starts a server that was stopped, with its data, on the same port.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> Result<(), Error> {
        self.starts += 1;
        // A folder of its own: the first one's watcher removes that.
        let next = self.instance.sibling(&format!("server-{}", self.starts))?;
        let (from, to) = (self.instance.folder.join(DATA), next.folder.join(DATA));
        std::fs::rename(from, to).map_err(Error::io("move the data of PostgreSQL"))?;
        self.server = run(&binaries::postgres_binaries()?, &next, self.port, &self.settings)?;
        self.instance = next;
        Ok(())
    }

    /// Connection URL of the superuser and the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Connection URL of the superuser and a database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A client program of the same installation: `psql`, `pg_dump`.
    ///
    /// # Errors
    /// When the machine has no PostgreSQL.
    pub fn program(name: &str) -> Result<Command, Error> {
        Ok(Command::new(binaries::postgres_binaries()?.join(name)))
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

/// Starts a server on the data in an instance's folder and waits until it answers.
fn run(binaries: &Path, instance: &Instance, port: u16, settings: &[String]) -> Result<Server, Error> {
    let folder = &instance.folder;
    let mut command = Command::new(binaries.join("postgres"));
    command
        .arg("-D")
        .arg(folder.join(DATA))
        .arg("-k")
        .arg(folder)
        .arg("-p")
        .arg(port.to_string());
    for setting in settings {
        command.args(["-c", setting]);
    }
    let ending = Ending::Interrupt {
        grace: SHUTDOWN_GRACE,
    };
    let mut server = Server::start("postgres", &command, folder, ending, instance.user)?;
    server.wait_until("ready", START_BOUND, || {
        let mut probe = Command::new(binaries.join("pg_isready"));
        probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"]);
        probe
            .status()
            .map(|status| status.success())
            .map_err(Error::io("run pg_isready"))
    })?;
    Ok(server)
}

fn initdb(binaries: &Path, instance: &Instance, data: &Path) -> Result<(), Error> {
    let mut command = Command::new(binaries.join("initdb"));
    command.args([
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "-D",
    ]);
    command.arg(data).current_dir(&instance.folder);
    instance.run_as(&mut command);
    let output = command.output().map_err(Error::io("run initdb"))?;
    if output.status.success() {
        return Ok(());
    }
    let last_lines = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    Err(Error::Start {
        server: "initdb".to_owned(),
        reason: output.status.to_string(),
        log: data.to_owned(),
        last_lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_server_keeps_its_data_over_a_stop_and_a_crash() {
        let sql = |postgres: &Postgres, statement: &str| {
            let mut psql = Postgres::program("psql").unwrap();
            let output = psql.args([&postgres.url(), "-Atc", statement]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let mut postgres = Postgres::start_with(Durability::On, &["work_mem=5MB"]).unwrap();
        assert_eq!(sql(&postgres, "show work_mem; show fsync"), "5MB\non\n");
        sql(&postgres, "create table kept as select 1 as number");
        let first = postgres.log().parent().unwrap().to_owned();
        postgres.stop().unwrap();
        assert_eq!(sql(&postgres, "select 1"), "");
        postgres.start_again().unwrap();
        assert!(!first.exists());
        sql(&postgres, "insert into kept values (2)");
        postgres.crash().unwrap();
        postgres.start_again().unwrap();
        assert_eq!(sql(&postgres, "select sum(number) from kept"), "3\n");
        let last = postgres.log().parent().unwrap().to_owned();
        drop(postgres);
        assert!(!last.exists());
    }
}
