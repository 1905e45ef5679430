//! `evenkeel operator describe`: the pipelines themselves. It needs no cluster.

use clap::Args;
use evenkeel_operator::pipelines;

use crate::output;

/// Print the pipelines of all kinds: steps in order, when each runs, what it comes after, and what it asks of what is outside.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print them as graphs, for Graphviz
    #[arg(long)]
    dot: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for pipeline in pipelines()? {
        output::line(if arguments.dot {
            &pipeline.dot
        } else {
            &pipeline.text
        })?;
    }
    Ok(())
}
