//! One file per command.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod broker;
pub(crate) mod cluster;
pub(crate) mod demo;
pub(crate) mod instances;
pub(crate) mod keys;
pub(crate) mod local;
pub(crate) mod mothership;
pub(crate) mod operator;
pub(crate) mod reconciliation;
pub(crate) mod settings;

use clap::Args;
use evenkeel_api::Client;

/// How a mothership is reached.
#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// The mothership's address
    #[arg(long, env = "EVENKEEL_SERVER", value_name = "URL", global = true, default_value = DEFAULT_SERVER)]
    server: String,
}

/// The port that a mothership listens on unless told otherwise.
pub(crate) const DEFAULT_PORT: u16 = 8640;
/// Where a mothership listens unless told otherwise.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8640";

impl Connection {
    /// A client of that mothership.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.server)?)
    }
}
