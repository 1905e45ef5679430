//! A PostgreSQL server, shared by any number of processes.
//!
//! ```text
//!   statements ── pool (bounded; session time-outs) ──┐
//!   wake-ups   ── one connection that listens ────────┤ server
//!                 one short NOTIFY for many signals ──┤
//!   time       ── asked now and then ─────────────────┘
//! ```

mod clock;
mod open;
mod wakeups;

pub(crate) use open::{Server, open};
