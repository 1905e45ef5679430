//! Where the inventory is, and the key ring that encrypts it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow};
use clap::Args;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use evenkeel_inventory::{OpenOptions, POSTGRES_CONNECTIONS, PostgresOptions, Synchronous};

use crate::process::Usage;

/// The database's name in the state directory.
const DATABASE: &str = "evenkeel.db";
/// What is put behind the database's name to get the key ring's.
const KEYS: &str = "keys";

/// Where the inventory is.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The database: a SQLite file, made when missing, or `postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE`,
    /// which any number of motherships share [default: evenkeel.db in the XDG state directory]
    ///
    /// The password may also stand in PGPASSWORD or in the file that PGPASSFILE names.
    #[arg(
        long,
        value_name = "FILE|URL",
        env = "EVENKEEL_DATABASE",
        hide_env_values = true
    )]
    database: Option<Database>,
    /// The most connections to a PostgreSQL database
    #[arg(long, value_name = "COUNT", default_value_t = POSTGRES_CONNECTIONS, value_parser = clap::value_parser!(u32).range(2..))]
    database_connections: u32,
    /// The key ring that encrypts secrets; made for a new database. Needed with PostgreSQL, where all motherships use
    /// the same one [default: beside the database file]
    #[arg(long, value_name = "FILE", env = "EVENKEEL_KEY_FILE")]
    key_file: Option<PathBuf>,
}

/// What `--database` names.
#[derive(Clone, Debug)]
enum Database {
    File(PathBuf),
    Postgres(PostgresOptions),
}

impl FromStr for Database {
    type Err = evenkeel_inventory::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains("://") {
            return text.parse().map(Self::Postgres);
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl Arguments {
    /// Where the inventory is, and its keys.
    pub(crate) fn options(&self) -> anyhow::Result<OpenOptions> {
        let keys = self.key_file()?;
        match &self.database {
            Some(Database::Postgres(server)) => {
                let mut server = server.clone();
                server.connections = self.database_connections;
                Ok(OpenOptions::postgres(server, keys))
            }
            _ => Ok(OpenOptions {
                synchronous: Synchronous::Full,
                ..OpenOptions::file(self.file()?, keys)
            }),
        }
    }

    /// Where the key ring is.
    pub(crate) fn key_file(&self) -> anyhow::Result<PathBuf> {
        match (&self.key_file, &self.database) {
            (Some(keys), _) => Ok(keys.clone()),
            (None, Some(Database::Postgres(_))) => {
                let reason = "--database names a PostgreSQL server: say with --key-file where the key ring is that all \
                              motherships on it use";
                Err(Usage(anyhow!(reason)).into())
            }
            (None, _) => Ok(self.file()?.with_extension(KEYS)),
        }
    }

    fn file(&self) -> anyhow::Result<PathBuf> {
        match &self.database {
            Some(Database::File(path)) => Ok(path.clone()),
            _ => Ok(state_directory()?.join(DATABASE)),
        }
    }
}

/// Where state belongs that should survive (XDG base directories).
fn state_directory() -> anyhow::Result<PathBuf> {
    let strategy = choose_app_strategy(AppStrategyArgs {
        top_level_domain: "dev".to_owned(),
        author: "evenkeel".to_owned(),
        app_name: "evenkeel".to_owned(),
    });
    let strategy = strategy.context("the home directory is not known: use --database")?;
    Ok(strategy
        .state_dir()
        .as_deref()
        .map_or_else(|| strategy.data_dir(), Path::to_path_buf))
}
