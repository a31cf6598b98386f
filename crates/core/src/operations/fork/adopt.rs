//! `adopt`: brings the files of a fork back into the workspace that it was made of.
//!
//! Merges the changes since the fork point into the files on disk, and leaves the writing to the phases of a restore.
//! The workspace stands on the same checkpoint afterwards, and the files of the fork stay as they are.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::list::KnownFork;
use crate::{
    disk::private,
    error::{Error, Result, While},
    model::CheckpointId,
    operations::{
        diff::{Tree, compare},
        merge::{Labels, Overlaps, Purpose, Stretch},
        restore::{Intent, MergeGoal, RestoreOutcome, RestorePlan, RestoreRequest},
        revert::OnConflict,
    },
    store::{ExactText, Timeline, Writer},
    workspace::{Workspace, locate::OptionsOf},
};

/// The parameters of an adoption.
#[derive(Debug, Clone)]
pub struct AdoptRequest {
    /// The directory of the fork.
    pub directory: PathBuf,
    /// The treatment of conflicts.
    pub on_conflict: OnConflict,
    /// The hash of the expected plan. The adoption is refused if the plan is another one by now.
    pub plan: Option<String>,
}

/// The changes in a fork since the fork point. Its store, which is locked, has all their contents.
struct ForkWork {
    writer: Writer,
    stretch: Stretch,
}

impl Workspace {
    /// Returns what an adoption would do. If the request names a plan, returns an error if the plan is another one by
    /// now. Changes no file. The contents of the fork's files go into the store of the fork.
    pub fn plan_adopt_fork(
        &self,
        request: &AdoptRequest,
        options: OptionsOf<'_>,
        now: Timestamp,
    ) -> Result<RestorePlan> {
        let fork = self.fork_at(&request.directory)?;
        let work = ForkWork::of(&fork, options, now)?;
        let store = self.existing_store()?.borrowing(work.writer.store());
        let intent = intent_of(&store.timeline()?, request, &fork, work.stretch)?;
        let plan = self.plan_intent_on(&store, &intent)?;
        plan.refuse_if_changed(request.plan.as_deref())?;
        Ok(plan)
    }

    /// Brings the changes of a fork into the workspace, after taking a safety checkpoint. `options` are those of the
    /// fork.
    pub fn adopt_fork(&self, request: &AdoptRequest, options: OptionsOf<'_>, now: Timestamp) -> Result<RestoreOutcome> {
        let adopt = || {
            let fork = self.fork_at(&request.directory)?;
            let (writer, _) = self.writer(now)?;
            let work = ForkWork::of(&fork, options, now)?;
            // The command that finishes the adoption after a crash reads the new files from this store alone.
            writer.share_objects_of(&work.writer)?;
            let intent = intent_of(&*writer.timeline()?, request, &fork, work.stretch)?;
            self.restore_locked(&writer, &intent, now)
        };
        self.report_failure(adopt(), now)
    }

    /// Returns the fork of this workspace in a directory, or an error if there is none.
    fn fork_at(&self, directory: &Path) -> Result<KnownFork> {
        let not_a_fork = || Error::NotAFork { path: directory.to_owned(), workspace: self.root().to_owned() };
        if !private::exists(directory) {
            return Err(not_a_fork());
        }
        let path = private::canonical(directory).or_fail("find", directory)?;
        let mut known = self.known_forks()?.into_iter();
        known.find(|fork| fork.exists && fork.path == path).ok_or_else(not_a_fork)
    }
}

impl ForkWork {
    /// Reads the files of the fork, and compares them with the fork point.
    fn of(fork: &KnownFork, options: OptionsOf<'_>, now: Timestamp) -> Result<Self> {
        let workspace = fork.workspace(options);
        let (writer, _) = workspace.writer(now)?;
        let timeline = writer.timeline()?;
        let base = writer.store().snapshot(&timeline.require(&fork.point)?.id)?;
        let pack = writer.start_pack();
        let mut capture = workspace.capture_fully(&writer, &timeline, &pack)?;
        let other = writer.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?;
        let changes = compare(
            Some(writer.store()),
            Tree::Stored(base),
            Tree::Scanned(&capture.scan.root, capture.mode_defaults),
        )?;
        writer.keep_objects(pack)?;
        let labels = labels(&fork.path, &fork.point);
        let stretch = Stretch { base, other, changes: changes.changes, labels, purpose: Purpose::BringIn };
        Ok(Self { writer, stretch })
    }
}

fn labels(fork: &Path, point: &CheckpointId) -> Labels {
    let name = fork.file_name().unwrap_or(fork.as_os_str()).to_string_lossy();
    Labels { now: "now".to_owned(), base: format!("fork point {}", point.short()), other: format!("fork {name}") }
}

fn intent_of(timeline: &Timeline, request: &AdoptRequest, fork: &KnownFork, stretch: Stretch) -> Result<Intent> {
    let current = timeline.current().map(|entry| entry.id);
    let target = current.ok_or_else(|| Error::UnknownCheckpoint { word: "@".into(), nearest: None })?;
    let restore = RestoreRequest {
        exact: true,
        skip_conflicts: request.on_conflict == OnConflict::Skip,
        plan: request.plan.clone(),
        ..RestoreRequest::whole(target)
    };
    let overlaps = match request.on_conflict {
        OnConflict::Markers => Overlaps::Markers,
        OnConflict::Refuse | OnConflict::Skip => Overlaps::Conflict,
    };
    let merge = Some(MergeGoal { stretches: vec![stretch], overlaps });
    Ok(Intent { merge, adopted: Some(ExactText::of_path(&fork.path)), ..Intent::in_place(restore) })
}
