//! Makes the workspace equal a checkpoint, as a transaction.
//!
//! The sequence: plan, stage the new files, publish a safety checkpoint of the present ones, write the journal, apply
//! it, close it. If the process is killed at any point, the next command that writes finishes the restore. The crash
//! table is in `docs/store-format.md`.

mod also;
mod apply;
mod check;
mod compare;
mod concurrent_writes;
mod exact_paths;
mod git;
mod hunks;
mod merged;
mod permissions;
mod phases;
mod plan;
mod recover;
mod retry_policy;
mod safety;
mod stage;

use jiff::Timestamp;
use tracing::Span;

pub(crate) use exact_paths::ExactPaths;
pub use hunks::{ChosenChanges, HunkChoice};
pub(crate) use merged::MergeGoal;
use phases::Restore;
pub use plan::{Only, RestorePlan};
pub use recover::{Recovered, Recovery, Way};

use crate::{
    error::{Error, ErrorCode, Result},
    events::Event,
    model::{Change, Checkpoint, CheckpointId, Conflict, ContentSink, GitState, Scope, WorkspacePath},
    operations::captured_later::CapturedLater,
    scan::Scan,
    spans::{Outcome, operation, read_span, write_span},
    store::{Direction, ExactText, FoundJournal, HashOnly, Operation, Restored, Snapshot, Store, Timeline, Writer},
    workspace::{StoreKnowledge, Surroundings, Workspace, held::HeldPaths},
};

/// The parameters of a restore.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    /// The checkpoint.
    pub target: CheckpointId,
    /// The whole tree, or just these paths.
    pub scope: Scope,
    /// Files, the agent's own state files, or both.
    pub only: Only,
    /// Set to remove paths that the target lacks even if the target is incomplete.
    pub exact: bool,
    /// Set to skip paths with a conflict, rather than to refuse the restore.
    pub skip_conflicts: bool,
    /// Set to move the user repository back, too: its HEAD, branch and index.
    pub git: bool,
    /// The hash of the expected plan. The restore is refused if the plan is another one by now.
    pub plan: Option<String>,
    /// All changes, or only some hunks.
    pub hunks: HunkChoice,
    /// Files that the target lacks, and that come back from later checkpoints together with the whole tree.
    pub also: Vec<CapturedLater>,
}

impl RestoreRequest {
    /// Returns a request for the whole tree of a checkpoint.
    pub fn whole(target: CheckpointId) -> Self {
        Self {
            target,
            scope: Scope::Whole,
            only: Only::All,
            exact: false,
            skip_conflicts: false,
            git: false,
            plan: None,
            hunks: HunkChoice::All,
            also: Vec::new(),
        }
    }
}

/// The restore or the deletion that an undo or a redo takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    /// The checkpoint that it restored, or the first one that it deleted.
    pub target: CheckpointId,
    /// The time of that operation. `None` if it is not known any more.
    pub time: Option<Timestamp>,
    /// Set if it was a revert, and `target` is the newest checkpoint that it took back.
    pub is_revert: bool,
    /// Set if it brought in the changes of a fork, and `target` is the checkpoint that the workspace stood on.
    pub is_adoption: bool,
    /// The checkpoints that it deleted. Empty for a restore.
    pub deleted: Vec<CheckpointId>,
    /// The number of checkpoints that were saved since.
    pub saves_since: usize,
}

/// The outcome of a restore.
#[derive(Debug, Clone)]
pub struct RestoreOutcome {
    /// The checkpoint that was restored.
    pub target: CheckpointId,
    /// The same checkpoint with its record. Lists of more than a hundred changed or dirty paths are omitted.
    pub checkpoint: Checkpoint,
    /// The hash of the plan.
    pub plan: String,
    /// The changes to the workspace, done or planned.
    pub changes: Vec<Change>,
    /// Set if the restore was carried out.
    pub applied: bool,
    /// The safety checkpoint that was taken before. `None` if nothing had to change.
    pub safety: Option<CheckpointId>,
    /// Conflicts: paths with something in the way, and paths that another process changed during the restore.
    pub conflicts: Vec<Conflict>,
    /// Git's own files, which stay although the target does not hold them.
    pub stays: Vec<Conflict>,
    /// The number of changed paths whose earlier contents only the safety checkpoint holds.
    pub unsaved: usize,
    /// The position of the user repository after a restore that was to move it. `None` if it was left alone.
    pub git: Option<GitState>,
    /// The operation that was taken back, if this is an undo or a redo.
    pub taken_back: Option<TakenBack>,
    /// The checkpoints that came back, if this is the undo of a deletion.
    pub undeleted: Vec<CheckpointId>,
    /// The checkpoints that were deleted, if this is the redo of a deletion.
    pub deleted: Vec<CheckpointId>,
    /// The changed paths whose lines were merged.
    pub merged: Vec<WorkspacePath>,
    /// Files that were changed at the paths to which they were moved.
    pub moved: Vec<Moved>,
    /// The checkpoint that the workspace stands on afterwards.
    pub stands_on: Option<CheckpointId>,
    /// The changed paths that came from later checkpoints than the target.
    pub also: Vec<CapturedLater>,
}

/// A file that was moved since the change that is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its path in the change.
    pub from: WorkspacePath,
    /// Its path on disk.
    pub to: WorkspacePath,
}

impl RestoreOutcome {
    /// Returns the outcome of an operation that had no file to change. `plan` is the hash of its plan.
    pub(crate) fn of_no_file(checkpoint: Checkpoint, plan: String) -> Self {
        Self {
            target: checkpoint.id,
            checkpoint,
            plan,
            changes: Vec::new(),
            applied: true,
            safety: None,
            conflicts: Vec::new(),
            stays: Vec::new(),
            unsaved: 0,
            git: None,
            taken_back: None,
            undeleted: Vec::new(),
            deleted: Vec::new(),
            merged: Vec::new(),
            moved: Vec::new(),
            stands_on: None,
            also: Vec::new(),
        }
    }

    /// Records the ids and the counts on the span of its operation.
    pub(crate) fn note(&self, span: &Span) {
        Outcome::on(span).id("target", Some(&self.target)).id("safety", self.safety.as_ref());
        Outcome::on(span).count("changes", self.changes.len()).count("conflicts", self.conflicts.len());
        Outcome::on(span).count("unsaved", self.unsaved);
    }
}

/// A restore request, with its direction and its destination.
pub(crate) struct Intent {
    pub(crate) request: RestoreRequest,
    /// The part of the scope that the operation being taken back was asked for. The rest are directories that it
    /// created.
    pub(crate) named: Option<Scope>,
    /// The exact paths that the operation being taken back changed, if that is less than its scope.
    pub(crate) exact: Option<ExactPaths>,
    pub(crate) direction: Direction,
    pub(crate) landing: Landing,
    /// The checkpoints from which the operation being taken back brought files: paths that it created may be removed
    /// again.
    pub(crate) made_by: Vec<CheckpointId>,
    /// The checkpoint that the restore behind an undo or a redo had restored.
    pub(crate) origin: Option<CheckpointId>,
    /// The changes to merge into the files on disk, rather than to make them equal to the target.
    pub(crate) merge: Option<MergeGoal>,
    /// The checkpoints whose changes are taken back, if this is a revert, or an undo or redo of one.
    pub(crate) reverted: Vec<CheckpointId>,
    /// Set if only a part of their changes is taken back.
    pub(crate) partial: bool,
    /// The fork whose changes are merged, if this is an adoption, or an undo or redo of one.
    pub(crate) adopted: Option<ExactText>,
}

/// The checkpoint that the workspace stands on after a restore.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Landing {
    /// The same one as before.
    Stays,
    /// This checkpoint. `None` if the workspace stood on none before.
    On(Option<CheckpointId>),
}

impl Intent {
    fn restore(request: &RestoreRequest) -> Self {
        let is_of_files = request.only != Only::State && !matches!(request.hunks, HunkChoice::Only(_));
        let moves = request.scope == Scope::Whole && is_of_files;
        let landing = if moves { Landing::On(Some(request.target)) } else { Landing::Stays };
        Self { landing, ..Self::in_place(request.clone()) }
    }

    /// Returns an intent after which the workspace stands on the same checkpoint as before.
    pub(crate) fn in_place(request: RestoreRequest) -> Self {
        Self {
            request,
            named: None,
            exact: None,
            direction: Direction::Forward,
            landing: Landing::Stays,
            made_by: Vec::new(),
            origin: None,
            merge: None,
            reverted: Vec::new(),
            partial: false,
            adopted: None,
        }
    }

    /// Returns the event for the operation.
    fn event(&self, safety: CheckpointId) -> Event {
        if self.direction == Direction::Forward && !self.reverted.is_empty() {
            return Event::Reverted { checkpoints: self.reverted.clone(), safety };
        }
        if let (Direction::Forward, Some(fork)) = (self.direction, &self.adopted) {
            let fork = fork.to_bytes().unwrap_or_default();
            return Event::Adopted { fork: String::from_utf8_lossy(&fork).into_owned(), safety };
        }
        Event::CheckpointRestored { checkpoint: self.request.target, safety: Some(safety) }
    }

    /// Returns the checkpoint that the workspace stands on afterwards, if it stood on `before`. Restoring a checkpoint
    /// of some paths does not change it.
    fn lands_on(&self, plan: &RestorePlan, before: Option<CheckpointId>) -> Option<CheckpointId> {
        let moves = self.direction != Direction::Forward || plan.recorded_scope == Scope::Whole;
        match self.landing {
            Landing::On(after) if moves => after,
            _ => before,
        }
    }
}

impl Workspace {
    /// Returns what a restore would do. If the request names a plan, returns an error if the plan is another one by
    /// now. Only reads.
    pub fn plan_restore(&self, request: &RestoreRequest) -> Result<RestorePlan> {
        let plan = || {
            let plan = self.plan_intent(&Intent::restore(request))?;
            plan.refuse_if_changed(request.plan.as_deref())?;
            Ok(plan)
        };
        let span = read_span!(self.store_directory(), "plan_restore", changes, conflicts);
        let plan = operation(&span, plan)?;
        plan.note(&span);
        Ok(plan)
    }

    /// Makes the workspace equal to a checkpoint, after taking a safety checkpoint.
    pub fn restore(&self, request: &RestoreRequest, now: Timestamp) -> Result<RestoreOutcome> {
        let restore = || {
            let (writer, _) = self.writer(now)?;
            self.restore_locked(&writer, &Intent::restore(request), now)
        };
        let span = write_span!(self.store_directory(), "restore", target, safety, changes, conflicts, unsaved);
        let done = operation(&span, || self.report_failure(restore(), now))?;
        done.note(&span);
        Ok(done)
    }

    /// Returns whether a request concerns any path. Returns `false` if it asks for state files alone and names no path
    /// of one.
    pub fn concerns_something(&self, request: &RestoreRequest) -> Result<bool> {
        let timeline = self.existing_store()?.timeline()?;
        Ok(plan::effective_scope(self, &timeline, request).paths().is_none_or(|paths| !paths.is_empty()))
    }

    pub(crate) fn plan_intent(&self, intent: &Intent) -> Result<RestorePlan> {
        self.plan_intent_on(&self.existing_store()?, intent)
    }

    /// Like [`Self::plan_intent`], with a store that may borrow objects.
    pub(crate) fn plan_intent_on(&self, store: &Store, intent: &Intent) -> Result<RestorePlan> {
        let timeline = store.timeline()?;
        let (_, mut plan) = self.plan_with(store, &timeline, intent, &self.surroundings(), &HashOnly)?;
        plan.count_lines(store, self.root())?;
        Ok(plan)
    }

    /// Scans the workspace and plans the changes. Contents that are read go to the sink.
    fn plan_with(
        &self,
        store: &Store,
        timeline: &Timeline,
        intent: &Intent,
        surroundings: &Surroundings,
        sink: &dyn ContentSink,
    ) -> Result<(Scan, RestorePlan)> {
        let (present, mut plan) = match &intent.merge {
            Some(goal) => self.plan_merge(store, timeline, intent, goal, surroundings, sink)?,
            None => {
                let present = self.scan_for_restore(store, timeline, intent, surroundings, sink)?;
                let plan = RestorePlan::between(self, store, timeline, &present, intent)?;
                (present, plan)
            }
        };
        plan.choose_hunks(self, store, intent)?;
        plan.stands_on = timeline.current().map(|entry| entry.id);
        Ok((present, plan))
    }

    pub(crate) fn restore_locked(&self, writer: &Writer, intent: &Intent, now: Timestamp) -> Result<RestoreOutcome> {
        let done = match self.restore_once(writer, intent, now) {
            // Removed files must be in the safety checkpoint, whatever else in the store is damaged.
            Err(Error::StoreDamaged { .. })
                if !writer.store().is_distrusted() && matches!(writer.store().journal()?, FoundJournal::Nothing) =>
            {
                writer.store().distrust();
                self.clear_stage(writer, &writer.leftover_areas()?)?;
                self.restore_once(writer, intent, now)
            }
            Err(error) if error.code() == ErrorCode::NoSpace => {
                let is_untouched = matches!(writer.store().journal()?, FoundJournal::Nothing);
                if !is_untouched || !self.make_room(writer)? {
                    return Err(error);
                }
                self.restore_once(writer, intent, now)
            }
            done => done,
        }?;
        self.retire_excludes(writer)?;
        Ok(RestoreOutcome { stands_on: writer.timeline()?.current().map(|entry| entry.id), ..done })
    }

    fn restore_once(&self, writer: &Writer, intent: &Intent, now: Timestamp) -> Result<RestoreOutcome> {
        let timeline = writer.timeline()?;
        let restore = Restore { workspace: self, writer, timeline: &timeline, intent, now };
        let planned = restore.plan()?;
        if planned.is_empty() {
            return self.nothing_to_restore(writer, &timeline, planned.into_plan(), intent);
        }
        planned.stage()?.publish_safety()?.open_journal()?.apply()?.finish()
    }

    fn nothing_to_restore(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        plan: RestorePlan,
        intent: &Intent,
    ) -> Result<RestoreOutcome> {
        let before = timeline.current().map(|entry| entry.id);
        let after = intent.lands_on(&plan, before);
        if before != after || intent.direction != Direction::Forward {
            writer.log(&[Operation::Restored(Restored {
                sequence: timeline.next_sequence(),
                target: intent.request.target,
                safety: None,
                scope: plan.recorded_scope,
                named: plan.recorded_named,
                exact: None,
                reverted: intent.reverted.clone(),
                partial: intent.partial,
                adopted: intent.adopted.clone(),
                also_from: Vec::new(),
                before,
                after,
                direction: intent.direction,
            })])?;
            writer.tidy()?;
        }
        let target = writer.store().summary(timeline.require(&intent.request.target)?)?;
        Ok(RestoreOutcome {
            stays: plan.left_to_git,
            conflicts: plan.conflicts.into_iter().chain(plan.unmet).collect(),
            merged: plan.merged,
            moved: plan.moved,
            also: plan.also,
            ..RestoreOutcome::of_no_file(target, plan.hash)
        })
    }

    /// Reads the paths that the restore concerns. These include ignored paths that the target holds.
    fn scan_for_restore(
        &self,
        store: &Store,
        timeline: &Timeline,
        intent: &Intent,
        surroundings: &Surroundings,
        sink: &dyn ContentSink,
    ) -> Result<Scan> {
        let target = timeline.require(&intent.request.target)?;
        let mut held = vec![store.snapshot(&target.id)?];
        let also = intent.request.also.iter().map(|also| &also.checkpoint);
        for made in intent.made_by.iter().chain(also).filter(|id| timeline.get(id).is_some()) {
            held.push(store.snapshot(made)?);
        }
        let scope = plan::effective_scope(self, timeline, &intent.request);
        self.scan_holding(store, timeline, &held, scope, surroundings, sink)
    }

    /// Reads the paths of a scope, together with ignored paths that these snapshots hold.
    fn scan_holding(
        &self,
        store: &Store,
        timeline: &Timeline,
        held: &[Snapshot],
        scope: Scope,
        surroundings: &Surroundings,
        sink: &dyn ContentSink,
    ) -> Result<Scan> {
        let mut known = StoreKnowledge::of_current(store, timeline)?;
        for snapshot in held {
            known.holders = known.holders.and(HeldPaths::of(store, *snapshot));
        }
        let named = self.named_paths(timeline);
        // Reading a few files is faster than loading the stat cache of a large workspace.
        let cache = if self.names_directory(&scope) { self.stat_cache(store, timeline) } else { None };
        self.scan_into(&known.sources(surroundings, &named, &scope, cache.as_ref()), sink, None)
    }
}
