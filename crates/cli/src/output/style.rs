//! Colours. No information is given by colour alone.

use std::{fmt::Display, io};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::cli::ColorWhen;

/// Adds colours to texts, or returns them unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Returns the colours for stdout.
    pub(crate) fn for_stdout(when: ColorWhen) -> Self {
        Self::choose(when, || AutoStream::choice(&io::stdout()))
    }

    /// Returns the colours for stderr.
    pub(crate) fn for_stderr(when: ColorWhen) -> Self {
        Self::choose(when, || AutoStream::choice(&io::stderr()))
    }

    fn choose(when: ColorWhen, detect: impl FnOnce() -> ColorChoice) -> Self {
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => detect() != ColorChoice::Never,
        };
        Self { on }
    }

    /// Returns a value that adds no colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
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

    pub(crate) fn warning(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    pub(crate) fn error(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn hint(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default().bold(), text)
    }
}
