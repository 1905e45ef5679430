//! HTTP: routes, errors, request ids.
