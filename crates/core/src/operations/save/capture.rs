//! The workspace as a checkpoint will hold it: the files that were read, the paths that were skipped, and the state of
//! the user repository.

use std::{path::PathBuf, sync::OnceLock};

use crate::{
    disk::{Dir, FileType},
    error::{Error, Result, While},
    model::{GitChanges, GitState, ModeDefaults, Node, Reason, Scope, Skipped, Stamp, WorkspacePath},
    operations::diff::Comparison,
    scan::{CacheBase, Scan, StatCache},
    spans::phase,
    store::{PackWriter, Store, Timeline, TimelineEntry, Writer},
    user_git::UserRepository,
    workspace::{StoreKnowledge, Surroundings, Watched, Workspace},
};

/// The number of paths above which loading the stat cache pays off.
const MANY_PATHS: usize = 50;

/// The number of differences above which comparing everything costs no more.
const MANY_DIFFERENCES: usize = 2_000;

/// The workspace as a checkpoint will hold it.
pub(crate) struct Capture {
    pub(crate) scan: Scan,
    /// Set if earlier checkpoints are damaged, so that nothing relies on them.
    is_anew: bool,
    pub(crate) mode_defaults: ModeDefaults,
    pub(super) surroundings: Surroundings,
    pub(super) included: Vec<WorkspacePath>,
    git_changes: OnceLock<GitChanges>,
}

impl Capture {
    pub(super) fn index(&self) -> Option<Stamp> {
        self.surroundings.repository.as_ref().and_then(UserRepository::index_stamp)
    }

    /// Fails if entries of the scan could not be read from the stat cache. The save is then repeated without it.
    pub(super) fn refuse_damaged_cache(&self, store: &Store) -> Result<()> {
        let problem = || "a record of the stat cache does not match its checksum".to_owned();
        let store = || store.layout().root().to_owned();
        if self.scan.lacks_entries() { Err(Error::StoreDamaged { store: store(), problem: problem() }) } else { Ok(()) }
    }

    /// Returns the state of the user repository.
    pub(super) fn git_state(&self) -> Option<GitState> {
        let repository = self.surroundings.repository.as_ref()?;
        let changes = match self.known_git_changes() {
            Some(known) => known,
            None => self.git_changes.get_or_init(|| repository.changes(&self.scan.root, &self.scan.scope)),
        };
        repository.state(changes)
    }

    /// Returns the changes in the user repository, if they are known without comparing everything.
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

    /// Returns the skipped paths that callers are told about.
    pub(super) fn reported(&self) -> Vec<Skipped> {
        self.scan.told_skipped().into_iter().filter(|skipped| skipped.reason != Reason::Ignored).collect()
    }

    /// Returns the files that were skipped because of their size, with their sizes.
    pub(super) fn oversized(&self) -> Vec<(WorkspacePath, u64)> {
        let skipped = self.scan.told_skipped().into_iter().map(|skipped| skipped.path);
        let sized = skipped.filter_map(|path| match self.scan.root.find(&path) {
            Some(Node::Skipped(Reason::TooLarge, stamp)) => Some((path, stamp.size)),
            _ => None,
        });
        sized.collect()
    }

    /// Returns the skipped paths for the checkpoint itself. These include paths that the previous checkpoint held or
    /// skipped and that still exist.
    pub(super) fn skipped(
        &self,
        store: &Store,
        parent: Option<crate::model::CheckpointId>,
        found: &Comparison,
    ) -> Result<Vec<Skipped>> {
        let mut skipped = self.scan.skipped();
        let mut ignored = found.left_out.clone();
        if let Some(parent) = parent {
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

    pub(super) fn bytes(&self) -> u64 {
        self.scan.root.summary().bytes
    }

    pub(super) fn largest_directories(&self) -> Vec<(WorkspacePath, u64)> {
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

impl Workspace {
    /// Reads the whole workspace into a pack. Looks only at what changed if a watcher knows that.
    pub(crate) fn capture(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        include: &[WorkspacePath],
        pack: &PackWriter,
    ) -> Result<Capture> {
        let watched = self.ask_watcher(writer.store(), &Scope::Whole);
        self.capture_watched(writer, timeline, include, pack, watched)
    }

    /// Reads the whole workspace into a pack. Looks at everything.
    pub(crate) fn capture_fully(&self, writer: &Writer, timeline: &Timeline, pack: &PackWriter) -> Result<Capture> {
        self.capture_watched(writer, timeline, &[], pack, self.tell_watcher(writer.store()))
    }

    fn capture_watched(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        include: &[WorkspacePath],
        pack: &PackWriter,
        watched: Option<Watched>,
    ) -> Result<Capture> {
        if let Some(missing) = include.iter().find(|path| !self.is_on_disk(path)) {
            return Err(Error::UnknownPath { path: missing.clone(), place: "the workspace".into() });
        }
        let surroundings = self.surroundings();
        let cache = self.stat_cache(writer.store(), timeline);
        let mut named = self.named_paths(timeline);
        named.extend(include.iter().cloned());
        named.sort();
        named.dedup();
        let known = StoreKnowledge::of_current(writer.store(), timeline)?;
        let sources = known.sources(&surroundings, &named, &Scope::Whole, cache.as_ref());
        let scan = self.scan_watched(&sources, pack, watched)?;
        self.capture_of(writer, timeline, scan, surroundings, include)
    }

    /// Makes a capture of a scan.
    pub(crate) fn capture_of(
        &self,
        writer: &Writer,
        timeline: &Timeline,
        scan: Scan,
        surroundings: Surroundings,
        include: &[WorkspacePath],
    ) -> Result<Capture> {
        // Keeps the default permission bits of before: other defaults would give the same tree another id.
        let standing = || timeline.current().and_then(TimelineEntry::record).map(|record| record.modes);
        let mode_defaults = scan.id_defaults().or_else(standing).unwrap_or_else(|| commonest_modes(&scan));
        let included = self.included_paths(timeline, include);
        let is_anew = writer.store().is_distrusted();
        Ok(Capture { scan, is_anew, mode_defaults, surroundings, included, git_changes: OnceLock::new() })
    }

    /// Returns the paths that the caller asked to include now, and those that earlier checkpoints were asked to include
    /// and that still exist.
    fn included_paths(&self, timeline: &Timeline, include: &[WorkspacePath]) -> Vec<WorkspacePath> {
        let earlier = timeline.current().and_then(TimelineEntry::record);
        let earlier = earlier.iter().flat_map(|record| record.included.iter());
        let mut included: Vec<WorkspacePath> =
            earlier.filter(|path| self.is_on_disk(path)).chain(include).cloned().collect();
        included.sort();
        included.dedup();
        included
    }

    /// Returns paths that are captured although a rule skips them: the agent's own files, and paths that were included
    /// before.
    pub(crate) fn named_paths(&self, timeline: &Timeline) -> Vec<WorkspacePath> {
        let current = timeline.current().and_then(TimelineEntry::record);
        let mut named = self.settings().state.paths();
        named.extend(current.iter().flat_map(|record| record.included.iter().cloned()));
        named.sort();
        named.dedup();
        named
    }

    pub(crate) fn is_on_disk(&self, path: &WorkspacePath) -> bool {
        path.is_root() || self.stamp_on_disk(path).is_ok_and(|stamp| stamp.is_some())
    }

    /// Returns whether the scope names a directory that has to be scanned. Many paths count as one, too.
    pub(crate) fn names_directory(&self, scope: &Scope) -> bool {
        let is_directory = |path: &WorkspacePath| match self.stamp_on_disk(path) {
            Ok(stamp) => stamp.is_some_and(|stamp| FileType::of(&stamp) == FileType::Directory),
            Err(_) => true,
        };
        scope.paths().is_none_or(|paths| paths.len() > MANY_PATHS || paths.iter().any(is_directory))
    }

    fn stamp_on_disk(&self, path: &WorkspacePath) -> std::io::Result<Option<Stamp>> {
        Dir::open_parent(self.root(), path)?.try_stamp_at(path.name())
    }

    /// Returns the rule and settings files that were too large to be applied.
    pub(super) fn unapplied_rules(&self, capture: &Capture) -> Vec<PathBuf> {
        let inside = capture.scan.unapplied_rules.iter().map(|path| self.root().join(path.to_text().as_ref()));
        let outside = capture.surroundings.unapplied_rules.iter().chain(&self.settings().unapplied).cloned();
        inside.chain(outside).collect()
    }

    /// Writes the stat cache. The ids in it are those of `entry`.
    pub(crate) fn remember_scan(&self, writer: &Writer, capture: &Capture, entry: &TimelineEntry) -> Result<()> {
        let _phase = phase!("stat_cache");
        let base = CacheBase {
            checkpoint: entry.id,
            mode_defaults: capture.mode_defaults,
            index: capture.index(),
            git_changes: capture.known_git_changes().cloned(),
        };
        let path = writer.store().layout().stat_cache();
        let scan = &capture.scan;
        StatCache::write(&path, &scan.root, base, scan.started, scan.cache.as_ref()).or_fail("write", path)?;
        self.remember_watch(writer.store(), scan);
        Ok(())
    }
}

/// Returns the permission bits that most entries have.
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
