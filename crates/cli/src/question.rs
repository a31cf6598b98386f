//! Asks the user at the terminal.

use std::io::{self, BufRead, IsTerminal};

use crate::{failure::Failure, invocation::Invocation};

/// Returns whether the user can see a question and answer it.
pub(crate) fn can_be_asked(invocation: &Invocation) -> bool {
    !invocation.output.is_json() && io::stdin().is_terminal() && invocation.output.is_terminal()
}

/// Asks a question and reads one line. Returns `None` at the end of input.
pub(crate) fn ask(question: &str, invocation: &Invocation) -> Result<Option<String>, Failure> {
    invocation.output.text(question)?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => Ok(None),
        Ok(_) => Ok(Some(line.trim().to_owned())),
    }
}

/// Returns whether the answer was yes.
pub(crate) fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|answer| ["y", "yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes)))
}
