//! Simulated clusters that speak the Kubernetes API.
