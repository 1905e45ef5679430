//! Helm charts: load, values, dependencies, render, order. Pure.
