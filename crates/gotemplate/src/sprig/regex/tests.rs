//! Against the Go regexp package.
