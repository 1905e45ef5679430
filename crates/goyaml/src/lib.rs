//! YAML and JSON as Go reads and writes them. Pure.
