//! `evenkeel keys`: the keys that encrypt secrets at rest, and their rotation.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use evenkeel_api::{Client, Key, KeyState, Keys};
use evenkeel_core::{Clock as _, HumanDuration};
use evenkeel_inventory::{Error, KeyId, KeyringFile, Keys as _, Location, SqlStore, reencrypt_all};
use evenkeel_telemetry::{SystemClock, request};

use crate::commands::Connection;
use crate::database;
use crate::output::{self, OutputFormat};

/// Between two looks at how far a rotation is.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Look at, add, rotate and remove the keys that encrypt secrets.
///
/// A rotation has three steps: `add` a key to the ring file and bring the file to every mothership; `rotate`, which makes
/// it the active key; `remove` the old key when nothing needs it any more. Motherships take changes of the file up by
/// themselves within seconds and encrypt again what older keys encrypted, while everything goes on. Keep removed keys as
/// long as backups that were made with them.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a key to the ring; it encrypts nothing yet
    Add(Ring),
    /// Make the newest key of the ring the active one, and have everything encrypted with it
    Rotate(Rotate),
    /// Show the keys and how many values each has encrypted
    Status(Status),
    /// Take a key out of use, and out of the ring, once nothing needs it
    Remove(Remove),
}

/// A command on the ring file alone.
#[derive(Debug, Args)]
struct Ring {
    #[command(flatten)]
    database: database::Arguments,
}

#[derive(Debug, Args)]
struct Rotate {
    /// The key to make active [default: the newest]
    #[arg(long, value_name = "ID")]
    to: Option<KeyId>,
    #[command(flatten)]
    database: database::Arguments,
    /// Do it here, on the database itself, and not by a mothership
    #[arg(long)]
    offline: bool,
    /// Wait until a mothership has encrypted everything again
    #[arg(long, conflicts_with = "offline")]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    timeout: HumanDuration,
}

#[derive(Debug, Args)]
struct Status {
    #[command(flatten)]
    database: database::Arguments,
    /// Look at the database itself, and do not ask a mothership
    #[arg(long)]
    offline: bool,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Debug, Args)]
struct Remove {
    /// The key's id
    id: KeyId,
    #[command(flatten)]
    database: database::Arguments,
    /// Do it on the database itself, and not by a mothership
    #[arg(long)]
    offline: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.command {
        Command::Add(Ring { database }) => add(&database),
        Command::Rotate(arguments) => Box::pin(rotate(&client, &arguments)).await,
        Command::Status(arguments) => status(&client, &arguments).await,
        Command::Remove(arguments) => remove(&client, &arguments).await,
    }
}

fn add(database: &database::Arguments) -> anyhow::Result<()> {
    let ring = KeyringFile::new(database.key_file()?);
    let id = ring.add(SystemClock.now())?;
    output::line(&format!("key {id} was added to {}", ring.path().display()))?;
    output::note("bring the file to every mothership, then run `evenkeel keys rotate`");
    Ok(())
}

async fn rotate(client: &Client, arguments: &Rotate) -> anyhow::Result<()> {
    let ring = KeyringFile::new(arguments.database.key_file()?);
    let id = ring.activate(arguments.to)?;
    output::line(&format!(
        "key {id} is the active one of {}",
        ring.path().display()
    ))?;
    if arguments.offline {
        return rotate_here(arguments, id).await;
    }
    if !arguments.wait {
        output::note(
            "motherships encrypt everything again with it; `evenkeel keys status` shows how far they are",
        );
        return Ok(());
    }
    let wait = async {
        let mut said = None;
        loop {
            let keys = client.keys().await?;
            let (active, left) = standing(&keys, id);
            if active && left == 0 {
                return anyhow::Ok(());
            }
            let line = match (active, keys.waiting_for.is_empty()) {
                (true, _) => format!("{left} values are left"),
                (false, true) => "the mothership takes the key up soon".to_owned(),
                (false, false) => format!("these processes lack the key: {}", keys.waiting_for.join(", ")),
            };
            if said.as_ref() != Some(&line) {
                output::note(&line);
            }
            said = Some(line);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    match tokio::time::timeout(arguments.timeout.0, wait).await {
        Ok(done) => done?,
        Err(_) => bail!(
            "it was not done within {}; it goes on all the same",
            arguments.timeout
        ),
    }
    output::line(&format!("everything is encrypted with key {id}"))
}

/// Whether a key is the active one, and how many values are under others.
fn standing(keys: &Keys, id: KeyId) -> (bool, u64) {
    let id = id.to_string();
    let active = keys
        .keys
        .iter()
        .any(|key| key.id == id && key.state == KeyState::Active);
    let others = keys.keys.iter().filter(|key| key.id != id);
    (active, others.map(|key| key.values).sum())
}

async fn rotate_here(arguments: &Rotate, id: KeyId) -> anyhow::Result<()> {
    // Opening it makes the key the active one, where nobody else has to hold it first.
    let store = as_local(Box::pin(open(&arguments.database))).await?;
    let done = as_local(async {
        let wait = async {
            loop {
                let agreement = store.refresh_keys().await?;
                if agreement.active == id {
                    return Ok::<_, Error>(());
                }
                let lacking = agreement.waiting_for.join(", ");
                output::note(&format!("these processes lack the key: {lacking}"));
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(arguments.timeout.0, wait).await {
            Ok(active) => active?,
            Err(_) => bail!("key {id} did not become active within {}", arguments.timeout),
        }
        let mut told = 0;
        let pass = reencrypt_all(&store, SystemClock.now(), |pass| {
            if pass.changed / 1_000 > told {
                told = pass.changed / 1_000;
                output::note(&format!("{} values are encrypted again", pass.changed));
            }
            true
        })
        .await?;
        for failure in &pass.named {
            output::note(&format!("{}: {}", failure.row, failure.error));
        }
        if !pass.is_clean() {
            bail!(
                "{} values are encrypted again; {} cannot be read, and {} are in use: run it again later",
                pass.changed,
                pass.unreadable,
                pass.passed_over
            );
        }
        output::line(&format!(
            "{} values are encrypted again with key {id}",
            pass.changed
        ))
    })
    .await;
    store.close().await;
    done
}

async fn status(client: &Client, arguments: &Status) -> anyhow::Result<()> {
    let keys = if arguments.offline {
        let store = open(&arguments.database).await?;
        let keys = shown(&store).await;
        store.close().await;
        keys?
    } else {
        client.keys().await?
    };
    output::print(arguments.output, &keys, || table(&keys))?;
    if keys.unreadable > 0 {
        output::note(&format!("{} values cannot be read by any key", keys.unreadable));
    }
    if !keys.waiting_for.is_empty() {
        let lacking = keys.waiting_for.join(", ");
        output::note(&format!("a key waits until these processes hold it: {lacking}"));
    }
    Ok(())
}

async fn shown(store: &SqlStore) -> anyhow::Result<Keys> {
    let agreement = store.refresh_keys().await?;
    let status = store.key_status().await?;
    let keys = status.keys.into_iter().map(|key| Key {
        state: match (key.active, key.removed_at, key.replaced_at) {
            (true, ..) => KeyState::Active,
            (_, Some(_), _) => KeyState::Removed,
            (_, _, Some(_)) => KeyState::Replaced,
            _ => KeyState::New,
        },
        id: key.id.to_string(),
        created: key.created_at,
        replaced: key.replaced_at,
        values: key.rows,
    });
    Ok(Keys {
        keys: keys.collect(),
        unreadable: status.damaged + status.unknown.values().sum::<u64>(),
        waiting_for: agreement.waiting_for,
    })
}

fn table(keys: &Keys) -> String {
    let now = crate::now();
    let rows = keys.keys.iter().map(|key| {
        [
            key.id.clone(),
            key.state.as_str().to_owned(),
            output::age(key.created, now),
            key.values.to_string(),
        ]
    });
    output::table(["KEY", "STATE", "AGE", "VALUES"], rows)
}

async fn remove(client: &Client, arguments: &Remove) -> anyhow::Result<()> {
    let ring = KeyringFile::new(arguments.database.key_file()?);
    let id = arguments.id;
    if arguments.offline {
        let store = open(&arguments.database).await?;
        let removed = as_local(store.remove_key(id)).await;
        store.close().await;
        removed?;
    } else {
        client.remove_key(&id.to_string()).await?;
    }
    // Only now: nothing and nobody needs it any more.
    ring.remove(id)?;
    output::line(&format!("key {id} was removed from {}", ring.path().display()))?;
    output::note("keep it elsewhere as long as backups that were made with it");
    Ok(())
}

async fn open(database: &database::Arguments) -> anyhow::Result<SqlStore> {
    let options = database.options()?;
    if let Location::File(path) = &options.location
        && !path.exists()
    {
        bail!(
            "{} does not exist: name the database with --database",
            path.display()
        );
    }
    let opened = SqlStore::open(options, Arc::new(SystemClock)).await;
    if let Err(Error::InUse { .. }) = &opened {
        return opened.context("a mothership has the database open: leave --offline out, and it does it");
    }
    opened.context("the database cannot be opened")
}

/// Does something in the name of the person at this machine, so that the audit log knows.
async fn as_local<F: Future>(done: F) -> F::Output {
    let person = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    let call = format!("cli-{}", std::process::id());
    request::scope_of(call, format!("local:{person}"), done).await
}
