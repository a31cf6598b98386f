//! A line on the terminal that shows the progress of long work.

use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use backtrail::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::wording::bytes;

/// The delay before the line appears. Shorter work needs none.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);

/// A progress line. It is removed when this is dropped.
pub(crate) struct ProgressLine {
    stop: Option<mpsc::Sender<()>>,
    drawer: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts a thread that draws the progress.
    pub(crate) fn start(progress: Arc<Progress>, doing: &'static str) -> Self {
        let (stop, stopped) = mpsc::channel();
        let drawer = std::thread::Builder::new().spawn(move || draw(&progress, doing, &stopped));
        // If the thread can't be started, there is no line.
        Self { stop: Some(stop), drawer: drawer.ok() }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(drawer) = self.drawer.take() {
            // The work must not fail because the line could not be drawn.
            drop(drawer.join());
        }
    }
}

fn draw(progress: &Progress, doing: &'static str, stopped: &mpsc::Receiver<()>) {
    if is_over(stopped, PATIENCE) {
        return;
    }
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        line.set_style(style);
    }
    while !is_over(stopped, REDRAW) {
        line.set_message(match progress.entries() {
            // The work is still waiting for another process.
            0 => format!("{doing}…"),
            entries => format!("{doing}: entries {entries}, read {}", bytes(progress.bytes())),
        });
        line.tick();
    }
    line.finish_and_clear();
}

fn is_over(stopped: &mpsc::Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout)
}
