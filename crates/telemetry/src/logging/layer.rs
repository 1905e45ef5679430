//! From events to lines.

use std::io::Write;
use std::sync::Arc;

use evenkeel_core::Clock;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::Style;
use super::fields::{Fields, Value};
use super::line::Line;

/// The target under which records of the `log` crate arrive; the real one is in a field.
const BRIDGED_TARGET: &str = "log";

/// Writes one line per event, with the fields of all spans around it.
pub(super) struct Lines<W> {
    style: Style,
    clock: Arc<dyn Clock>,
    writer: W,
}

impl<W> Lines<W> {
    pub(super) fn new(style: Style, clock: Arc<dyn Clock>, writer: W) -> Self {
        Self { style, clock, writer }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        // Inner spans override outer ones, the event overrides all.
        let mut fields = Fields::default();
        for span in cx
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.extend(of_span);
            }
        }
        let mut own = Fields::default();
        event.record(&mut own);
        let message = match own.take("message") {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        };
        let metadata = event.metadata();
        let mut target = metadata.target().to_owned();
        if target == BRIDGED_TARGET
            && let Some(Value::Text(real)) = own.take("log.target")
        {
            target = real;
            own.0.retain(|(name, _)| !name.starts_with("log."));
        }
        fields.extend(&own);
        let line = Line {
            time: self.clock.now(),
            level: *metadata.level(),
            target,
            message,
            fields,
        };
        let bytes = line.to_bytes(self.style);
        // Nobody is left to hear that standard error is gone.
        let _ = self.writer.make_writer_for(metadata).write_all(&bytes);
    }
}
