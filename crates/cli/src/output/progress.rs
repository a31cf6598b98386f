//! A line that tells how far the work is, for those who have to wait.

use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use backtrail::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::wording::bytes;

/// Work that takes less time needs no line.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);

/// A line that stands while this lives.
pub(crate) struct ProgressLine {
    stop: Option<mpsc::Sender<()>>,
    drawer: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts to watch.
    pub(crate) fn start(progress: Arc<Progress>, doing: &'static str) -> Self {
        let (stop, stopped) = mpsc::channel();
        let drawer = std::thread::Builder::new().spawn(move || draw(&progress, doing, &stopped));
        // Without a thread there is no line.
        Self { stop: Some(stop), drawer: drawer.ok() }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(drawer) = self.drawer.take() {
            // A line that could not be drawn is no reason to fail.
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
            // It waits for another process.
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
