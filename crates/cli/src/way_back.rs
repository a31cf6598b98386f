//! A checkpoint to go back to while something risky is done.

use std::collections::BTreeSet;

use backtrail::{
    CheckpointId, GitPosition, Kind, RestoreOutcome, RestoreRequest, SaveRequest, Saved, Skipped, Survey, Workspace,
    WorkspacePath, json::ConflictJson,
};
use jiff::Timestamp;

use crate::{
    failure::Failure,
    held_pins::{HeldPin, let_go_of_abandoned},
    invocation::Invocation,
    output::{
        dropped_warnings, moved_head_sentence, not_rolled_back_sentence, not_taken_back_sentence, restored_warnings,
        rolled_back_sentence, saved_warnings, stays_pinned_sentence, way_to_take_back,
    },
};

/// A checkpoint to go back to. It is kept from retention until it is let go: what is done meanwhile may take checkpoints
/// of its own.
#[must_use = "a way back stays pinned until it is let go"]
pub(crate) struct WayBack<'w> {
    workspace: &'w Workspace,
    invocation: &'w Invocation,
    pub(crate) checkpoint: CheckpointId,
    /// Paths that the checkpoint before it held, that are still on disk, and that it could not capture.
    pub(crate) dropped: Vec<Skipped>,
    /// Does it hold everything that was there?
    is_complete: bool,
    /// Everything on disk before the command, captured or not.
    survey: Survey,
    /// The position of the user's repository before the command.
    git: Option<GitPosition>,
    /// Somebody else wants to keep it, too.
    was_pinned: bool,
    held: Option<HeldPin>,
}

/// What became of going back.
#[must_use = "a command whose work could not be taken back must not pass for one that left no trace"]
pub(crate) enum RolledBack {
    /// The workspace is as it was, apart from what this names.
    Done(Remains),
    /// What the command did is still there, and that was said.
    Failed(Failure),
}

/// The changes of a command that are still there after a rollback.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// What stood in the way of the restore.
    pub(crate) conflicts: Vec<ConflictJson>,
    /// Every path that is not as before, conflicts included.
    pub(crate) not_taken_back: Vec<WorkspacePath>,
}

/// Is a checkpoint made where the workspace stands on one with the same files?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It serves as well, and is used.
    No,
    /// Yes: what is done from here on is to be seen in the timeline.
    Yes,
}

/// Takes an automatic checkpoint, or finds that the one that the workspace stands on serves as well.
pub(crate) fn take_automatic(
    workspace: &Workspace,
    invocation: &Invocation,
    message: String,
    repeat: Repeat,
) -> Result<Saved, Failure> {
    let request = SaveRequest {
        message: Some(message),
        kind: Some(Kind::Automatic),
        allow_empty: repeat == Repeat::Yes,
        ..SaveRequest::default()
    };
    let progress = invocation.output.progress(workspace, "saving");
    let saved = workspace.save(&request, Timestamp::now());
    drop(progress);
    let saved = saved?;
    let warnings = if saved.checkpoint.complete { dropped_warnings(&saved) } else { saved_warnings(&saved) };
    warnings.iter().for_each(|warning| invocation.output.warn(warning));
    Ok(saved)
}

impl<'w> WayBack<'w> {
    pub(crate) fn take(
        workspace: &'w Workspace,
        invocation: &'w Invocation,
        message: String,
        repeat: Repeat,
    ) -> Result<Self, Failure> {
        let Saved { checkpoint, dropped, .. } = take_automatic(workspace, invocation, message, repeat)?;
        let progress = invocation.output.progress(workspace, "looking at skipped files");
        let survey = workspace.survey();
        drop(progress);
        let survey = survey?;
        let mut held = None;
        if !checkpoint.pinned {
            held = HeldPin::note(workspace, &checkpoint.id, invocation);
            workspace.pin(&checkpoint.id, Timestamp::now())?;
        }
        Ok(Self {
            workspace,
            invocation,
            checkpoint: checkpoint.id,
            dropped,
            survey,
            git: workspace.git_position(),
            is_complete: checkpoint.complete,
            was_pinned: checkpoint.pinned,
            held,
        })
    }

    /// Brings the workspace back to it, says so, and leaves it to retention. Where that fails, it stays pinned: it is
    /// what the work of the command can still be taken back with.
    pub(crate) fn roll_back(self) -> RolledBack {
        match self.go_back() {
            Ok(remains) => {
                self.let_go();
                RolledBack::Done(remains)
            }
            Err(failure) => {
                let failure = failure.with_hint(way_to_take_back(self.checkpoint));
                self.invocation.output.error(&not_rolled_back_sentence(&failure));
                if !self.was_pinned {
                    self.invocation.output.note(&stays_pinned_sentence(self.checkpoint));
                }
                if let Some(held) = self.held {
                    held.forget();
                }
                RolledBack::Failed(failure)
            }
        }
    }

    /// Returns what could not be brought back.
    fn go_back(&self) -> Result<Remains, Failure> {
        // What seems new may be what could not be read back then, under another name: it stays.
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(self.checkpoint) };
        let output = &self.invocation.output;
        self.make_directory_again();
        let progress = output.progress(self.workspace, "restoring");
        let done = self.workspace.restore(&request, Timestamp::now());
        drop(progress);
        let done = done?;
        output.note(&rolled_back_sentence(&done));
        restored_warnings(&done).iter().for_each(|warning| output.warn(warning));
        if !self.is_complete {
            output.warn("what could not be read before is as the command left it, and nothing new was removed");
        }
        Ok(self.remains(&done))
    }

    /// Looks for changes that the restore did not take back, and warns about them.
    fn remains(&self, done: &RestoreOutcome) -> Remains {
        let output = &self.invocation.output;
        let found = self.workspace.not_taken_back(&self.survey, &self.checkpoint).unwrap_or_else(|error| {
            output.warn(&format!("the command may have changed files that no checkpoint holds: {error}"));
            // Nothing is known to be as before.
            vec![WorkspacePath::root()]
        });
        let conflicts = done.conflicts.iter().map(|conflict| conflict.path.clone());
        let not_taken_back: BTreeSet<WorkspacePath> = found.into_iter().chain(conflicts).collect();
        let not_taken_back: Vec<WorkspacePath> = not_taken_back.into_iter().collect();
        not_taken_back_sentence(&not_taken_back).iter().for_each(|sentence| output.warn(sentence));
        let git = self.workspace.git_position();
        moved_head_sentence(self.git.as_ref(), git.as_ref(), self.checkpoint)
            .iter()
            .for_each(|sentence| output.warn(sentence));
        Remains { conflicts: done.conflicts.iter().map(ConflictJson::from).collect(), not_taken_back }
    }

    /// The command may have removed the workspace itself. Where it can't be made again the restore says so.
    fn make_directory_again(&self) {
        let root = self.workspace.root();
        if root.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            drop(std::fs::create_dir(root));
        }
    }

    /// Leaves it to retention.
    pub(crate) fn let_go(self) {
        if self.was_pinned || self.held.as_ref().is_some_and(HeldPin::is_wanted) {
            return;
        }
        if let Err(error) = self.workspace.unpin(&self.checkpoint, Timestamp::now()) {
            let (output, short) = (&self.invocation.output, self.checkpoint.short());
            output
                .warn(&format!("checkpoint {short} stays pinned: {error}; let go of it with: backtrail unpin {short}"));
            return;
        }
        if let Some(held) = self.held {
            held.forget();
        }
        let_go_of_abandoned(self.workspace, self.invocation);
    }
}
