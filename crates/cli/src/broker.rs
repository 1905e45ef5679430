//! The flags that say which environment broker the inventory is compared with.

use std::path::PathBuf;

use clap::Args;
use evenkeel_fleet::BrokerOptions;

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The environment broker whose list of runtimes the inventory is compared with; none when left out
    #[arg(long, value_name = "URL", env = "EVENKEEL_BROKER_URL")]
    broker_url: Option<String>,
    /// A file with the bearer token that the broker wants
    #[arg(
        long,
        value_name = "FILE",
        env = "EVENKEEL_BROKER_TOKEN_FILE",
        requires = "broker_url"
    )]
    broker_token_file: Option<PathBuf>,
}

impl Arguments {
    /// The broker, if there is one.
    pub(crate) fn options(&self) -> Option<BrokerOptions> {
        Some(BrokerOptions {
            url: self.broker_url.clone()?,
            token_file: self.broker_token_file.clone(),
        })
    }
}
