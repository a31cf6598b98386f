//! How a run prints: what was asked for to stdout, everything else to stderr, in words or as JSON.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::Stdio,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::{pager, progress::ProgressLine, style::Paint, visible::visible};
use crate::{
    cli::{ColorWhen, GlobalOptions},
    failure::Failure,
};

/// What could not be printed to stdout.
#[derive(Debug)]
pub struct OutputError(io::Error);

impl OutputError {
    /// Did the reader go away?
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }

    /// Does stdout lie on a disk that is full, or may it not grow?
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

/// Answers an agent that waits for its hook; false where it has gone away.
pub(crate) fn answer_hook(answer: &str) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Does anybody still read what a hook answers?
pub(crate) fn is_hook_heard() -> bool {
    let stdout = io::stdout();
    let mut answer = [PollFd::new(&stdout, PollFlags::empty())];
    let polled = poll(&mut answer, Some(&Timespec::default()));
    polled.is_err() || !answer[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Says something beside the answer to a hook, for whoever looks at an agent's own log.
pub(crate) fn talk_of_hook(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Prints what a shell is to offer.
pub(crate) fn offer(candidates: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(candidates)?;
    stdout.flush()
}

/// Whom the answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Person,
    Program,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    Full,
    ErrorsAlone,
}

/// How this run prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    reader: Reader,
    talk: Talk,
    pager: Option<OsString>,
    /// Colours on stdout.
    pub(crate) paint: Paint,
    talk_paint: Paint,
}

impl Output {
    pub(crate) fn new(options: &GlobalOptions, pager: Option<&OsString>) -> Self {
        Self {
            reader: if options.json { Reader::Program } else { Reader::Person },
            talk: if options.quiet { Talk::ErrorsAlone } else { Talk::Full },
            pager: pager.cloned(),
            paint: Paint::for_stdout(options.color),
            talk_paint: Paint::for_stderr(options.color),
        }
    }

    /// For what has to be said before the words are understood.
    pub(crate) fn before_parsing(json: bool, color: ColorWhen) -> Self {
        Self {
            reader: if json { Reader::Program } else { Reader::Person },
            talk: Talk::Full,
            pager: None,
            paint: Paint::for_stdout(color),
            talk_paint: Paint::for_stderr(color),
        }
    }

    /// The program that shows long output, where a person watches.
    pub(crate) fn pager(&self) -> Option<&OsString> {
        self.pager.as_ref().filter(|_| self.is_terminal())
    }

    /// Is the answer one JSON document?
    pub(crate) fn is_json(&self) -> bool {
        self.reader == Reader::Program
    }

    /// Is stdout watched by a person?
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// How many columns a line of stdout may have.
    pub(crate) fn width(&self) -> usize {
        const WITHOUT_TERMINAL: usize = 100;
        if !self.is_terminal() {
            return WITHOUT_TERMINAL;
        }
        terminal_size::terminal_size().map_or(WITHOUT_TERMINAL, |(width, _)| usize::from(width.0))
    }

    /// After how many columns a line may be broken: on a terminal alone, since programs read line by line.
    pub(crate) fn line_width(&self) -> usize {
        if self.is_terminal() { self.width() } else { usize::MAX }
    }

    /// Prints the answer for programs.
    pub(crate) fn json(&self, answer: &impl Serialize) -> Result<(), OutputError> {
        let mut text = serde_json::to_vec(answer).map_err(io::Error::from)?;
        text.push(b'\n');
        self.bytes(&text)
    }

    /// Prints what was asked for, as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        Ok(self.pass_on(bytes)?)
    }

    /// Prints a piece of what was asked for.
    pub(crate) fn pass_on(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Where what a child says goes: to stdout, unless that is to be one JSON document.
    pub(crate) fn child_stdout(&self) -> Stdio {
        if self.is_json() { Stdio::from(io::stderr()) } else { Stdio::inherit() }
    }

    /// Prints a piece of what a child said, where [`Output::child_stdout`] would have put it.
    pub(crate) fn pass_on_from_child(&self, bytes: &[u8]) -> io::Result<()> {
        if self.is_json() { io::stderr().lock().write_all(bytes) } else { self.pass_on(bytes) }
    }

    /// Prints what was asked for: lines that are already fit to be shown.
    pub(crate) fn text(&self, text: &str) -> Result<(), OutputError> {
        self.bytes(text.as_bytes())
    }

    /// As [`Output::text`], a screen at a time where a person watches; the last thing that a command does.
    pub(crate) fn paged(&self, text: &str) -> Result<(), OutputError> {
        if let Some(pager) = self.pager() {
            // Comes back only where there is no pager to be had.
            pager::become_pager(pager, text);
        }
        self.text(text)
    }

    /// Prints the sentence that says what a command did.
    pub(crate) fn done(&self, sentence: &str) -> Result<(), OutputError> {
        match self.talk {
            Talk::Full => self.text(&format!("{sentence}\n")),
            Talk::ErrorsAlone => Ok(()),
        }
    }

    /// Says something beside the answer.
    pub(crate) fn note(&self, sentence: &str) {
        if self.talk == Talk::Full {
            self.say(&visible(sentence));
        }
    }

    /// Says what somebody needs to know to go on, however quiet it should be.
    pub(crate) fn tell(&self, sentence: &str) {
        self.say(&visible(sentence));
    }

    /// Says that something is not as one would expect.
    pub(crate) fn warn(&self, sentence: &str) {
        if self.talk == Talk::Full {
            self.say(&format!("{} {}", self.talk_paint.warning("warning:"), visible(sentence)));
        }
    }

    /// Says that something is wrong although the answer could be given.
    pub(crate) fn error(&self, sentence: &str) {
        self.say(&format!("{} {}", self.talk_paint.error("error:"), visible(sentence)));
    }

    /// Says why the run failed; for programs on stdout, too.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.error(&failure.message());
        let hint = failure.hint();
        if let Some(hint) = &hint {
            self.say(&format!("{} {}", self.talk_paint.hint("hint:"), visible(hint)));
        }
        if self.is_json() {
            let answer = serde_json::json!({
                "error": { "code": failure.code().as_str(), "message": failure.message(), "hint": hint }
            });
            // A failure to say so leaves the exit code.
            drop(self.json(&answer));
        }
    }

    /// Prints the help or version that was asked for.
    pub(crate) fn help(&self, help: &clap::Error) -> Result<(), OutputError> {
        let text = help.render();
        if self.paint.is_on() { self.text(&text.ansi().to_string()) } else { self.text(&text.to_string()) }
    }

    /// Shows how far the work is, while it lasts and where somebody watches.
    pub(crate) fn progress(&self, workspace: &backtrail::Workspace, doing: &'static str) -> Option<ProgressLine> {
        let watched = self.talk == Talk::Full && io::stderr().is_terminal();
        watched.then(|| ProgressLine::start(workspace.progress(), doing))
    }

    fn say(&self, line: &str) {
        // Without a stderr there is nobody to tell.
        drop(writeln!(io::stderr().lock(), "{line}"));
    }
}
