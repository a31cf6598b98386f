//! Taking a checkpoint.

mod capture;
mod describe;
mod dropped;

use std::path::PathBuf;

use jiff::Timestamp;

pub(crate) use capture::Capture;
pub use dropped::StillCaptured;

use crate::{
    address::validate_name,
    clock::Clock,
    diff::{Comparison, LineSource, Tree, compare, count_lines},
    error::{Error, Result, While},
    events::Event,
    model::{Checkpoint, Context, Dropped, Kind, Skipped, WorkspacePath},
    retention::NotApplied,
    store::{PackWriter, Snapshot, TimelineEntry, Writer},
    threads,
    workspace::Workspace,
};

/// What a caller says about the checkpoint that it wants.
#[derive(Debug, Clone, Default)]
pub struct SaveRequest {
    /// What it is; without one it is made of the changed paths.
    pub message: Option<String>,
    /// A name that it can be addressed by.
    pub name: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Why it is taken; `manual` where nothing is said.
    pub kind: Option<Kind>,
    /// The agent's step.
    pub step: Option<u64>,
    /// The agent's session.
    pub session: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The number of the prompt.
    pub turn: Option<u64>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The session's number and its tokens.
    pub context: Option<Context>,
    /// Free words.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// More of them that nobody knows before: asked for once the files were read.
    pub metadata_once_read: Option<fn() -> serde_json::Map<String, serde_json::Value>>,
    /// Names and bytes to keep beside the files.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// Paths to capture although a rule leaves them out.
    pub include: Vec<WorkspacePath>,
    /// Take one even where nothing changed.
    pub allow_empty: bool,
    /// Take none where nothing changed, whatever else is said about it.
    pub if_changed: bool,
}

/// What becomes of a request where the files are those of the checkpoint that the workspace stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// A checkpoint is made where the request has something of its own to record.
    AsRequested,
    /// None is made.
    NoCheckpoint,
}

/// The outcome of [`Workspace::save`].
#[derive(Debug, Clone)]
pub struct Saved {
    /// Was one made? Otherwise the checkpoint is the one that the workspace stands on.
    pub created: bool,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// What was left out, ignored paths aside.
    pub skipped: Vec<Skipped>,
    /// Paths that the checkpoint before it held, that are still on disk, and that are not captured any more although
    /// their owner did not exclude them.
    pub dropped: Vec<Skipped>,
    /// Files that a rule names by now, and that are captured because the checkpoint before it held them.
    pub still_captured: Vec<StillCaptured>,
    /// Rule and settings files that are too large to be applied: everything that they name is captured.
    pub unapplied_rules: Vec<PathBuf>,
    /// The files among them that are too large, with their bytes.
    pub oversized: Vec<(WorkspacePath, u64)>,
    /// Is it the first of this workspace?
    pub is_first: bool,
    /// The largest directories of a first checkpoint, with their bytes.
    pub largest: Vec<(WorkspacePath, u64)>,
    /// How many bytes the captured files have together.
    pub bytes: u64,
    /// Limits of retention that were not applied, and why.
    pub not_applied: Vec<NotApplied>,
}

impl Workspace {
    /// Takes a checkpoint. When this returns, it survives a power cut.
    ///
    /// Its time is the clock's once no other process has the workspace.
    pub fn save(&self, request: &SaveRequest, clock: impl Clock) -> Result<Saved> {
        request.validate()?;
        if let Some(path) = request.include.iter().find(|path| path.parts().any(|part| part == ".git")) {
            return Err(Error::Usage(format!("{path} can't be captured: git's own files never are")));
        }
        let save = || {
            let (writer, now) = self.writer_at(&clock)?;
            self.save_locked(&writer, request, Unchanged::AsRequested, now)
        };
        self.told(save(), clock.now())
    }

    pub(crate) fn save_locked(
        &self,
        writer: &Writer,
        request: &SaveRequest,
        unchanged: Unchanged,
        now: Timestamp,
    ) -> Result<Saved> {
        match self.save_once(writer, request, unchanged, now) {
            // Damage in what was saved before must not keep anybody from saving.
            Err(Error::StoreDamaged { .. }) if !writer.is_distrusted() => {
                writer.distrust();
                self.save_once(writer, request, unchanged, now)
            }
            done => done,
        }
    }

    fn save_once(&self, writer: &Writer, request: &SaveRequest, unchanged: Unchanged, now: Timestamp) -> Result<Saved> {
        let timeline = writer.timeline()?;
        let current = timeline.current();
        let standing = writer.standing(&timeline)?;

        let pack = writer.start_pack();
        let mut capture = self.capture(writer, &timeline, &request.include, &pack)?;
        let is_much = pack.settle().or_fail("write into", writer.layout().packs())?;
        let snapshot = writer.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?;
        let is_unchanged = standing.as_ref() == Some(&snapshot);
        if let (true, Some(entry)) = (is_unchanged, current)
            && (unchanged == Unchanged::NoCheckpoint || !request.wants_new_beside(entry.kind))
        {
            self.remember_scan(writer, &capture, entry)?;
            return self.nothing_to_save(writer, entry, capture);
        }

        let compare = || self.changes_against(writer, standing.as_ref(), &capture, &pack);
        // What the user's repository makes of it takes a while, too, where much is new.
        let changes = if is_much { threads::beside(compare, || capture.git_state()).0 } else { compare() }?;
        let (record, state) = self.describe(writer, request, now, &timeline, &capture, &changes)?;
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
        let checkpoint = writer.new_checkpoint(entry, state)?;
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
            checkpoint: writer.checkpoint(entry)?,
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

    /// What differs from the checkpoint that the workspace stands on, with its lines.
    fn changes_against(
        &self,
        writer: &Writer,
        standing: Option<&Snapshot>,
        capture: &Capture,
        pack: &PackWriter,
    ) -> Result<Comparison> {
        let old = standing.map_or(Tree::Empty, |snapshot| Tree::Stored(*snapshot));
        let new = Tree::Scanned(&capture.scan.root, capture.mode_defaults);
        let mut found = compare(Some(writer), old, new)?;
        count_lines(&mut found.changes, &LineSource::in_pack(writer, pack))?;
        Ok(found)
    }
}

impl SaveRequest {
    fn validate(&self) -> Result<()> {
        if let Some(name) = &self.name {
            validate_name(name)?;
        }
        if self.allow_empty && self.if_changed {
            return Err(Error::Usage("a checkpoint where nothing changed can't be both wanted and unwanted".into()));
        }
        if self.kind == Some(Kind::Safety) {
            return Err(Error::Usage("safety checkpoints are taken by restores, not by hand".into()));
        }
        Ok(())
    }

    /// Nothing changed: does this request still want a checkpoint of its own beside one of this kind?
    fn wants_new_beside(&self, present: Kind) -> bool {
        let says_more = self.name.is_some()
            || self.description.is_some()
            || self.step.is_some()
            || !self.metadata.is_empty()
            || !self.attachments.is_empty()
            || self.kind.unwrap_or(Kind::Manual).permanence() > present.permanence();
        self.allow_empty || says_more && !self.if_changed
    }
}
