//! The flags that say how much is done at the same time, and when a version is stopped.

use clap::Args;
use evenkeel_core::HumanDuration;
use evenkeel_fleet::Settings;
use evenkeel_inventory::ClaimLimits;

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// How long a run may go on before a newer version takes its place, once five in a row were overtaken so; twice as
    /// long after each further one
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().supersede_patience))]
    supersede_patience: HumanDuration,
    /// How many operations may run at the same time, in all motherships together; no limit when left out
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    operations_max: Option<u32>,
    /// The same, of one tenant
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    operations_per_tenant: Option<u32>,
    /// The same, of one component
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    operations_per_component: Option<u32>,
    /// On how many clusters a component's version must fail before the others do not get it
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().breaker_failures)]
    breaker_failures: usize,
    /// And on more than how many per cent of those that got it
    #[arg(long, value_name = "PERCENT", default_value_t = Settings::default().breaker_percent, value_parser = clap::value_parser!(u8).range(..=100))]
    breaker_percent: u8,
}

impl Arguments {
    /// `settings` with what the flags say.
    pub(crate) fn complete(&self, settings: Settings) -> Settings {
        Settings {
            supersede_patience: self.supersede_patience.0,
            limits: ClaimLimits {
                total: self.operations_max,
                per_tenant: self.operations_per_tenant,
                per_component: self.operations_per_component,
            },
            breaker_failures: self.breaker_failures,
            breaker_percent: self.breaker_percent,
            ..settings
        }
    }
}
