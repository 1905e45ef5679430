//! The REST API over HTTP: routes, request ids, problem answers. No SQL, no logic: each handler reads its request,
//! calls [`evenkeel_fleet::Fleet`] and writes the answer.
//!
//! [`lieutenant`] is a room of its own: the API of Project Syn's Lieutenant, over custom resources instead of a fleet.
//!
//! Until there is authentication the server listens on loopback only, and refuses what a browser sends on behalf of
//! another site.

mod archives;
mod audit;
mod broker;
mod clusters;
mod consent;
mod control;
mod extract;
mod health;
mod history;
mod instances;
mod keys;
pub mod lieutenant;
mod listen;
mod loopback;
mod problem;
mod reconciliations;
mod refused_calls;
mod request_id;
mod router;
mod settings;

pub use listen::{Error, Server};
pub use router::router;
