//! Takes a checkpoint.

mod capture;
mod command_line;
mod describe;
mod dropped;
mod features;

use std::path::PathBuf;

use jiff::Timestamp;
use tracing::Span;

pub(crate) use capture::Capture;
pub use dropped::StillCaptured;

use crate::{
    address::validate_name,
    clock::Clock,
    error::{Error, ErrorCode, Result, While},
    events::Event,
    model::{Checkpoint, Context, Dropped, Kind, Origin, Skipped, WorkspacePath},
    operations::{
        diff::{Comparison, LineSource, Tree, compare, count_lines},
        retention::NotApplied,
    },
    spans::{Outcome, operation, phase, trace_changes, write_span},
    store::{PackWriter, Snapshot, TimelineEntry, Writer},
    threads,
    workspace::Workspace,
};

/// The caller's description of the checkpoint to take.
#[derive(Debug, Clone, Default)]
pub struct SaveRequest {
    /// The message. By default it is made of the changed paths.
    pub message: Option<String>,
    /// A name to address it by.
    pub name: Option<String>,
    /// A longer description.
    pub description: Option<String>,
    /// The reason why it is taken. `None` means `manual`.
    pub kind: Option<Kind>,
    /// The agent, prompt and step that the checkpoint belongs to.
    pub origin: Origin,
    /// The session's number and its tokens.
    pub context: Option<Context>,
    /// Free-form metadata.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// Further metadata that is not known before: this function is called once the files were read.
    pub metadata_once_read: Option<fn() -> serde_json::Map<String, serde_json::Value>>,
    /// Names and bytes to keep beside the files.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// Files that the tool call behind the checkpoint names. If calls of other sessions were running, changes to these
    /// files belong to this call.
    pub named: Vec<WorkspacePath>,
    /// Paths to capture although a rule skips them.
    pub include: Vec<WorkspacePath>,
    /// Set to take a checkpoint even if nothing changed.
    pub allow_empty: bool,
    /// Set to take no checkpoint if nothing changed, whatever else the request records.
    pub if_changed: bool,
}

/// The treatment of a request if the files equal those of the checkpoint that the workspace stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// A checkpoint is made if the request has something of its own to record.
    AsRequested,
    /// No checkpoint is made.
    NoCheckpoint,
}

/// The outcome of [`Workspace::save`].
#[derive(Debug, Clone)]
pub struct Saved {
    /// Set if a checkpoint was made. Otherwise `checkpoint` is the one that the workspace stands on.
    pub created: bool,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Skipped paths, except ignored ones.
    pub skipped: Vec<Skipped>,
    /// Paths that the previous checkpoint held, that are still on disk, and that are not captured any more although
    /// their owner did not exclude them.
    pub dropped: Vec<Skipped>,
    /// Files that a rule names by now, and that are captured because the previous checkpoint held them.
    pub still_captured: Vec<StillCaptured>,
    /// Rule and settings files that are too large to be applied: everything that they name is captured.
    pub unapplied_rules: Vec<PathBuf>,
    /// The files among `skipped` that are too large, with their sizes in bytes.
    pub oversized: Vec<(WorkspacePath, u64)>,
    /// Set if it is the first checkpoint of this workspace.
    pub is_first: bool,
    /// The largest directories of a first checkpoint, with their sizes in bytes.
    pub largest: Vec<(WorkspacePath, u64)>,
    /// The total size of the captured files in bytes.
    pub bytes: u64,
    /// Retention limits that were not applied, and why.
    pub not_applied: Vec<NotApplied>,
}

impl Saved {
    /// Records the checkpoint and the counts on the span of its operation.
    pub(crate) fn note(&self, span: &Span) {
        let changes = if self.created { self.checkpoint.files_changed.len() } else { 0 };
        let outcome = Outcome::on(span).flag("created", self.created).id("checkpoint", Some(&self.checkpoint.id));
        let outcome = outcome.word("kind", self.checkpoint.kind.as_str()).count("changes", changes);
        let outcome = outcome.count("skipped", self.skipped.len()).count("dropped", self.dropped.len());
        outcome.number("bytes", self.bytes);
    }
}

impl Workspace {
    /// Takes a checkpoint. It survives a power cut once this function has returned.
    ///
    /// The time of the checkpoint is read once no other process holds the workspace's lock.
    pub fn save(&self, request: &SaveRequest, clock: impl Clock) -> Result<Saved> {
        request.validate()?;
        if let Some(path) = request.include.iter().find(|path| path.parts().any(|part| part == ".git")) {
            return Err(Error::Usage(format!("{path} can't be captured: git's own files are never captured")));
        }
        let store = self.store_directory();
        let span = write_span!(store, "save", created, checkpoint, kind, changes, skipped, dropped, bytes);
        let save = || {
            request.validate()?;
            let save = || {
                let (writer, now) = self.writer_at(&clock)?;
                self.save_locked(&writer, request, Unchanged::AsRequested, now)
            };
            self.report_failure(save(), clock.now())
        };
        let saved = operation(&span, save)?;
        saved.note(&span);
        Ok(saved)
    }

    pub(crate) fn save_locked(
        &self,
        writer: &Writer,
        request: &SaveRequest,
        unchanged: Unchanged,
        now: Timestamp,
    ) -> Result<Saved> {
        match self.save_once(writer, request, unchanged, now) {
            // Damage in earlier checkpoints must not prevent a save.
            Err(Error::StoreDamaged { .. }) if !writer.store().is_distrusted() => {
                writer.store().distrust();
                self.save_once(writer, request, unchanged, now)
            }
            Err(error) if error.code() == ErrorCode::NoSpace => {
                if self.make_room(writer)? {
                    self.save_once(writer, request, unchanged, now)
                } else {
                    Err(error)
                }
            }
            done => done,
        }
    }

    fn save_once(&self, writer: &Writer, request: &SaveRequest, unchanged: Unchanged, now: Timestamp) -> Result<Saved> {
        let timeline = writer.timeline()?;
        let current = timeline.current();
        let standing = writer.store().current_snapshot(&timeline)?;
        self.retire_excludes(writer)?;
        if matches!(request.kind, Some(Kind::Session | Kind::Turn)) {
            // A call that is still noted was denied or failed: agents don't report the end of such calls.
            writer.end_calls(request.origin.session.as_deref(), None)?;
        }

        let pack = writer.start_pack();
        let mut capture = self.capture(writer, &timeline, &request.include, &pack)?;
        let is_much = pack.settle().or_fail("write into", writer.store().layout().packs())?;
        let snapshot = writer.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?;
        capture.refuse_damaged_cache(writer.store())?;
        let is_unchanged = standing.as_ref() == Some(&snapshot);
        if let (true, Some(entry)) = (is_unchanged, current)
            && (unchanged == Unchanged::NoCheckpoint || !request.wants_new_beside(entry.kind))
        {
            self.remember_scan(writer, &capture, entry)?;
            return self.nothing_to_save(writer, entry, capture);
        }

        let compare = || self.changes_against(writer, standing.as_ref(), &capture, &pack);
        // If much is new, comparing it with the user repository takes a while, too.
        let changes = if is_much { threads::beside(compare, || capture.git_state()).0 } else { compare() }?;
        let (record, state) = self.describe(writer.store(), request, now, &timeline, &capture, &changes)?;
        capture.refuse_damaged_cache(writer.store())?;
        self.refuse_if_stopped()?;
        let unpublished = writer.build(pack, &snapshot, &state, record)?;
        let id = writer.publish(unpublished)?;

        let skipped = capture.reported();
        let is_new = |dropped: &&Dropped| Some(dropped.held_by) == current.map(|entry| entry.id);
        let dropped = state.dropped.iter().filter(is_new);
        let dropped = dropped.map(|dropped| Skipped { path: dropped.path.clone(), reason: dropped.reason }).collect();
        let timeline = writer.timeline()?;
        let entry = timeline.get(&id).ok_or_else(|| Error::Internal("a published checkpoint is not there".into()))?;
        self.remember_scan(writer, &capture, entry)?;
        let checkpoint = writer.store().new_checkpoint(entry, state)?;
        let created = Event::CheckpointCreated {
            checkpoint: id,
            kind: checkpoint.kind.to_string(),
            message: checkpoint.message.clone(),
        };
        self.emit(writer, created, now)?;
        let not_applied = self.retain(writer, now)?;
        writer.tidy()?;
        Ok(Saved {
            created: true,
            not_applied,
            is_first: current.is_none(),
            largest: if current.is_none() { capture.largest_directories() } else { Vec::new() },
            bytes: capture.bytes(),
            oversized: capture.oversized(),
            still_captured: capture.still_captured(self.settings().scan.max_file_bytes),
            unapplied_rules: self.unapplied_rules(&capture),
            dropped,
            skipped,
            checkpoint,
        })
    }

    fn nothing_to_save(&self, writer: &Writer, entry: &TimelineEntry, capture: Capture) -> Result<Saved> {
        writer.tidy()?;
        Ok(Saved {
            created: false,
            not_applied: Vec::new(),
            checkpoint: writer.store().checkpoint(entry)?,
            is_first: false,
            largest: Vec::new(),
            bytes: capture.bytes(),
            oversized: capture.oversized(),
            dropped: Vec::new(),
            still_captured: capture.still_captured(self.settings().scan.max_file_bytes),
            unapplied_rules: self.unapplied_rules(&capture),
            skipped: capture.reported(),
        })
    }

    /// Returns the differences from the checkpoint that the workspace stands on, with line counts.
    pub(crate) fn changes_against(
        &self,
        writer: &Writer,
        standing: Option<&Snapshot>,
        capture: &Capture,
        pack: &PackWriter,
    ) -> Result<Comparison> {
        let phase = phase!("compare", changes);
        let old = standing.map_or(Tree::Empty, |snapshot| Tree::Stored(*snapshot));
        let new = Tree::Scanned(&capture.scan.root, capture.mode_defaults);
        let mut found = compare(Some(writer.store()), old, new)?;
        count_lines(&mut found.changes, &LineSource::in_pack(writer.store(), pack))?;
        phase.record("changes", found.changes.len());
        trace_changes(&found.changes);
        Ok(found)
    }
}

impl SaveRequest {
    fn validate(&self) -> Result<()> {
        if let Some(name) = &self.name {
            validate_name(name)?;
        }
        if self.allow_empty && self.if_changed {
            return Err(Error::Usage("`allow_empty` and `if_changed` are mutually exclusive".into()));
        }
        if let Some(path) = self.include.iter().find(|path| path.parts().any(|part| part == ".git")) {
            return Err(Error::Usage(format!("{path} can't be captured: git's own files never are")));
        }
        if self.kind == Some(Kind::Safety) {
            return Err(Error::Usage("only a restore takes safety checkpoints; use another kind".into()));
        }
        Ok(())
    }

    /// Returns whether this request needs a checkpoint of its own beside one of this kind, although nothing changed.
    fn wants_new_beside(&self, present: Kind) -> bool {
        let says_more = self.name.is_some()
            || self.description.is_some()
            || self.origin.step.is_some()
            || !self.metadata.is_empty()
            || !self.attachments.is_empty()
            || self.kind.unwrap_or(Kind::Manual).permanence() > present.permanence();
        self.allow_empty || says_more && !self.if_changed
    }
}
