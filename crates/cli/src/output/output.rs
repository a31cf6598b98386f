//! Prints for one run: the requested data to stdout, everything else to stderr, as text or as JSON.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::Stdio,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::{
    json_line, pager,
    progress::ProgressLine,
    style::Paint,
    visible::{visible, wrapped},
};
use crate::{
    cli::{ColorWhen, GlobalOptions},
    failure::Failure,
};

/// An error while printing to stdout.
#[derive(Debug)]
pub struct OutputError(io::Error);

impl OutputError {
    /// Returns whether the reader closed the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }

    /// Returns whether stdout is a file on a full disk, or one that has reached its size limit.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self.0.kind(), io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge)
    }
}

impl std::fmt::Display for OutputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "can't write to stdout: {}", self.0)
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Answers an agent that waits for its hook. Returns `false` if the agent has closed the pipe.
pub(crate) fn answer_hook(answer: &str) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Returns whether the agent still reads the answer of its hook.
pub(crate) fn is_hook_heard() -> bool {
    let stdout = io::stdout();
    let mut answer = [PollFd::new(&stdout, PollFlags::empty())];
    let polled = poll(&mut answer, Some(&Timespec::default()));
    polled.is_err() || !answer[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Prints a line to stderr in a hook. It is for users who read the agent's own log.
pub(crate) fn talk_of_hook(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Prints the completions for a shell.
pub(crate) fn offer(candidates: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(candidates)?;
    stdout.flush()
}

/// The reader of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Person,
    Program,
}

/// The amount of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    Full,
    ErrorsAlone,
}

/// The word in front of a message, and its colour.
type Label = (&'static str, fn(Paint, &str) -> String);

/// What is said below a requested text.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// The output of this run.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    reader: Reader,
    talk: Talk,
    pager: Option<OsString>,
    /// Colours on stdout.
    pub(crate) paint: Paint,
    talk_paint: Paint,
    /// Set if the program prints what it does to stderr. A progress line would mix with that.
    is_logging: bool,
}

impl Output {
    pub(crate) fn new(options: &GlobalOptions, pager: Option<&OsString>) -> Self {
        Self {
            reader: if options.json { Reader::Program } else { Reader::Person },
            talk: if options.quiet { Talk::ErrorsAlone } else { Talk::Full },
            pager: pager.cloned(),
            paint: Paint::for_stdout(options.color),
            talk_paint: Paint::for_stderr(options.color),
            is_logging: options.log.is_some(),
        }
    }

    /// Returns the output for messages about a command line that is not parsed yet.
    pub(crate) fn before_parsing(json: bool, color: ColorWhen) -> Self {
        Self {
            reader: if json { Reader::Program } else { Reader::Person },
            talk: Talk::Full,
            pager: None,
            paint: Paint::for_stdout(color),
            talk_paint: Paint::for_stderr(color),
            is_logging: false,
        }
    }

    /// Returns the pager. Returns `None` if stdout is not a terminal, or if there is no pager.
    pub(crate) fn pager(&self) -> Option<&OsString> {
        self.pager.as_ref().filter(|_| self.is_terminal())
    }

    /// Returns whether the answer is one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.reader == Reader::Program
    }

    /// Returns whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the number of columns for tables on stdout.
    pub(crate) fn width(&self) -> usize {
        const WITHOUT_TERMINAL: usize = 100;
        if !self.is_terminal() {
            return WITHOUT_TERMINAL;
        }
        terminal_size::terminal_size().map_or(WITHOUT_TERMINAL, |(width, _)| usize::from(width.0))
    }

    /// Returns the number of columns after which a line is wrapped. Lines are only wrapped on a terminal, because
    /// programs read line by line.
    pub(crate) fn line_width(&self) -> usize {
        if self.is_terminal() { self.width() } else { usize::MAX }
    }

    /// Prints an answer as JSON.
    pub(crate) fn json(&self, answer: &impl Serialize) -> Result<(), OutputError> {
        self.text(&json_line(answer)?)
    }

    /// Prints the requested data unchanged.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        Ok(self.pass_on(bytes)?)
    }

    /// Prints a part of the requested data.
    pub(crate) fn pass_on(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Returns the stdout for a child process: our stdout, or stderr if stdout must be one JSON document.
    pub(crate) fn child_stdout(&self) -> Stdio {
        if self.is_json() { Stdio::from(io::stderr()) } else { Stdio::inherit() }
    }

    /// Prints a part of a child's output to the same place as [`Output::child_stdout`].
    pub(crate) fn pass_on_from_child(&self, bytes: &[u8]) -> io::Result<()> {
        if self.is_json() { io::stderr().lock().write_all(bytes) } else { self.pass_on(bytes) }
    }

    /// Prints the requested text. The caller has escaped control characters already.
    pub(crate) fn text(&self, text: &str) -> Result<(), OutputError> {
        self.bytes(text.as_bytes())
    }

    /// Like [`Output::text`], but uses the pager on a terminal. Must be the last action of a command.
    pub(crate) fn paged(&self, text: &str) -> Result<(), OutputError> {
        if let Some(pager) = self.pager() {
            // Returns only if the pager can't be started.
            pager::become_pager(pager, text);
        }
        self.text(text)
    }

    /// Prints the requested text, and then the notes and warnings about it. On a terminal with fewer lines, uses the pager
    /// for all of it. Must be the last action of a command.
    pub(crate) fn paged_if_long(&self, text: &str, remarks: &Remarks) -> Result<(), OutputError> {
        let rows = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
        if let Some(pager) = self.pager().filter(|_| text.lines().count() >= rows) {
            let notes = remarks.notes.iter().map(visible);
            let warnings = remarks.warnings.iter().map(|warning| format!("warning: {}", visible(warning)));
            let said = notes.chain(warnings).filter(|_| self.talk == Talk::Full);
            let below: String = said.map(|line| format!("{line}\n")).collect();
            let gap = if below.is_empty() { "" } else { "\n" };
            pager::become_pager(pager, &format!("{text}{gap}{below}"));
        }
        self.text(text)?;
        remarks.notes.iter().for_each(|note| self.note(note));
        remarks.warnings.iter().for_each(|warning| self.warn(warning));
        Ok(())
    }

    /// Prints the sentence that reports the result of a command.
    pub(crate) fn done(&self, sentence: &str) -> Result<(), OutputError> {
        match self.talk {
            Talk::Full => self.text(&format!("{sentence}\n")),
            Talk::ErrorsAlone => Ok(()),
        }
    }

    /// Prints a note to stderr. `--quiet` suppresses it.
    pub(crate) fn note(&self, sentence: &str) {
        if self.talk == Talk::Full {
            self.say(None, sentence);
        }
    }

    /// Prints a message that the user needs in order to continue, even with `--quiet`.
    pub(crate) fn tell(&self, sentence: &str) {
        self.say(None, sentence);
    }

    /// Prints a warning. `--quiet` suppresses it.
    pub(crate) fn warn(&self, sentence: &str) {
        if self.talk == Talk::Full {
            self.say(Some(("warning:", Paint::warning)), sentence);
        }
    }

    /// Prints an error, even with `--quiet`.
    pub(crate) fn error(&self, sentence: &str) {
        self.say(Some(("error:", Paint::error)), sentence);
    }

    /// Reports why the run failed. For programs, also as JSON on stdout.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.error(&failure.message());
        let hint = failure.hint();
        if let Some(hint) = &hint {
            self.say(Some(("hint:", Paint::hint)), hint);
        }
        if self.is_json() {
            let answer = serde_json::json!({
                "error": { "code": failure.code().as_str(), "message": failure.message(), "hint": hint }
            });
            // If this fails, the exit code still reports the failure.
            drop(self.json(&answer));
        }
    }

    /// Prints the help or the version.
    pub(crate) fn help(&self, help: &clap::Error) -> Result<(), OutputError> {
        let text = help.render();
        if self.paint.is_on() { self.text(&text.ansi().to_string()) } else { self.text(&text.to_string()) }
    }

    /// Shows the progress of the work until the result is dropped. Returns `None` with `--quiet`, or if stderr is not a
    /// terminal.
    pub(crate) fn progress(&self, workspace: &backtrail::Workspace, doing: &'static str) -> Option<ProgressLine> {
        let watched = self.talk == Talk::Full && !self.is_logging && io::stderr().is_terminal();
        watched.then(|| ProgressLine::start(workspace.progress(), doing))
    }

    /// Prints a sentence to stderr, behind a word in colour. On a terminal, it is wrapped at spaces.
    fn say(&self, label: Option<Label>, sentence: &str) {
        let word = label.map(|(word, _)| format!("{word} ")).unwrap_or_default();
        let line = wrapped(&format!("{word}{}", visible(sentence)), self.talk_paint.line_width(), "");
        let line = match label {
            Some((word, paint)) => line.replacen(word, &paint(self.talk_paint, word), 1),
            None => line,
        };
        // If stderr is closed, messages are lost.
        drop(writeln!(io::stderr().lock(), "{line}"));
    }
}
