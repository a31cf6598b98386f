//! Merges whole stretches of changes into the files on disk.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use super::{
    Moves, Purpose, Stretch,
    clash::Clash,
    lines::moved_ranges,
    overlay::{OnDiskEntry, Overlay, read_disk},
    path::{MergedPath, Sides, merge_modes, merge_path},
};
use crate::{
    error::{Error, Result},
    model::{Change, Conflict, ContentId, Mode, Reason, Side, WorkspacePath},
    scan::Scan,
    store::{ObjectReader, Store, StoredNode, content_id},
};

/// The treatment of overlapping lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Overlaps {
    /// They are a conflict.
    #[default]
    Conflict,
    /// They are written into the file, with markers.
    Markers,
}

/// The inputs of a merge.
pub(crate) struct Merger<'a> {
    pub(crate) root: &'a Path,
    pub(crate) store: &'a Store,
    /// A scan of at least the paths that [`Stretch::scanned`] names, and of the destinations of `moves`.
    pub(crate) present: &'a Scan,
    /// The changes, in the order in which they are merged.
    pub(crate) stretches: &'a [Stretch],
    pub(crate) moves: &'a Moves,
    pub(crate) overlaps: Overlaps,
}

/// The result of a merge.
pub(crate) struct MergeResult {
    /// The paths that change, with their new sides. Paths with a conflict stay as they are on disk.
    pub(crate) changed: BTreeMap<WorkspacePath, Option<Side>>,
    /// Merged contents, which no checkpoint holds.
    pub(crate) contents: HashMap<ContentId, Vec<u8>>,
    /// The changed paths whose lines were merged.
    pub(crate) merged: BTreeSet<WorkspacePath>,
    /// The moved files among the changed ones.
    pub(crate) moved: Moves,
    pub(crate) conflicts: Vec<Conflict>,
}

impl Merger<'_> {
    /// Merges all stretches. A path with a conflict in one of them is left out of all.
    pub(crate) fn run(&self) -> Result<MergeResult> {
        let mut conflicts: BTreeMap<WorkspacePath, Conflict> = BTreeMap::new();
        loop {
            let mut pass = Pass::of(self, &conflicts);
            for stretch in self.stretches {
                pass.stretch(stretch)?;
            }
            let Pass { overlay, merged, moved, found, .. } = pass;
            if found.is_empty() {
                let Overlay { changed, contents, .. } = overlay;
                let is_changed = |path: &WorkspacePath| changed.contains_key(path);
                let merged = merged.into_iter().filter(is_changed).collect();
                let moved = moved.into_iter().filter(|(_, to)| is_changed(to)).collect();
                return Ok(MergeResult {
                    merged,
                    moved,
                    changed,
                    contents,
                    conflicts: conflicts.into_values().collect(),
                });
            }
            conflicts.extend(found);
        }
    }
}

/// One pass over all stretches, without the paths that are known to have conflicts.
struct Pass<'a> {
    merger: &'a Merger<'a>,
    reader: ObjectReader,
    overlay: Overlay<'a>,
    left_out: &'a BTreeMap<WorkspacePath, Conflict>,
    merged: BTreeSet<WorkspacePath>,
    moved: Moves,
    found: BTreeMap<WorkspacePath, Conflict>,
}

impl<'a> Pass<'a> {
    fn of(merger: &'a Merger<'a>, left_out: &'a BTreeMap<WorkspacePath, Conflict>) -> Self {
        Self {
            reader: merger.store.reader(),
            overlay: Overlay::of(merger.root, merger.store, merger.present),
            merger,
            left_out,
            merged: BTreeSet::new(),
            moved: Moves::new(),
            found: BTreeMap::new(),
        }
    }

    fn stretch(&mut self, stretch: &Stretch) -> Result<()> {
        let is_taken = |change: &&Change| !self.left_out.contains_key(&change.path);
        let changes: Vec<&Change> = stretch.changes.iter().filter(is_taken).collect();
        let (new, old): (Vec<&Change>, Vec<&Change>) = changes.into_iter().partition(|change| change.old.is_none());
        let (directories, leaves): (Vec<&Change>, Vec<&Change>) = old.into_iter().partition(|c| c.is_directory());
        for change in leaves {
            self.leaf(change, stretch)?;
        }
        for (path, base) in stretch.surplus_directories(self.merger.store)? {
            self.surplus_directory(&path, base, stretch.purpose);
        }
        for change in directories.into_iter().filter(|change| change.new.is_some()) {
            self.directory_mode(change);
        }
        for change in new {
            self.addition(change, stretch)?;
        }
        Ok(())
    }

    /// Merges a file or symlink that the change modified or created.
    fn leaf(&mut self, change: &Change, stretch: &Stretch) -> Result<()> {
        let moved =
            self.merger.moves.get(&change.path).filter(|_| self.overlay.at(&change.path) == OnDiskEntry::Nothing);
        if moved.is_some() && change.new.is_none() {
            self.conflict(change, &change.path, Clash::Moved.text(stretch.purpose), Vec::new());
            return Ok(());
        }
        let place = moved.unwrap_or(&change.path).clone();
        let now = match self.overlay.at(&place) {
            OnDiskEntry::Skipped(reason) => {
                self.conflict(change, &place, in_the_way(reason), Vec::new());
                return Ok(());
            }
            entry => entry.side(),
        };
        let sides = Sides { base: change.old, now, other: change.new };
        let outcome = merge_path(sides, &self.overlay.reader(&place, &self.reader), &stretch.labels)?;
        if moved.is_some() && outcome != MergedPath::Stays {
            self.moved.insert(change.path.clone(), place.clone());
        }
        match outcome {
            MergedPath::Stays => {}
            MergedPath::Becomes(side) => self.overlay.set(place, side),
            MergedPath::Merged { contents, mode } => self.write(place, contents, mode)?,
            MergedPath::Overlapping { marked, mode, .. } if self.merger.overlaps == Overlaps::Markers => {
                self.write(place, marked, mode)?;
            }
            MergedPath::Overlapping { lines, .. } => {
                let lines = self.on_disk(&place, lines)?;
                self.conflict(change, &place, "the same lines were changed since", lines);
            }
            MergedPath::Conflict(clash) => self.conflict(change, &place, clash.text(stretch.purpose), Vec::new()),
        }
        Ok(())
    }

    /// Sets merged contents at a path.
    fn write(&mut self, path: WorkspacePath, contents: Vec<u8>, mode: Mode) -> Result<()> {
        let content = content_id(&contents).ok_or_else(|| Error::Internal("merged contents without an id".into()))?;
        self.overlay.contents.insert(content, contents);
        self.merged.insert(path.clone());
        self.overlay.set(path, Some(Side::File { content, mode }));
        Ok(())
    }

    /// Returns where lines of a merged file are in the file on disk.
    fn on_disk(&self, path: &WorkspacePath, lines: Vec<[u64; 2]>) -> Result<Vec<[u64; 2]>> {
        let merged = match self.overlay.changed.get(path) {
            Some(Some(Side::File { content, .. })) => self.overlay.contents.get(content),
            _ => None,
        };
        let disk = self.merger.present.root.find(path).and_then(|node| node.side()).and_then(|side| side.content());
        let (Some(merged), Some(content)) = (merged, disk) else { return Ok(lines) };
        let Some(bytes) = read_disk(self.merger.root, path, &content)? else { return Ok(lines) };
        let ranges: Vec<_> = lines.iter().map(|[first, last]| *first as u32 - 1..*last as u32).collect();
        let moved = moved_ranges(merged, &bytes, &ranges);
        let count = crate::text::line_count(&bytes).max(1);
        Ok(moved
            .into_iter()
            .map(|range| {
                let first = (u64::from(range.start) + 1).min(count);
                [first, u64::from(range.end).max(first)]
            })
            .collect())
    }

    /// Removes a directory that the change created, unless something else is in it.
    fn surplus_directory(&mut self, path: &WorkspacePath, base: Side, purpose: Purpose) {
        if self.left_out.contains_key(path) || self.overlay.has_entries(path) {
            return;
        }
        match self.overlay.at(path).side() {
            Some(now) if now == base => self.overlay.set(path.clone(), None),
            Some(now) if now.is_directory() => {
                let reason = Clash::ModeChanged.text(purpose);
                self.found.insert(path.clone(), Conflict::new(path.clone(), reason));
            }
            _ => {}
        }
    }

    fn directory_mode(&mut self, change: &Change) {
        let (Some(Side::Directory { mode: base }), Some(Side::Directory { mode: other })) = (change.old, change.new)
        else {
            return;
        };
        match self.overlay.at(&change.path).side() {
            Some(Side::Directory { mode: now }) => match merge_modes(base, now, other) {
                Some(mode) => self.overlay.set(change.path.clone(), Some(Side::Directory { mode })),
                None => {
                    self.conflict(change, &change.path, "its permission bits were changed since", Vec::new());
                }
            },
            Some(_) => self.conflict(change, &change.path, "it is of another type now", Vec::new()),
            None => {
                let reason = "its permission bits were changed, and it was deleted since";
                self.conflict(change, &change.path, reason, Vec::new());
            }
        }
    }

    /// Brings back a path that the change deleted, with the directories above it.
    fn addition(&mut self, change: &Change, stretch: &Stretch) -> Result<()> {
        let now = self.overlay.at(&change.path);
        let is_there =
            now.side() == change.new || change.is_directory() && now.side().is_some_and(|now| now.is_directory());
        if is_there {
            return Ok(());
        }
        match now {
            OnDiskEntry::Nothing => {}
            OnDiskEntry::Side(_) => {
                self.conflict(change, &change.path, Clash::Occupied.text(stretch.purpose), Vec::new());
                return Ok(());
            }
            OnDiskEntry::Skipped(reason) => {
                self.conflict(change, &change.path, in_the_way(reason), Vec::new());
                return Ok(());
            }
        }
        let mut missing = Vec::new();
        for above in change.path.ancestors().filter(|above| !above.is_root()) {
            match self.overlay.at(&above) {
                OnDiskEntry::Side(Side::Directory { .. }) => {}
                OnDiskEntry::Nothing => missing.push(above),
                OnDiskEntry::Side(_) => {
                    self.conflict(change, &above, "a directory has to be there, and something else is", Vec::new());
                    return Ok(());
                }
                OnDiskEntry::Skipped(reason) => {
                    self.conflict(change, &above, in_the_way(reason), Vec::new());
                    return Ok(());
                }
            }
        }
        for above in missing {
            if let Some(StoredNode::Directory { mode, .. }) = self.merger.store.find(stretch.other, &above)? {
                self.overlay.set(above, Some(Side::Directory { mode }));
            }
        }
        self.overlay.set(change.path.clone(), change.new);
        Ok(())
    }

    fn conflict(&mut self, change: &Change, place: &WorkspacePath, reason: &str, lines: Vec<[u64; 2]>) {
        self.found.insert(change.path.clone(), Conflict { lines, ..Conflict::new(place.clone(), reason) });
    }
}

fn in_the_way(reason: Reason) -> &'static str {
    match reason {
        Reason::Special => "a special file is there",
        Reason::TooLarge => "a file is there that is too large to be saved first",
        Reason::Unreadable => "the file that is there can't be read, so it can't be saved first",
        Reason::Changing => "the file that is there keeps changing, so it can't be saved first",
        _ => "the file that is there is not captured",
    }
}
