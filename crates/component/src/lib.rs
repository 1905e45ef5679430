//! Component operations as pipelines on the step engine.
