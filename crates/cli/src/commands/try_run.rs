//! `try`: runs a command, and takes back its changes if it fails.

use std::{ffi::OsString, process::Command, process::ExitCode, time::Duration};

use backtrail::json::SkippedJson;
use clap::Args;

use crate::{
    child::{self, Ended, HeldSignals, Limit},
    cli::{seconds_or_duration, text},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{RollbackErrorJson, TriedJson, shell_words},
    rollback_point::{Remains, Repeat, RolledBack, WayBack},
};

/// The exit status if the command succeeded and the check failed.
const CHECK_FAILED: u8 = 1;

/// Run a command, and restore the workspace if it fails
///
/// An automatic checkpoint is taken first. If the command fails or takes too long, or if the check afterwards fails,
/// the workspace is restored to that checkpoint; `backtrail undo` brings back the changes of the command. Skipped files
/// that the command changed, such as ignored ones, are named and not restored.
///
/// The exit status is the command's own: 127 if it can't be started, 128+N if signal N ended it, 124 if it took too
/// long, 1 if only the check failed. The exit status is the same if the restore fails: then the error is printed and
/// the checkpoint is kept.
///
/// If this process itself is killed, the checkpoint still exists: its id is the first thing on stderr. The checkpoint
/// is pinned until the next try or prune.
#[derive(Debug, Args)]
pub(crate) struct TryArgs {
    /// The message of the checkpoint; without one, it names the command
    #[arg(short, long, value_parser = text(), allow_hyphen_values = true)]
    message: Option<String>,
    /// Run this shell command afterwards; if it fails, the command counts as failed
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    check: Option<OsString>,
    /// End the command, with all processes that it started, after this time: 90, 90s, 5m
    #[arg(long, value_name = "TIME", value_parser = seconds_or_duration, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Keep all changes, even if the command fails
    #[arg(long)]
    keep_on_fail: bool,
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
    /// The command with its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &TryArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let mut workspace = invocation.workspace_to_write(Protection::unless(args.force))?;
    workspace.scan_fully();
    // From here on, a signal ends the command but not this process, so that the rollback is still done.
    let signals = HeldSignals::hold()?;
    let way_back = WayBack::take(&workspace, invocation, message(args), Repeat::Yes)?;
    let (id, short) = (way_back.checkpoint.to_string(), way_back.checkpoint.short());
    let note = format!("checkpoint {short}; if this process is killed, go back with: backtrail restore {short}");
    invocation.output.note(&note);
    let dropped = way_back.dropped.iter().map(SkippedJson::from).collect();
    let tried = Tried::run(args, &signals);
    tried.tell_problem(args, invocation);
    let (rolled_back, remains, failure) = if tried.is_success() || !tried.has_run() || args.keep_on_fail {
        way_back.let_go();
        (false, Remains::default(), None)
    } else {
        match way_back.roll_back() {
            RolledBack::Done(remains) => (true, remains, None),
            RolledBack::Failed(failure) => (false, Remains::default(), Some(failure)),
        }
    };
    if invocation.output.is_json() {
        let answer = TriedJson {
            checkpoint: id,
            exit_code: tried.exit_code(),
            rolled_back,
            dropped,
            not_taken_back: remains.not_taken_back.iter().map(ToString::to_string).collect(),
            conflicts: remains.conflicts,
            rollback_error: failure.as_ref().map(RollbackErrorJson::from),
        };
        // The command's output may end without a line break.
        invocation.output.text("\n")?;
        invocation.output.json(&answer)?;
    }
    Ok(ExitCode::from(tried.exit_code()))
}

fn message(args: &TryArgs) -> String {
    let words: Vec<_> = args.words.iter().map(|word| word.to_string_lossy()).collect();
    let command = || shell_words(words.iter().map(|word| &**word));
    args.message.clone().unwrap_or_else(|| format!("before: {}", command()))
}

/// The last program that was run, and its result.
enum Tried {
    /// The command: it failed, or there is no check.
    Command(Ended),
    /// The check: the command succeeded.
    Check(Ended),
}

impl Tried {
    fn run(args: &TryArgs, signals: &HeldSignals) -> Self {
        let limit = Limit::after(args.timeout);
        let mut command = Command::new(&args.words[0]);
        command.args(&args.words[1..]);
        let ended = child::run(&mut command, limit, signals);
        match &args.check {
            Some(check) if ended.is_success() => Self::Check(child::run(&mut child::by_shell(check), limit, signals)),
            _ => Self::Command(ended),
        }
    }

    fn ended(&self) -> &Ended {
        match self {
            Self::Command(ended) | Self::Check(ended) => ended,
        }
    }

    fn is_success(&self) -> bool {
        self.ended().is_success()
    }

    /// Reports the failure, if there was one.
    fn tell_problem(&self, args: &TryArgs, invocation: &Invocation) {
        let what = match self {
            Self::Command(_) => args.words[0].to_string_lossy(),
            Self::Check(_) => "the check".into(),
        };
        let sentence = format!("{what} {}", self.ended().describe());
        match self.ended() {
            Ended::Exited(0) => {}
            Ended::NotStarted(_) => invocation.output.error(&sentence),
            _ => invocation.output.warn(&sentence),
        }
    }

    /// Returns whether the command ran at all, so that there may be changes to take back.
    fn has_run(&self) -> bool {
        match self {
            Self::Command(ended) => ended.was_run(),
            Self::Check(_) => true,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Check(ended @ (Ended::Exited(0) | Ended::TimedOut | Ended::Interrupted(_))) => ended.exit_code(),
            Self::Check(_) => CHECK_FAILED,
            Self::Command(ended) => ended.exit_code(),
        }
    }
}
