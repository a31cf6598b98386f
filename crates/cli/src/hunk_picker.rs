//! Asks the user about each hunk on a terminal, with the keys of `git add -p`.

use std::collections::VecDeque;

use backtrail::{Change, ChosenChanges, Hunk};

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{change_list, shown_patch},
    question::ask,
};

const HELP: &str = "y - this one\nn - not this one\na - this one and all later ones of the file\n\
                    d - neither this one nor any later one of the file\ns - split it into smaller ones\n\
                    q - no more; go on with the chosen ones\n? - this help\n";

/// The answer about one hunk or change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    All,
    Done,
    Split,
    Quit,
}

/// Asks about each change. Returns the chosen ones.
pub(crate) fn choose(changes: &[Change], doing: &str, invocation: &Invocation) -> Result<ChosenChanges, Failure> {
    let mut chosen = ChosenChanges::default();
    for change in changes {
        let goes_on = match &change.hunks {
            Some(hunks) if change.old.is_some() && change.new.is_some() => {
                choose_hunks(change, hunks, doing, &mut chosen, invocation)?
            }
            _ => choose_whole(change, doing, &mut chosen, invocation)?,
        };
        if !goes_on {
            break;
        }
    }
    Ok(chosen)
}

/// Asks about a file that is binary, added or deleted, or whose permission bits change. Returns whether to go on.
fn choose_whole(
    change: &Change,
    doing: &str,
    chosen: &mut ChosenChanges,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    invocation.output.text(&change_list(std::slice::from_ref(change), invocation.output.paint))?;
    let answer = answer(&format!("{doing} this change [y,n,a,d,q,?]? "), false, invocation)?;
    if matches!(answer, Answer::Yes | Answer::All) {
        chosen.paths.push(change.path.clone());
    }
    Ok(answer != Answer::Quit)
}

/// Asks about the hunks of a file. Returns whether to go on with the next file.
fn choose_hunks(
    change: &Change,
    hunks: &[Hunk],
    doing: &str,
    chosen: &mut ChosenChanges,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let mut left: VecDeque<Hunk> = hunks.iter().cloned().collect();
    invocation.output.text(&change_list(std::slice::from_ref(change), invocation.output.paint))?;
    while let Some(hunk) = left.pop_front() {
        invocation.output.text(&shown_patch(&patch_text(&hunk), invocation.output.paint))?;
        let keys = if hunk.parts.is_empty() { "y,n,a,d,q,?" } else { "y,n,a,d,s,q,?" };
        let answer = answer(&format!("{doing} this hunk [{keys}]? "), !hunk.parts.is_empty(), invocation)?;
        match answer {
            Answer::Yes => chosen.hunks.push(hunk.id),
            Answer::No => {}
            Answer::All => {
                chosen.hunks.push(hunk.id);
                chosen.hunks.extend(left.drain(..).map(|hunk| hunk.id));
            }
            Answer::Done => break,
            Answer::Split => hunk.parts.into_iter().rev().for_each(|part| left.push_front(part)),
            Answer::Quit => return Ok(false),
        }
    }
    Ok(true)
}

/// Asks until the answer is one of the keys. The end of input means that nothing more is chosen.
fn answer(question: &str, can_split: bool, invocation: &Invocation) -> Result<Answer, Failure> {
    loop {
        let Some(line) = ask(question, invocation)? else { return Ok(Answer::Quit) };
        match line.to_ascii_lowercase().as_str() {
            "y" => return Ok(Answer::Yes),
            "n" => return Ok(Answer::No),
            "a" => return Ok(Answer::All),
            "d" => return Ok(Answer::Done),
            "s" if can_split => return Ok(Answer::Split),
            "q" => return Ok(Answer::Quit),
            _ => invocation.output.text(HELP)?,
        }
    }
}

fn patch_text(hunk: &Hunk) -> String {
    let Hunk { old_start, old_lines, new_start, new_lines, section, lines, .. } = hunk;
    let head = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@ {section}");
    std::iter::once(head.trim_end()).chain(lines.iter().map(String::as_str)).map(|line| format!("{line}\n")).collect()
}
