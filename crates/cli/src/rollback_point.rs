//! The checkpoint to return to after a risky command.

use std::collections::BTreeSet;

use backtrail::{
    CheckpointId, GitPosition, Kind, RestoreOutcome, RestoreRequest, SaveRequest, Saved, Skipped, Survey, Workspace,
    WorkspacePath, json::ConflictJson,
};
use jiff::Timestamp;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{
        dropped_warnings, moved_head_sentence, not_rolled_back_sentence, not_taken_back_sentence, restored_warnings,
        rolled_back_sentence, saved_warnings, stays_pinned_sentence, way_to_take_back,
    },
    process_pins::{HeldPin, let_go_of_abandoned},
};

/// A checkpoint to return to. It stays pinned until it is released, because the command may take checkpoints of its
/// own, and retention must not delete this one.
#[must_use = "a way back stays pinned until it is let go"]
pub(crate) struct WayBack<'w> {
    workspace: &'w Workspace,
    invocation: &'w Invocation,
    pub(crate) checkpoint: CheckpointId,
    /// Paths that the checkpoint before it held, that are still on disk, and that it could not capture.
    pub(crate) dropped: Vec<Skipped>,
    /// Set if the checkpoint is complete.
    is_complete: bool,
    /// Everything on disk before the command, captured or not.
    survey: Survey,
    /// The position of the user's repository before the command.
    git: Option<GitPosition>,
    /// Set if the checkpoint was pinned before. Then it stays pinned.
    was_pinned: bool,
    held: Option<HeldPin>,
}

/// The result of a rollback.
#[must_use = "a command whose work could not be taken back must not pass for one that left no trace"]
pub(crate) enum RolledBack {
    /// The workspace is as before, except for these remains.
    Done(Remains),
    /// The changes of the command are still there. The failure was reported.
    Failed(Failure),
}

/// The changes of a command that are still there after a rollback.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// The conflicts of the restore.
    pub(crate) conflicts: Vec<ConflictJson>,
    /// Every path that is not as before, conflicts included.
    pub(crate) not_taken_back: Vec<WorkspacePath>,
}

/// Decides whether a checkpoint is taken if the one that the workspace stands on has the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// No: the existing checkpoint is used.
    No,
    /// Yes: the timeline shows the work that follows.
    Yes,
}

/// Takes an automatic checkpoint, or returns the one that the workspace stands on if that is good enough.
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
        let progress = invocation.output.progress(workspace, "reading skipped files");
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

    /// Restores the workspace to the checkpoint, reports that, and unpins the checkpoint. If the restore fails, the
    /// checkpoint stays pinned: the user can still undo the command's work with it.
    pub(crate) fn roll_back(self) -> RolledBack {
        match self.go_back() {
            Ok(remains) if remains.conflicts.is_empty() => {
                self.let_go();
                RolledBack::Done(remains)
            }
            // The checkpoint may have the only copy of files that could not be restored.
            Ok(remains) => {
                self.stay_pinned();
                RolledBack::Done(remains)
            }
            Err(failure) => {
                let failure = failure.with_hint(way_to_take_back(self.checkpoint));
                self.invocation.output.error(&not_rolled_back_sentence(&failure));
                self.stay_pinned();
                RolledBack::Failed(failure)
            }
        }
    }

    /// Leaves the checkpoint pinned, and reports that.
    fn stay_pinned(self) {
        if !self.was_pinned {
            self.invocation.output.note(&stays_pinned_sentence(self.checkpoint));
        }
        if let Some(held) = self.held {
            held.forget();
        }
    }

    /// Restores the workspace. Returns the changes that could not be taken back.
    fn go_back(&self) -> Result<Remains, Failure> {
        // A file that seems new may be one that could not be read before, under another name: it stays.
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
            output.warn(
                "files that could not be read before are as the command left them, and no new files were removed",
            );
        }
        Ok(self.remains(&done))
    }

    /// Looks for changes that the restore did not take back, and warns about them.
    fn remains(&self, done: &RestoreOutcome) -> Remains {
        let output = &self.invocation.output;
        let found = self.workspace.not_taken_back(&self.survey, &self.checkpoint).unwrap_or_else(|error| {
            output.warn(&format!("the command may have changed files that no checkpoint holds: {error}"));
            // No path is known to be as before.
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

    /// Creates the workspace's directory if the command removed it. Errors are ignored here: the restore reports them.
    fn make_directory_again(&self) {
        let root = self.workspace.root();
        if root.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            drop(std::fs::create_dir(root));
        }
    }

    /// Unpins the checkpoint, so that retention may delete it.
    pub(crate) fn let_go(self) {
        if self.was_pinned || self.held.as_ref().is_some_and(HeldPin::is_wanted) {
            return;
        }
        if let Err(error) = self.workspace.unpin(&self.checkpoint, Timestamp::now()) {
            let (output, short) = (&self.invocation.output, self.checkpoint.short());
            output.warn(&format!("checkpoint {short} stays pinned: {error}; unpin it with: backtrail unpin {short}"));
            return;
        }
        if let Some(held) = self.held {
            held.forget();
        }
        let_go_of_abandoned(self.workspace, self.invocation);
    }
}
