//! Taking a checkpoint.

use std::cell::OnceCell;

use jiff::Timestamp;

use crate::{
    address::validate_name,
    diff::{Comparison, LineSource, Tree, compare, count_lines},
    disk::Dir,
    error::{Error, Result, While},
    events::Event,
    files::{CacheBase, Scan, StatCache},
    model::{
        Attachment, Change, Checkpoint, Context, FeatureState, GitChanges, GitState, Kind, ModeDefaults, Node, Reason,
        Scope, Skipped, Stamp, WorkspacePath,
    },
    store::{
        NewAttachment, PackWriter, Pieces, Record, RecordedPaths, Snapshot, State, Store, Timeline, TimelineEntry,
        Writer,
    },
    user_repository::UserRepository,
    workspace::{ScanSources, Surroundings, Workspace},
};

/// More changed paths than this are kept in the state rather than in the record.
const MAX_RECORDED_PATHS: usize = 500;

/// Where more than this changed, comparing everything costs no more.
const MANY_DIFFERENCES: usize = 2_000;

/// How many checkpoints back an attachment's earlier bytes are looked for.
const ATTACHMENT_REACH: usize = 500;

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
    /// Names and bytes to keep beside the files.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// Paths to capture although a rule leaves them out.
    pub include: Vec<WorkspacePath>,
    /// Take one even where nothing changed.
    pub allow_empty: bool,
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
    /// The files among them that are too large, with their bytes.
    pub oversized: Vec<(WorkspacePath, u64)>,
    /// Is it the first of this workspace?
    pub is_first: bool,
    /// The largest directories of a first checkpoint, with their bytes.
    pub largest: Vec<(WorkspacePath, u64)>,
    /// How many bytes the captured files have together.
    pub bytes: u64,
}

impl Workspace {
    /// Takes a checkpoint. When this returns, it survives a power cut.
    pub fn save(&self, request: &SaveRequest, now: Timestamp) -> Result<Saved> {
        request.validate()?;
        let (writer, _) = self.writer(now)?;
        self.save_locked(&writer, request, Unchanged::AsRequested, now)
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
        let snapshot = writer.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?;
        let is_unchanged = standing.as_ref() == Some(&snapshot);
        if let (true, Some(entry)) = (is_unchanged, current)
            && (unchanged == Unchanged::NoCheckpoint || !request.wants_new_beside(entry.kind))
        {
            self.remember_scan(writer, &capture, entry)?;
            return self.nothing_to_save(writer, &timeline, entry, capture);
        }

        let changes = self.changes_against(writer, standing.as_ref(), &capture, &pack)?;
        let (record, state) = self.describe(request, now, &timeline, &capture, &changes)?;
        self.refuse_if_stopped()?;
        let unpublished = writer.build(pack, &snapshot, &state, record)?;
        let id = writer.publish(unpublished)?;

        let timeline = writer.timeline()?;
        let entry = timeline.get(&id).ok_or_else(|| Error::Internal("a published checkpoint is not there".into()))?;
        self.remember_scan(writer, &capture, entry)?;
        let checkpoint = writer.checkpoint(entry)?;
        let created = Event::CheckpointCreated {
            checkpoint: id,
            kind: checkpoint.kind.to_string(),
            message: checkpoint.message.clone(),
        };
        self.emit(writer, created, now)?;
        self.retain(writer, now)?;
        writer.tidy(&timeline)?;
        Ok(Saved {
            created: true,
            is_first: current.is_none(),
            largest: if current.is_none() { capture.largest_directories() } else { Vec::new() },
            bytes: capture.bytes(),
            oversized: capture.oversized(),
            skipped: capture.reported(),
            checkpoint,
        })
    }

    fn nothing_to_save(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        entry: &TimelineEntry,
        capture: Capture,
    ) -> Result<Saved> {
        writer.tidy(timeline)?;
        Ok(Saved {
            created: false,
            checkpoint: writer.checkpoint(entry)?,
            is_first: false,
            largest: Vec::new(),
            bytes: capture.bytes(),
            oversized: capture.oversized(),
            skipped: capture.reported(),
        })
    }

    /// Reads the whole workspace into a pack.
    fn capture(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        include: &[WorkspacePath],
        pack: &PackWriter,
    ) -> Result<Capture> {
        if let Some(missing) = include.iter().find(|path| !self.is_on_disk(path)) {
            return Err(Error::UnknownPath { path: missing.clone(), place: "the workspace".into() });
        }
        let surroundings = self.surroundings();
        let cache = self.stat_cache(writer, timeline);
        let mut named = self.named_paths(timeline);
        named.extend(include.iter().cloned());
        named.sort();
        named.dedup();
        let scan = self.scan_into(
            &ScanSources {
                surroundings: &surroundings,
                named: &named,
                is_held: None,
                scope: &Scope::Whole,
                cache: cache.as_ref(),
            },
            pack,
        )?;
        self.capture_of(writer, timeline, scan, surroundings, include)
    }

    /// A scan as a checkpoint will hold it.
    pub(crate) fn capture_of(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        scan: Scan,
        surroundings: Surroundings,
        include: &[WorkspacePath],
    ) -> Result<Capture> {
        // The same usual bits as before: others would give the same tree another id.
        let standing = || timeline.current().and_then(TimelineEntry::record).map(|record| record.modes);
        let mode_defaults = scan.id_defaults().or_else(standing).unwrap_or_else(|| commonest_modes(&scan));
        let included = self.included_paths(timeline, include);
        let is_anew = writer.is_distrusted();
        Ok(Capture { scan, is_anew, mode_defaults, surroundings, included, git_changes: OnceCell::new() })
    }

    /// What was asked for now, and what earlier checkpoints were asked for and is still there.
    fn included_paths(&self, timeline: &Timeline, include: &[WorkspacePath]) -> Vec<WorkspacePath> {
        let earlier = timeline.current().and_then(TimelineEntry::record);
        let earlier = earlier.iter().flat_map(|record| record.included.iter());
        let mut included: Vec<WorkspacePath> =
            earlier.filter(|path| self.is_on_disk(path)).chain(include).cloned().collect();
        included.sort();
        included.dedup();
        included
    }

    /// Paths that are captured although a rule leaves them out: the agent's own files, and what was asked for before.
    pub(crate) fn named_paths(&self, timeline: &Timeline) -> Vec<WorkspacePath> {
        let current = timeline.current().and_then(TimelineEntry::record);
        let mut named = self.settings().state.paths();
        named.extend(current.iter().flat_map(|record| record.included.iter().cloned()));
        named.sort();
        named.dedup();
        named
    }

    pub(crate) fn is_on_disk(&self, path: &WorkspacePath) -> bool {
        let look = || -> std::io::Result<bool> {
            let mut directory = Dir::open(self.root())?;
            let mut parts = path.parts().peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_none() {
                    return Ok(directory.try_stamp_at(part)?.is_some());
                }
                directory = directory.open_dir(part)?;
            }
            Ok(true)
        };
        look().unwrap_or(false)
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

    pub(crate) fn describe(
        &self,
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
        record.step = request.step;
        record.session = request.session.clone();
        record.agent = request.agent.clone();
        record.turn = request.turn;
        record.prompt = request.prompt.clone();
        record.tool = request.tool.clone();
        record.context = request.context.clone();
        record.metadata = request.metadata.clone();
        record.attachments = request
            .attachments
            .iter()
            .map(|(name, bytes)| Attachment { name: name.clone(), bytes: bytes.len() as u64 })
            .collect();
        record.insertions = changes.iter().map(|change| change.insertions).sum();
        record.deletions = changes.iter().map(|change| change.deletions).sum();
        record.git = capture.git_state();
        record.features = self.feature_state(capture)?;
        record.included = capture.included.clone();
        record.state_files = self.settings().state.paths();
        let skipped = capture.skipped(current.map(|entry| entry.id), found, self)?;
        record.complete = !skipped.iter().any(|skipped| skipped.reason.breaks_completeness());
        let mut paths: Vec<WorkspacePath> = changes.iter().map(|change| change.path.clone()).collect();
        let mut state = State {
            skipped,
            outside: capture.surroundings.outside.clone(),
            settings: self.settings().scan.clone(),
            changed: Vec::new(),
            attachments: self.new_attachments(request, timeline)?,
            git: Vec::new(),
        };
        record.changed = if paths.len() > MAX_RECORDED_PATHS {
            let in_state = paths.len() as u64;
            state.changed = std::mem::take(&mut paths);
            RecordedPaths::InState { in_state }
        } else {
            RecordedPaths::Here(paths)
        };
        Ok((record, state))
    }

    /// What was handed over, each with how an earlier checkpoint keeps its beginning.
    fn new_attachments(&self, request: &SaveRequest, timeline: &Timeline) -> Result<Vec<NewAttachment>> {
        if request.attachments.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.existing_store()?;
        let attachments = request.attachments.iter().map(|(name, bytes)| {
            let earlier = earlier_attachment(&store, timeline, name, request.session.as_deref());
            NewAttachment { name: name.clone(), bytes: bytes.clone(), earlier }
        });
        Ok(attachments.collect())
    }

    /// What the feature list says, where the settings name one and it has that shape.
    fn feature_state(&self, capture: &Capture) -> Result<Option<FeatureState>> {
        let Some(path) = &self.settings().state.features else { return Ok(None) };
        if !matches!(capture.scan.root.find(path), Some(Node::File(_))) {
            return Ok(None);
        }
        let bytes = self.read_file(path).or_fail("read", self.root().join(path.to_text().as_ref()))?;
        Ok(crate::features::parse(&bytes))
    }

    /// Reads one file of the workspace by handles.
    fn read_file(&self, path: &WorkspacePath) -> std::io::Result<Vec<u8>> {
        let mut directory = Dir::open(self.root())?;
        if let Some(parent) = path.parent() {
            for part in parent.parts() {
                directory = directory.open_dir(part)?;
            }
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut directory.open_file(path.name())?, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the stat cache; the ids in it are those of `entry`.
    pub(crate) fn remember_scan(&self, writer: &Writer, capture: &Capture, entry: &TimelineEntry) -> Result<()> {
        let base = CacheBase {
            checkpoint: entry.id,
            mode_defaults: capture.mode_defaults,
            index: capture.index(),
            git_changes: capture.known_git_changes().cloned(),
        };
        let path = writer.layout().stat_cache();
        let scan = &capture.scan;
        StatCache::write(&path, &scan.root, base, scan.started, scan.cache.as_ref()).or_fail("write", path)
    }
}

impl SaveRequest {
    fn validate(&self) -> Result<()> {
        if let Some(name) = &self.name {
            validate_name(name)?;
        }
        if self.kind == Some(Kind::Safety) {
            return Err(Error::Usage("safety checkpoints are taken by restores, not by hand".into()));
        }
        Ok(())
    }

    /// Nothing changed: does this request still want a checkpoint of its own beside one of this kind?
    fn wants_new_beside(&self, present: Kind) -> bool {
        self.allow_empty
            || self.name.is_some()
            || self.description.is_some()
            || self.step.is_some()
            || !self.metadata.is_empty()
            || !self.attachments.is_empty()
            || self.kind.unwrap_or(Kind::Manual).permanence() > present.permanence()
    }
}

/// How the newest checkpoint that has an attachment of this name keeps it, one of the same session first.
fn earlier_attachment(store: &Store, timeline: &Timeline, name: &str, session: Option<&str>) -> Pieces {
    let has_it = |entry: &&TimelineEntry| {
        entry.record().is_some_and(|record| record.attachments.iter().any(|held| held.name == name))
    };
    let holders: Vec<&TimelineEntry> = timeline.entries().iter().rev().take(ATTACHMENT_REACH).filter(has_it).collect();
    let is_of_session = |entry: &&&TimelineEntry| entry.record().is_some_and(|r| r.session.as_deref() == session);
    let Some(entry) = holders.iter().find(is_of_session).or(holders.first()) else { return Pieces::default() };
    let pieces = store.state(&entry.id).ok().and_then(|state| state.attachment_pieces(&store.reader(), name).ok());
    // One that can't be read costs no more than room: everything is written anew.
    pieces.unwrap_or_default()
}

/// The workspace as a checkpoint will hold it.
pub(crate) struct Capture {
    pub(crate) scan: Scan,
    /// Earlier checkpoints are damaged, and nothing rests on them.
    is_anew: bool,
    pub(crate) mode_defaults: ModeDefaults,
    surroundings: Surroundings,
    included: Vec<WorkspacePath>,
    git_changes: OnceCell<GitChanges>,
}

impl Capture {
    fn index(&self) -> Option<Stamp> {
        self.surroundings.repository.as_ref().and_then(UserRepository::index_stamp)
    }

    /// Where the user's repository stands.
    fn git_state(&self) -> Option<GitState> {
        let repository = self.surroundings.repository.as_ref()?;
        let changes = match self.known_git_changes() {
            Some(known) => known,
            None => self.git_changes.get_or_init(|| repository.changes(&self.scan.root, &self.scan.scope)),
        };
        repository.state(changes)
    }

    /// What differs in the user's repository, where that can be told without comparing everything.
    fn known_git_changes(&self) -> Option<&GitChanges> {
        if let Some(known) = self.git_changes.get() {
            return Some(known);
        }
        let repository = self.surroundings.repository.as_ref()?;
        let cache = self.scan.cache.as_ref().filter(|cache| cache.base().index == self.index())?;
        let known = cache.base().git_changes.as_ref().filter(|_| self.scan.scope == Scope::Whole)?;
        let since = cache.differences(&self.scan.root, MANY_DIFFERENCES)?;
        Some(self.git_changes.get_or_init(|| repository.changes_since(known, &since, &self.scan.root)))
    }

    /// What was left out, for callers.
    fn reported(&self) -> Vec<Skipped> {
        self.scan.skipped().into_iter().filter(|skipped| skipped.reason != Reason::Ignored).collect()
    }

    /// What was left out because of its size.
    fn oversized(&self) -> Vec<(WorkspacePath, u64)> {
        let skipped = self.scan.skipped().into_iter().map(|skipped| skipped.path);
        let sized = skipped.filter_map(|path| match self.scan.root.find(&path) {
            Some(Node::Skipped(Reason::TooLarge, stamp)) => Some((path, stamp.size)),
            _ => None,
        });
        sized.collect()
    }

    /// What was left out, for the checkpoint itself: also paths that the one before held, or left out, and that are
    /// still there.
    fn skipped(
        &self,
        parent: Option<crate::model::CheckpointId>,
        found: &Comparison,
        workspace: &Workspace,
    ) -> Result<Vec<Skipped>> {
        let mut skipped = self.scan.skipped();
        let mut ignored = found.left_out.clone();
        if let Some(parent) = parent {
            let store = workspace.existing_store()?;
            let read = || store.state(&parent)?.skipped(&store.reader()).map_err(|problem| store.damaged(problem));
            let earlier = match read() {
                Err(Error::StoreDamaged { .. }) if self.is_anew => Vec::new(),
                earlier => earlier?,
            };
            let is_still_left_out = |path: &WorkspacePath| matches!(self.scan.root.find(path), Some(Node::Skipped(..)));
            ignored.extend(
                earlier
                    .into_iter()
                    .filter(|skipped| skipped.reason == Reason::Ignored && is_still_left_out(&skipped.path))
                    .map(|skipped| skipped.path),
            );
        }
        skipped.extend(ignored.into_iter().map(|path| Skipped { path, reason: Reason::Ignored }));
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        skipped.dedup_by(|a, b| a.path == b.path);
        Ok(skipped)
    }

    fn bytes(&self) -> u64 {
        self.scan.root.summary().bytes
    }

    fn largest_directories(&self) -> Vec<(WorkspacePath, u64)> {
        let root = WorkspacePath::root();
        let mut sizes: Vec<(WorkspacePath, u64)> = self
            .scan
            .root
            .entries()
            .iter()
            .filter_map(|entry| match &entry.node {
                Node::Directory(directory) => Some((root.join(&entry.name), directory.summary().bytes)),
                _ => None,
            })
            .collect();
        sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sizes.truncate(3);
        sizes
    }
}

/// The permission bits that most entries have.
fn commonest_modes(scan: &Scan) -> ModeDefaults {
    use crate::model::Mode;
    let mut counts: [std::collections::HashMap<Mode, u64>; 3] = Default::default();
    scan.root.walk(&mut |_, node| {
        let (sort, mode) = match node {
            Node::File(file) => {
                let mode = Mode::from_raw(file.stamp.mode);
                (usize::from(mode.is_executable()), mode)
            }
            Node::Directory(directory) => (2, directory.mode()),
            _ => return,
        };
        *counts[sort].entry(mode).or_default() += 1;
    });
    let usual = ModeDefaults::default();
    let commonest = |sort: usize, usual: Mode| {
        let found = counts[sort].iter().max_by_key(|(mode, count)| (**count, std::cmp::Reverse(**mode)));
        found.map_or(usual, |(mode, _)| *mode)
    };
    ModeDefaults {
        file: commonest(0, usual.file),
        executable: commonest(1, usual.executable),
        directory: commonest(2, usual.directory),
    }
}

/// A message for a checkpoint that nobody described.
fn message_of(changes: &[Change]) -> String {
    const NAMED: usize = 3;
    const LONGEST: usize = 60;
    if changes.is_empty() {
        return "no changes".into();
    }
    let mut names: Vec<String> = changes
        .iter()
        .take(NAMED)
        .map(|change| {
            let path = change.display_path();
            let plain: String = path.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let count = plain.chars().count();
            // The end of a path tells more than its start.
            if count <= LONGEST {
                plain
            } else {
                format!("…{}", plain.chars().skip(count - LONGEST).collect::<String>())
            }
        })
        .collect();
    if changes.len() > NAMED {
        names.push(format!("and {} more", changes.len() - NAMED));
    }
    names.join(", ")
}
