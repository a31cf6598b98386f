//! Output of what the program does, for a user who asks for it with `--log`.

use std::io;

use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    fmt::{self, format::FmtSpan},
    registry::LookupSpan,
};

/// Returns the layer that prints spans and events to stderr. If stderr is closed, they are lost.
pub(crate) fn log_layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    // The start of a span is printed too: without it, the phase in which a command hangs would not show.
    let spans = FmtSpan::NEW | FmtSpan::CLOSE;
    fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_span_events(spans)
        .log_internal_errors(false)
}
