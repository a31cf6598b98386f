//! Asking the person at the terminal.

use std::io::{self, BufRead, IsTerminal};

use crate::{failure::Failure, invocation::Invocation};

/// Is there somebody who sees a question and can answer it?
pub(crate) fn can_be_asked(invocation: &Invocation) -> bool {
    !invocation.output.is_json() && io::stdin().is_terminal() && invocation.output.is_terminal()
}

/// One line of the user's; none at the end of input.
pub(crate) fn ask(question: &str, invocation: &Invocation) -> Result<Option<String>, Failure> {
    invocation.output.text(question)?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => Ok(None),
        Ok(_) => Ok(Some(line.trim().to_owned())),
    }
}

/// Was the answer yes?
pub(crate) fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|answer| ["y", "yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes)))
}
