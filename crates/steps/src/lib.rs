//! The step engine: checked graphs of named steps.
