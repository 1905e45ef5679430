//! Lieutenant's API, on a real kube-apiserver.

mod bad_input;
mod bootstrap;
mod changes;
mod document;
mod recorded;
mod site;
