//! Runs a program until it ends or its time limit is reached.

use std::{
    ffi::OsStr,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, waitpid},
};

use super::{
    Ended, HeldSignals,
    capture::{Capture, Listener},
    group::{GRACE, Group},
    terminal::Terminal,
};
use crate::process;

/// The maximum delay in noticing that a child has ended, in case the kernel delivers the signal to another thread.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The deadline of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(Option<Instant>);

impl Limit {
    /// Sets the deadline this long from now. Without a time, there is no deadline.
    pub(crate) fn after(time: Option<Duration>) -> Self {
        Self(time.and_then(|time| Instant::now().checked_add(time)))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|limit| Instant::now() >= limit)
    }
}

/// Returns a command that runs this text in the shell.
pub(crate) fn by_shell(text: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text);
    command
}

/// Runs a program in the foreground and waits for it.
pub(crate) fn run(command: &mut Command, limit: Limit, signals: &HeldSignals) -> Ended {
    if let Some(signal) = signals.asked_to_end().first() {
        return Ended::Interrupted(*signal);
    }
    match start(command) {
        Ok((_, group)) => attend(group, limit, signals),
        Err(error) => Ended::NotStarted(error),
    }
}

/// Like [`run`], but passes the program's stdout to `listener`, and returns the first `kept_bytes` of it.
pub(crate) fn run_listening(
    command: &mut Command,
    limit: Limit,
    signals: &HeldSignals,
    kept_bytes: usize,
    listener: Listener,
) -> (Ended, Vec<u8>) {
    if let Some(signal) = signals.asked_to_end().first() {
        return (Ended::Interrupted(*signal), Vec::new());
    }
    match start(command.stdout(Stdio::piped())) {
        Ok((mut child, group)) => {
            let capture = child.stdout.take().map(|said| Capture::start(said, kept_bytes, listener));
            let ended = attend(group, limit, signals);
            (ended, capture.map(Capture::finish).unwrap_or_default())
        }
        Err(error) => (Ended::NotStarted(error), Vec::new()),
    }
}

/// Gives a program the terminal while it runs.
fn attend(group: Group, limit: Limit, signals: &HeldSignals) -> Ended {
    let terminal = Terminal::controlling();
    if let Some(terminal) = &terminal {
        terminal.lend(group.0);
        // The program may have been stopped because it used the terminal too early.
        group.send(Signal::CONT);
    }
    let ended = wait(group, limit, signals, terminal.as_ref());
    if let Some(terminal) = &terminal {
        terminal.take_back(group.0);
    }
    ended
}

fn start(command: &mut Command) -> io::Result<(Child, Group)> {
    let _limits = process::UsualLimits::for_children();
    let child = command.process_group(0).spawn()?;
    let leader = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
    Ok((child, Group(leader)))
}

fn wait(group: Group, limit: Limit, signals: &HeldSignals, terminal: Option<&Terminal>) -> Ended {
    loop {
        match news_of(group.0) {
            ChildEvent::Ended(ended) => return ended,
            ChildEvent::Stopped => {
                if let Some(terminal) = terminal {
                    terminal.stop_along(group.0);
                    group.send(Signal::CONT);
                }
            }
            ChildEvent::None => {
                if limit.is_over() {
                    return end(group, signals);
                }
                signals.wait(wait_milliseconds(limit));
                signals.asked_to_end().into_iter().for_each(|signal| pass_on(group, signal));
            }
        }
    }
}

fn wait_milliseconds(limit: Limit) -> i64 {
    let left = limit.0.map_or(LONGEST_WAIT, |limit| limit.saturating_duration_since(Instant::now()));
    left.min(LONGEST_WAIT).as_millis() as i64 + 1
}

fn pass_on(group: Group, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        group.send(signal);
    }
}

/// Ends a group that has reached its deadline.
fn end(group: Group, signals: &HeldSignals) -> Ended {
    let deadline = Instant::now() + GRACE;
    group.ask_to_end();
    while Instant::now() < deadline && !matches!(news_of(group.0), ChildEvent::Ended(_)) {
        pause(signals);
    }
    group.finish(deadline);
    // Ending the leader may have taken the kill signal.
    while let ChildEvent::None | ChildEvent::Stopped = news_of(group.0) {
        pause(signals);
    }
    Ended::TimedOut
}

/// Waits a moment. Signals that ask to end are discarded: the group is being ended already.
fn pause(signals: &HeldSignals) {
    signals.wait(10);
    signals.asked_to_end();
}

enum ChildEvent {
    None,
    Stopped,
    Ended(Ended),
}

fn news_of(leader: Pid) -> ChildEvent {
    match waitpid(Some(leader), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        Ok(None) | Err(Errno::INTR) => ChildEvent::None,
        Ok(Some((_, status))) => news_in(status),
        // The parent of this process had set SIGCHLD to be ignored.
        Err(error) => ChildEvent::Ended(Ended::Lost(error.into())),
    }
}

fn news_in(status: WaitStatus) -> ChildEvent {
    if status.stopped() {
        return ChildEvent::Stopped;
    }
    Ended::of(status).map_or(ChildEvent::None, ChildEvent::Ended)
}
