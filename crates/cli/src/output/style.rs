//! The look of text: colours, and the number of columns. No information is given by colour alone.

use std::{
    fmt::Display,
    io::{self, IsTerminal},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::cli::ColorWhen;

/// Adds colours to texts, or returns them unchanged. Knows how wide a line may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
    line_width: usize,
}

impl Paint {
    /// Returns the colours for stdout.
    pub(crate) fn for_stdout(when: ColorWhen) -> Self {
        let line_width = terminal_width(io::stdout().is_terminal());
        Self { line_width, ..Self::choose(when, || AutoStream::choice(&io::stdout())) }
    }

    /// Returns the colours for stderr.
    pub(crate) fn for_stderr(when: ColorWhen) -> Self {
        let line_width = terminal_width(io::stderr().is_terminal());
        Self { line_width, ..Self::choose(when, || AutoStream::choice(&io::stderr())) }
    }

    fn choose(when: ColorWhen, detect: impl FnOnce() -> ColorChoice) -> Self {
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => detect() != ColorChoice::Never,
        };
        Self { on, line_width: usize::MAX }
    }

    /// Returns the number of columns for a line. It is limited only on a terminal, because programs read whole lines.
    pub(crate) fn line_width(self) -> usize {
        self.line_width
    }

    /// Returns a value that adds no colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false, line_width: usize::MAX }
    }

    /// Returns a value that adds no colours, for lines of this many columns.
    #[cfg(test)]
    pub(crate) fn plain_within(line_width: usize) -> Self {
        Self { on: false, line_width }
    }

    /// Returns whether colours are added.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    pub(crate) fn id(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn heading(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(crate) fn command(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    pub(crate) fn faint(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    pub(crate) fn added(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn removed(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default(), text)
    }

    pub(crate) fn changed(self, text: impl Display) -> String {
        self.with(AnsiColor::Blue.on_default(), text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    pub(crate) fn error(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn hint(self, text: &str) -> String {
        self.with(AnsiColor::Cyan.on_default().bold(), text)
    }
}

fn terminal_width(is_terminal: bool) -> usize {
    let width = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    is_terminal.then(width).flatten().unwrap_or(usize::MAX)
}
