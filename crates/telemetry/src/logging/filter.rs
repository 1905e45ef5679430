//! The filter: the user's, but spans with ids always pass.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

use super::ID_FIELDS;

/// With a filter of `warn`, an info span is not made, and the warnings in it lose its ids: no id would find them.
/// So a span that carries an id passes whatever the filter says. Events are the filter's alone.
pub(super) struct KeepIds(pub(super) EnvFilter);

fn carries_id(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && ID_FIELDS.iter().any(|id| metadata.fields().field(id).is_some())
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Filter<S> for KeepIds {
    fn enabled(&self, metadata: &Metadata<'_>, cx: &Context<'_, S>) -> bool {
        carries_id(metadata) || Filter::enabled(&self.0, metadata, cx)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if carries_id(metadata) {
            Interest::always()
        } else {
            Filter::<S>::callsite_enabled(&self.0, metadata)
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Spans with ids may have any level. What is not wanted costs one cached look per callsite.
        None
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        Filter::on_new_span(&self.0, attributes, id, cx);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        Filter::on_record(&self.0, id, values, cx);
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        Filter::on_enter(&self.0, id, cx);
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        Filter::on_exit(&self.0, id, cx);
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        Filter::on_close(&self.0, id, cx);
    }
}
