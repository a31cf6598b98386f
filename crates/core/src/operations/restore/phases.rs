//! The phases of a restore: planned, staged, protected by a safety checkpoint, journaled, applied.
//!
//! Each phase is a value that only the phase before it can make. No caller can write a file of the workspace without the
//! journal, and none can write the journal without the safety checkpoint.

use jiff::Timestamp;

use super::{
    Intent, RestoreOutcome, RestorePlan,
    also::sources_of,
    git,
    retry_policy::Attempt,
    safety::{Present, Safety},
    stage::Stage,
};
use crate::{
    error::{Error, Result},
    model::Conflict,
    spans::{phase, trace_changes},
    store::{ExactText, GitStep, Journal, OpenJournal, Timeline, Writer},
    workspace::Workspace,
};

/// A restore, and everything that stays the same through its phases.
#[derive(Clone, Copy)]
pub(super) struct Restore<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) writer: &'a Writer,
    pub(super) timeline: &'a Timeline,
    pub(super) intent: &'a Intent,
    pub(super) now: Timestamp,
}

impl<'a> Restore<'a> {
    /// Scans the workspace and compares it with the target. Contents that only the workspace has go into a pack.
    pub(super) fn plan(self) -> Result<Planned<'a>> {
        let Self { workspace, writer, timeline, intent, .. } = self;
        let phase = phase!("plan", changes, conflicts);
        let pack = writer.start_pack();
        let surroundings = workspace.surroundings();
        let (scan, plan) = workspace.plan_with(writer.store(), timeline, intent, &surroundings, &pack)?;
        phase.record("changes", plan.changes.len()).record("conflicts", plan.conflicts.len());
        trace_changes(&plan.changes);
        plan.refuse_if_changed(intent.request.plan.as_deref())?;
        plan.refuse_conflicts(intent.request.skip_conflicts)?;
        Ok(Planned { restore: self, plan, present: Present { scan, pack, surroundings, git: Vec::new() } })
    }
}

/// The changes are known. Nothing is written yet.
#[must_use]
pub(super) struct Planned<'a> {
    restore: Restore<'a>,
    plan: RestorePlan,
    present: Present,
}

impl<'a> Planned<'a> {
    /// Returns whether nothing has to change.
    pub(super) fn is_empty(&self) -> bool {
        self.plan.steps.is_empty() && self.plan.git.is_none()
    }

    pub(super) fn into_plan(self) -> RestorePlan {
        self.plan
    }

    /// Checks permissions and room, and makes the new files ready in the staging areas.
    pub(super) fn stage(self) -> Result<Staged<'a>> {
        let Self { restore, mut plan, mut present } = self;
        let Restore { workspace, writer, timeline, .. } = restore;
        let _phase = phase!("stage");
        if let Some(repository) = &present.surroundings.repository {
            repository.read_index_ahead();
        }
        plan.count_lines(writer.store(), workspace.root())?;
        let (git_files, git) = plan.git.as_ref().map(git::files_and_steps).transpose()?.unwrap_or_default();
        present.git = git_files;
        workspace.check_present(writer, &present, &plan)?;
        if !plan.contents.is_empty() {
            // A restore stages what the store has. So does the command that finishes it after a crash.
            writer.store_contents(plan.contents.values().map(Vec::as_slice))?;
        }
        workspace.check_plan(writer.store(), &mut plan)?;
        workspace.refuse_if_stopped()?;
        let stage = workspace.stage(writer, &mut plan, timeline.next_sequence())?;
        Ok(Staged { restore, plan, present, stage, git })
    }
}

/// The new files are ready, outside the paths that they will have.
#[must_use]
pub(super) struct Staged<'a> {
    restore: Restore<'a>,
    plan: RestorePlan,
    present: Present,
    stage: Stage,
    git: Vec<GitStep>,
}

impl<'a> Staged<'a> {
    /// Publishes the safety checkpoint while the staged files are synced.
    pub(super) fn publish_safety(self) -> Result<Protected<'a>> {
        let Self { restore, plan, present, stage, git } = self;
        let Restore { workspace, writer, timeline, intent, now } = restore;
        // Published before the first write: after a crash this is the only way back.
        let safety = workspace.sync_stage_during(writer, &plan, &stage, || {
            workspace.publish_safety(writer, timeline, present, &plan, intent, now)
        })?;
        Ok(Protected { restore, plan, stage, git, safety })
    }
}

/// Every byte that the restore will remove is in a published checkpoint.
#[must_use]
pub(super) struct Protected<'a> {
    restore: Restore<'a>,
    plan: RestorePlan,
    stage: Stage,
    git: Vec<GitStep>,
    safety: Safety,
}

impl<'a> Protected<'a> {
    /// Writes the journal. This is the commit point: from here on the restore will be finished, by this process or the
    /// next.
    pub(super) fn open_journal(self) -> Result<Journaled<'a>> {
        let Self { restore, plan, stage, git, safety } = self;
        let Restore { workspace, writer, timeline, intent, .. } = restore;
        let before = timeline.current().map(|entry| entry.id);
        let journal = Journal {
            version: 1,
            sequence: safety.sequence,
            target: intent.request.target,
            safety: safety.checkpoint,
            scope: plan.recorded_scope.clone(),
            named: plan.recorded_named.clone(),
            exact: plan.exact.clone(),
            reverted: intent.reverted.clone(),
            partial: intent.partial || !plan.conflicts.is_empty(),
            adopted: intent.adopted.clone(),
            also_from: sources_of(&plan.also),
            before,
            after: intent.lands_on(&plan, before),
            direction: intent.direction,
            workspace: ExactText::of_path(workspace.root()),
            areas: stage.areas.clone(),
            steps: plan.steps.clone(),
            git,
            git_logs: plan.git.as_ref().map(git::logs).unwrap_or_default(),
            taken_back: false,
        };
        match writer.open_journal(journal) {
            Ok(journal) => Ok(Journaled { restore, plan, stage, safety, journal }),
            // Nothing of it was done yet, so the restore can be given up.
            Err(error) => Err(match writer.close_journal() {
                Ok(()) => workspace.give_up_stage(writer, &stage.areas, error),
                Err(_) => Error::Unfinished { source: Box::new(error) },
            }),
        }
    }
}

/// The journal is on disk.
#[must_use]
pub(super) struct Journaled<'a> {
    restore: Restore<'a>,
    plan: RestorePlan,
    stage: Stage,
    safety: Safety,
    journal: OpenJournal,
}

impl<'a> Journaled<'a> {
    /// Changes the files of the workspace. If that fails, everything is put back.
    pub(super) fn apply(self) -> Result<Applied<'a>> {
        let Self { restore, plan, stage, mut safety, journal } = self;
        let Restore { workspace, writer, now, .. } = restore;
        let apply = || workspace.apply_journal(writer, &journal, &stage, Attempt::First, now);
        let (id, files) = (safety.checkpoint.id(), journal.journal().steps.len());
        match workspace.remember_during(writer, id, safety.seen.take(), files, apply) {
            Ok(conflicts) => Ok(Applied { restore, plan, stage, safety, journal, conflicts }),
            Err(error) => Err(workspace.take_back_after(writer, &journal, error, now)),
        }
    }
}

/// The files are changed. The journal is still open.
#[must_use]
pub(super) struct Applied<'a> {
    restore: Restore<'a>,
    plan: RestorePlan,
    stage: Stage,
    safety: Safety,
    journal: OpenJournal,
    conflicts: Vec<Conflict>,
}

impl Applied<'_> {
    /// Logs the restore, closes the journal and cleans up.
    pub(super) fn finish(self) -> Result<RestoreOutcome> {
        let Self { restore, plan, stage, safety, journal, mut conflicts } = self;
        let Restore { workspace, writer, timeline, intent, now } = restore;
        let (target, safety_id) = (intent.request.target, Some(safety.checkpoint.id()));
        conflicts.extend(plan.conflicts.iter().chain(&plan.unmet).cloned());
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        workspace.finish_journal(writer, &journal, &stage, &mut conflicts, now)?;
        workspace.emit(writer, intent.event(safety.checkpoint.id()), now)?;
        writer.tidy()?;
        let checkpoint = writer.store().summary(timeline.require(&target)?)?;
        Ok(RestoreOutcome {
            stays: plan.left_to_git,
            changes: plan.changes,
            safety: safety_id,
            conflicts,
            unsaved: safety.unsaved,
            git: plan.git.and_then(|_| workspace.git_state_after()),
            merged: plan.merged,
            moved: plan.moved,
            also: plan.also,
            ..RestoreOutcome::of_no_file(checkpoint, plan.hash)
        })
    }
}
