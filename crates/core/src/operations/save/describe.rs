//! Builds a checkpoint's record, and the state that it keeps beside its files.

use jiff::Timestamp;

use super::{Capture, SaveRequest, command_line};
use crate::{
    disk::Dir,
    error::{Result, While},
    model::{Attachment, Change, Dropped, FeatureState, GitState, Kind, Node, WorkspacePath},
    operations::diff::Comparison,
    store::{NewAttachment, Pieces, Record, RecordedGit, RecordedPaths, State, Store, Timeline, TimelineEntry},
    workspace::Workspace,
};

/// The number of checkpoints in which an attachment's earlier bytes are searched.
const ATTACHMENT_REACH: usize = 500;

impl Workspace {
    pub(crate) fn describe(
        &self,
        store: &Store,
        request: &SaveRequest,
        now: Timestamp,
        timeline: &Timeline,
        capture: &Capture,
        found: &Comparison,
    ) -> Result<(Record, State)> {
        let current = timeline.current();
        let changes = &found.changes;
        let message = request.message.clone().unwrap_or_else(|| message_of(changes));
        let kind = request.kind.unwrap_or(Kind::Manual);
        let mut record = Record::new(timeline.next_sequence(), kind, now, message);
        record.parent = current.map(|entry| entry.id);
        record.name = request.name.clone();
        record.description = request.description.clone();
        record.origin = request.origin.clone();
        record.origin.command = request.origin.command.as_deref().map(command_line::recorded);
        if kind != Kind::Safety {
            record.beside = store.calls_beside(request.origin.session.as_deref(), record.time)?;
        }
        if !record.beside.is_empty() {
            record.named = request.named.clone();
        }
        record.context = request.context.clone();
        record.metadata = request.metadata.clone();
        record.metadata.extend(request.metadata_once_read.map(|words| words()).unwrap_or_default());
        record.attachments = request
            .attachments
            .iter()
            .map(|(name, bytes)| Attachment { name: name.clone(), bytes: bytes.len() as u64 })
            .collect();
        record.insertions = changes.iter().map(|change| change.insertions).sum();
        record.deletions = changes.iter().map(|change| change.deletions).sum();
        let (git, dirty) = match capture.git_state() {
            Some(GitState { commit, branch, dirty_files, .. }) => {
                let (dirty_files, in_state) = RecordedPaths::split(dirty_files);
                (Some(RecordedGit { commit, branch, dirty_files }), in_state)
            }
            None => (None, Vec::new()),
        };
        record.git = git;
        record.features = self.feature_state(capture)?;
        record.included = capture.included.clone();
        record.state_files = self.settings().state.paths();
        let skipped = capture.skipped(store, current.map(|entry| entry.id), found)?;
        let dropped = capture.dropped(store, current, found)?;
        record.unprotected = dropped.len() as u64;
        record.dropped = dropped.iter().filter(|dropped| Some(dropped.held_by) == record.parent).count() as u64;
        if request.message.is_none() && changes.is_empty() && record.dropped > 0 {
            record.message = message_of_dropped(&dropped, &record);
        }
        record.complete = !skipped.iter().any(|skipped| skipped.reason.breaks_completeness());
        let (recorded, changed) = RecordedPaths::split(changes.iter().map(|change| change.path.clone()).collect());
        record.changed = recorded;
        let state = State {
            skipped,
            outside: capture.surroundings.outside.clone(),
            settings: self.settings().scan.clone(),
            changed,
            dirty,
            dropped,
            attachments: new_attachments(store, request, timeline),
            git: Vec::new(),
        };
        Ok((record, state))
    }

    /// Returns the contents of the feature list, if the settings name one and it has a known shape.
    fn feature_state(&self, capture: &Capture) -> Result<Option<FeatureState>> {
        let Some(path) = &self.settings().state.features else { return Ok(None) };
        if !matches!(capture.scan.root.find(path), Some(Node::File(_))) {
            return Ok(None);
        }
        let bytes = self.read_file(path).or_fail("read", self.root().join(path.to_text().as_ref()))?;
        Ok(crate::operations::save::features::parse(&bytes))
    }

    /// Reads one file of the workspace through directory handles.
    fn read_file(&self, path: &WorkspacePath) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut Dir::open_parent(self.root(), path)?.open_file(path.name())?, &mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the attachments of a request, each with the pieces in which an earlier checkpoint keeps its beginning.
fn new_attachments(store: &Store, request: &SaveRequest, timeline: &Timeline) -> Vec<NewAttachment> {
    let attachments = request.attachments.iter().map(|(name, bytes)| {
        let earlier = earlier_attachment(store, timeline, name, request.origin.session.as_deref());
        NewAttachment { name: name.clone(), bytes: bytes.clone(), earlier }
    });
    attachments.collect()
}

/// Returns the pieces in which the newest checkpoint with an attachment of this name keeps it. Prefers the same
/// session.
fn earlier_attachment(store: &Store, timeline: &Timeline, name: &str, session: Option<&str>) -> Pieces {
    let has_it = |entry: &&TimelineEntry| {
        entry.record().is_some_and(|record| record.attachments.iter().any(|held| held.name == name))
    };
    let holders = || timeline.entries().iter().rev().take(ATTACHMENT_REACH).filter(has_it);
    let is_of_session = |entry: &&TimelineEntry| entry.record().is_some_and(|r| r.origin.session.as_deref() == session);
    let of_session = holders().find(is_of_session);
    let Some(entry) = of_session.or_else(|| holders().next()) else { return Pieces::default() };
    let pieces = store.state(&entry.id).ok().and_then(|state| state.attachment_pieces(&store.reader(), name).ok());
    // If the attachment can't be read, everything is written again, which only costs space.
    let pieces = pieces.unwrap_or_default();
    if of_session.is_some() { pieces.of_session() } else { pieces }
}

/// Returns the message of a checkpoint for which the caller gave none.
fn message_of(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "no changes".into();
    }
    first_names(changes.iter().map(Change::display_path))
}

/// Names the paths that a checkpoint dropped, for one that changed nothing else.
fn message_of_dropped(dropped: &[Dropped], record: &Record) -> String {
    let new = dropped.iter().filter(|dropped| Some(dropped.held_by) == record.parent);
    format!("not protected any more: {}", first_names(new.map(|dropped| dropped.path.to_text().into_owned())))
}

/// Names the first of these paths, and counts the rest.
fn first_names(paths: impl Iterator<Item = String>) -> String {
    const NAMED: usize = 3;
    const LONGEST: usize = 60;
    let short = |path: String| {
        let plain: String = path.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let count = plain.chars().count();
        // The end of a path tells more than its start.
        if count <= LONGEST { plain } else { format!("…{}", plain.chars().skip(count - LONGEST).collect::<String>()) }
    };
    let mut paths = paths.fuse();
    let mut names: Vec<String> = paths.by_ref().take(NAMED).map(short).collect();
    let more = paths.count();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}
