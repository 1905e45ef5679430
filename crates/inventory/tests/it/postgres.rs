//! What only PostgreSQL promises: many processes, and a server that comes and goes.

mod faults;
mod keys;
mod plans;
mod secrets;
mod several;
mod tls;
