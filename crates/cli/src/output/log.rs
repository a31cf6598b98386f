//! Output of what the program does, for a user who asks for it with `--log`.

use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    fmt::{self, format::FmtSpan},
    registry::LookupSpan,
};

/// The treatment of a line for which stderr has no room, because it is a pipe and its reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// The program waits for the reader.
    Wait,
    /// The line is lost. For a server, whose client may never read stderr.
    Drop,
}

/// Returns the layer that prints spans and events to stderr. If stderr is closed, they are lost.
pub(crate) fn log_layer<S>(when_full: WhenFull) -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    // The start of a span is printed too: without it, the phase in which a command hangs would not show.
    let spans = FmtSpan::NEW | FmtSpan::CLOSE;
    fmt::layer()
        .with_writer(move || LogWriter { when_full })
        .with_ansi(false)
        .with_target(false)
        .with_span_events(spans)
        .log_internal_errors(false)
}

/// Writes one line to stderr.
struct LogWriter {
    when_full: WhenFull,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.when_full == WhenFull::Drop && !has_room() {
            return Ok(line.len());
        }
        io::stderr().lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether stderr takes a line at once.
fn has_room() -> bool {
    let stderr = io::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
