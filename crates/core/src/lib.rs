//! Ids, states, component graph, clock, secret types. No I/O, no async.
