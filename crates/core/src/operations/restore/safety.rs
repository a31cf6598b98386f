//! Publishes the safety checkpoint: the workspace right before a restore touches it.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tracing::field::display;

use super::{Intent, RestorePlan, stage::FEW};
use crate::{
    error::{Error, Result, While},
    events::Event,
    model::{Change, CheckpointId, Directory, Kind, Node, Scope, WorkspacePath},
    operations::{
        diff::{Comparison, LineSource, Tree, compare_within, count_lines},
        save::{Capture, SaveRequest},
    },
    scan::Scan,
    spans::phase,
    store::{Direction, ExactText, NewGitFile, PackWriter, SafetyCheckpoint, Snapshot, Timeline, Writer},
    threads,
    workspace::{Surroundings, Workspace},
};

/// The files that a restore found, with the contents on their way into the store.
pub(super) struct Present {
    pub(super) scan: Scan,
    pub(super) pack: PackWriter,
    pub(super) surroundings: Surroundings,
    /// Files of the user repository, if the restore moves it.
    pub(super) git: Vec<NewGitFile>,
}

/// A safety checkpoint that was published.
pub(super) struct Safety {
    pub(super) checkpoint: SafetyCheckpoint,
    /// The number of paths in it whose contents no other checkpoint holds.
    pub(super) unsaved: usize,
    /// The capture of the whole workspace, for the next scan. `None` if the restore concerns some paths only.
    pub(super) seen: Option<Capture>,
    pub(super) sequence: u64,
}

impl Workspace {
    /// Checks that the safety checkpoint will hold everything that is removed. The store may have it from before, and
    /// damaged by now.
    pub(super) fn check_present(&self, writer: &Writer, present: &Present, plan: &RestorePlan) -> Result<()> {
        let going = plan.steps.iter().filter(|step| step.takes_leaf());
        let contents = going.clone().filter_map(|step| step.old?.content()).map(|content| *content.as_bytes());
        let trees = going.flat_map(|step| trees_above(&present.scan.root, &step.path));
        for id in contents.chain(trees) {
            if !present.pack.holds(&id).or_fail("read", writer.store().layout().objects())? {
                let problem = "the stored copy of a file in the workspace is damaged".to_owned();
                return Err(Error::StoreDamaged { store: writer.store().layout().root().to_owned(), problem });
            }
        }
        Ok(())
    }

    /// Publishes a checkpoint of the present files.
    pub(super) fn publish_safety(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        present: Present,
        plan: &RestorePlan,
        intent: &Intent,
        now: Timestamp,
    ) -> Result<Safety> {
        let phase = phase!("safety", checkpoint, unsaved);
        let standing = writer.store().current_snapshot(timeline)?;
        let Present { scan, pack, surroundings, git } = present;
        let mut capture = self.capture_of(writer, timeline, scan, surroundings, &[])?;
        let scope = &plan.recorded_scope;
        let snapshot = match scope {
            Scope::Whole => writer.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?,
            Scope::Paths(_) => writer.graft(&pack, standing.as_ref(), &mut capture.scan.root, scope)?,
        };
        let mut found = changes_in(writer, standing.as_ref(), &capture, scope)?;
        count_what_goes(&mut found.changes, plan, &LineSource::in_pack(writer.store(), &pack))?;
        let mut unsaved: HashSet<&WorkspacePath> = found.changes.iter().map(|change| &change.path).collect();
        // Files that the restore being taken back brought are in the checkpoints that they came from.
        for id in intent.made_by.iter().filter(|id| timeline.get(id).is_some()) {
            let made = changes_in(writer, Some(&writer.store().snapshot(id)?), &capture, scope)?;
            let differing: HashSet<WorkspacePath> = made.changes.into_iter().map(|change| change.path).collect();
            unsaved.retain(|path| differing.contains(*path));
        }
        let unsaved = unsaved.len();
        let request = SaveRequest {
            message: Some(safety_message(writer, timeline, intent)?),
            kind: Some(Kind::Safety),
            ..SaveRequest::default()
        };
        let (mut record, mut state) = self.describe(writer.store(), &request, now, timeline, &capture, &found)?;
        state.git = git;
        record.scope = scope.clone();
        let sequence = record.sequence;
        let unpublished = writer.build(pack, &snapshot, &state, record)?;
        let checkpoint = writer.publish_safety(unpublished)?;
        self.note_time(writer, checkpoint.id(), now);
        phase.record("checkpoint", display(checkpoint.id().short())).record("unsaved", unsaved);
        let message = request.message.unwrap_or_default();
        self.emit(
            writer,
            Event::CheckpointCreated { checkpoint: checkpoint.id(), kind: "safety".into(), message },
            now,
        )?;
        let seen = (*scope == Scope::Whole).then_some(capture);
        Ok(Safety { checkpoint, sequence, unsaved, seen })
    }

    /// Writes the stat cache for the next scan while `act` writes files, concurrently if there are many files. If the
    /// cache can't be written, the next scan takes longer, and nothing else is lost.
    pub(super) fn remember_during<T>(
        &self,
        writer: &Writer,
        safety: CheckpointId,
        seen: Option<Capture>,
        files: usize,
        act: impl FnOnce() -> T,
    ) -> T {
        let Some(seen) = seen else { return act() };
        let remember = move || {
            let timeline = writer.timeline().ok()?;
            self.remember_scan(writer, &seen, timeline.get(&safety)?).ok()
        };
        if files <= FEW {
            remember();
            return act();
        }
        threads::beside(act, remember).0
    }
}

/// Returns the trees above a path that are reused from an earlier checkpoint.
fn trees_above(root: &Directory, path: &WorkspacePath) -> Vec<[u8; 20]> {
    let mut found = Vec::new();
    let mut directory = root;
    for part in path.parts() {
        if let Some(ids) = &directory.ids {
            found.push(*ids.tree.as_bytes());
            found.extend(ids.modes.map(|modes| *modes.as_bytes()));
        }
        match directory.get(part) {
            Some(Node::Directory(below)) => directory = below,
            _ => break,
        }
    }
    found
}

/// Returns the differences from a snapshot. Lines are not counted yet.
fn changes_in(writer: &Writer, standing: Option<&Snapshot>, capture: &Capture, scope: &Scope) -> Result<Comparison> {
    let old = standing.map_or(Tree::Empty, |snapshot| Tree::Stored(*snapshot));
    let new = Tree::Scanned(&capture.scan.root, capture.mode_defaults);
    let mut found = compare_within(scope, Some(writer.store()), old, new)?;
    // A scan of some paths says nothing about other paths.
    found.changes.retain(|change| scope.contains(&change.path));
    found.left_out.retain(|path| scope.contains(path));
    Ok(found)
}

/// Counts lines. The plan often reverses these changes, and has counted their lines already.
fn count_what_goes(changes: &mut Vec<Change>, plan: &RestorePlan, source: &LineSource<'_>) -> Result<()> {
    let back: HashMap<&WorkspacePath, &Change> = plan.changes.iter().map(|change| (&change.path, change)).collect();
    let (mut counted, mut rest): (Vec<Change>, Vec<Change>) = std::mem::take(changes).into_iter().partition(|change| {
        back.get(&change.path).is_some_and(|back| (back.old, back.new) == (change.new, change.old))
    });
    for change in &mut counted {
        let back = back[&change.path];
        (change.insertions, change.deletions, change.binary) = (back.deletions, back.insertions, back.binary);
    }
    count_lines(&mut rest, source)?;
    counted.append(&mut rest);
    counted.sort_by(|a, b| a.path.cmp(&b.path));
    *changes = counted;
    Ok(())
}

fn safety_message(writer: &Writer, timeline: &Timeline, intent: &Intent) -> Result<String> {
    if let Some(fork) = intent.adopted.as_ref().and_then(ExactText::to_path) {
        let what = match intent.direction {
            Direction::Forward => "before adopting",
            Direction::Undo => "before taking back the adoption of",
            Direction::Redo => "before redoing the adoption of",
        };
        return Ok(format!("{what} {}", fork.display()));
    }
    let what = match (intent.direction, intent.reverted.is_empty()) {
        (Direction::Forward, true) => "before restoring",
        (Direction::Undo, true) => "before undoing the restore to",
        (Direction::Redo, true) => "before redoing the restore to",
        (Direction::Forward, false) => "before reverting",
        (Direction::Undo, false) => "before undoing the revert of",
        (Direction::Redo, false) => "before redoing the revert of",
    };
    let target = intent.origin.unwrap_or(intent.request.target);
    // The restore that an undo takes back may be of a checkpoint that was deleted.
    let message =
        timeline.get(&target).map(|entry| writer.store().summary(entry)).transpose()?.map(|found| found.message);
    let first = message.as_deref().and_then(|message| message.lines().next()).unwrap_or_default();
    let short: String = first.chars().take(60).collect();
    // Without quotes: the front ends add them.
    Ok(if short.is_empty() {
        format!("{what} {}", target.short())
    } else {
        format!("{what} {}: {short}", target.short())
    })
}
