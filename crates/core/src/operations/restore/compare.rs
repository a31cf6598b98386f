//! Compares the present files with those of the target, name by name. Finds the steps that lead from one to the other,
//! and the conflicts.

use itertools::Itertools;

use super::{ExactPaths, permissions::Permitted};
use crate::{
    disk::Dir,
    error::{Error, Result, While},
    model::{Change, CheckpointId, Conflict, Directory, Mode, Node, Reason, Scope, Side, WorkspacePath},
    scan::Scan,
    store::{ObjectReader, Snapshot, Step, Store, StoredNode},
    threads,
    workspace::skipped::SkippedByCheckpoint,
};

/// The maximum length of a name. Longer names can't be created, and a restore must not find that out half-way.
const MAX_NAME_BYTES: usize = 255;

/// Tells whether something that was at a path before the restore stays there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    Nothing,
    Something,
}

/// A comparison of the present files with those of the target, with the steps found so far.
pub(super) struct RestoreComparison<'a> {
    pub(super) store: &'a Store,
    pub(super) reader: ObjectReader,
    pub(super) present: &'a Scan,
    pub(super) scope: &'a Scope,
    /// Paths that the request leaves alone.
    pub(super) spared: Scope,
    /// The part of the scope that the operation being taken back was about. In the directories above that it created,
    /// everything else is left alone. So are those directories themselves if they hold something else by now.
    pub(super) named: Option<&'a Scope>,
    /// The exact paths that the operation being taken back changed. No other path is touched.
    pub(super) exact: Option<&'a ExactPaths>,
    pub(super) left_out: SkippedByCheckpoint<'a>,
    /// The snapshots from which the operation being taken back brought files.
    pub(super) made: Vec<Snapshot>,
    /// Paths that come from later checkpoints. The directories above them stay.
    pub(super) also: &'a Scope,
    pub(super) may_remove: bool,
    /// Set if the store belongs to the current user. In another user's store, set-user-ID and set-group-ID bits are
    /// about that user.
    pub(super) is_store_ours: bool,
    pub(super) permitted: Permitted<'a>,
    pub(super) steps: Vec<Step>,
    pub(super) changes: Vec<Change>,
    pub(super) conflicts: Vec<Conflict>,
    /// Directories above the scope that have to be created or replaced.
    pub(super) widened: Vec<WorkspacePath>,
    /// Paths at which a directory replaces a file or symlink.
    pub(super) replaced: Vec<WorkspacePath>,
    pub(super) unmet: Vec<Conflict>,
    pub(super) left_to_git: Vec<Conflict>,
}

impl RestoreComparison<'_> {
    /// Returns an error for a path that exists nowhere. Paths that the target lacks and that checkpoints skip stay as
    /// they are: if all paths are such, no restore is possible. Among other paths, they are reported.
    pub(super) fn refuse_unknown_paths(
        &mut self,
        scope: &Scope,
        snapshot: &Snapshot,
        target: &CheckpointId,
    ) -> Result<()> {
        let paths = scope.paths().unwrap_or_default();
        let mut left_out = Vec::new();
        for path in paths {
            if self.store.find(*snapshot, path)?.is_some() {
                continue;
            }
            let found = self.found_at(path).map(|node| match node {
                Node::Skipped(reason, _) => Err(*reason),
                other => Ok(matches!(other, Node::Directory(_))),
            });
            match found {
                Some(Err(reason)) => left_out.push((path, reason)),
                Some(Ok(is_directory)) if self.left_out.covers(path, is_directory)? => {
                    left_out.push((path, Reason::Ignored));
                }
                Some(Ok(_)) => {}
                None => {
                    let place = match self.link_above(path) {
                        Some(link) => {
                            format!("checkpoint {}, and its path goes through the symbolic link {link}", target.short())
                        }
                        None => format!("checkpoint {} and not on disk", target.short()),
                    };
                    return Err(Error::UnknownPath { path: path.clone(), place });
                }
            }
        }
        if let Some((path, reason)) = left_out.first()
            && left_out.len() == paths.len()
        {
            return Err(Error::LeftOutPath { path: (*path).clone(), reason: *reason, checkpoint: *target });
        }
        for (path, reason) in left_out {
            let (told, reason) = if reason.breaks_completeness() {
                // The user wants this very path as it was, and that can't be done.
                (&mut self.conflicts, "it can't be read, so it can't be saved first".to_owned())
            } else {
                (&mut self.unmet, format!("it is not in the checkpoint, and checkpoints skip it ({})", reason.as_str()))
            };
            told.push(Conflict::new(path.clone(), reason));
        }
        Ok(())
    }

    /// Returns what the scan has at a path, or the directory above it that the scan skipped.
    fn found_at(&self, path: &WorkspacePath) -> Option<&Node> {
        let above = std::iter::successors(Some(path.clone()), WorkspacePath::parent);
        let mut above = above.take_while(|above| !above.is_root());
        let (found, node) = above.find_map(|above| Some((above.clone(), self.present.root.find(&above)?)))?;
        (found == *path || matches!(node, Node::Skipped(..))).then_some(node)
    }

    /// Returns the symlink that is in the place of a directory above a path. Nothing behind it is searched.
    fn link_above(&self, path: &WorkspacePath) -> Option<WorkspacePath> {
        path.ancestors().find(|above| matches!(self.present.root.find(above), Some(Node::Symlink(_))))
    }

    pub(super) fn root(&mut self, wanted: &Snapshot) -> Result<()> {
        let present = self.present;
        self.both_directories(&WorkspacePath::root(), &present.root, wanted)?;
        Ok(())
    }

    fn both_directories(&mut self, path: &WorkspacePath, present: &Directory, wanted: &Snapshot) -> Result<Stays> {
        let defaults_fit = self.present.id_defaults() == Some(wanted.defaults);
        if present.ids == Some(wanted.ids) && defaults_fit {
            return Ok(Stays::Something);
        }
        let entries = self.store.list(&self.reader, wanted)?;
        for pair in present.entries().iter().merge_join_by(&entries, |present, wanted| present.name.cmp(&wanted.name)) {
            let name = pair.as_ref().map_any(|present| &present.name, |wanted| &wanted.name).reduce(|name, _| name);
            let (present, wanted) = pair.left_and_right();
            self.name(&path.join(name), present.map(|entry| &entry.node), wanted.map(|entry| &entry.node))?;
        }
        Ok(Stays::Something)
    }

    fn name(&mut self, path: &WorkspacePath, present: Option<&Node>, wanted: Option<&StoredNode>) -> Result<Stays> {
        let stays = if present.is_some() { Stays::Something } else { Stays::Nothing };
        let is_leaf = match (present, wanted) {
            (_, Some(wanted)) => !matches!(wanted, StoredNode::Directory { .. }),
            (present, None) => !matches!(present, Some(Node::Directory(_))),
        };
        if !self.scope.touches(path) || self.spares(path, is_leaf) {
            return Ok(stays);
        }
        if !self.scope.contains(path) {
            return self.above_scope(path, present, wanted);
        }
        match (present, wanted) {
            (None, None) => Ok(Stays::Nothing),
            (None, Some(wanted)) => self.appears(path, wanted).map(|()| Stays::Something),
            (Some(present), None) => self.vanishes(path, present),
            // The target has files here. By now they are git's own.
            (Some(Node::Skipped(Reason::Git, _)), Some(_)) => Ok(self.is_left_to_git(path)),
            (Some(Node::Skipped(reason, _)), Some(_)) => Ok(self.in_the_way(path, *reason)),
            (Some(Node::Directory(present)), Some(StoredNode::Directory { snapshot, mode })) => {
                self.directory_mode(path, present, *mode)?;
                self.both_directories(path, present, snapshot)
            }
            (Some(present), Some(wanted)) => self.differs(path, present, wanted),
        }
    }

    /// Returns whether a path is left alone. Above the named paths, only directories are created and removed.
    fn spares(&self, path: &WorkspacePath, is_leaf: bool) -> bool {
        let is_beside = |named: &Scope| if is_leaf { !named.contains(path) } else { !named.touches(path) };
        let is_inexact = |exact: &ExactPaths| if is_leaf { !exact.contains(path) } else { !exact.touches(path) };
        self.spared.contains(path) || self.named.is_some_and(is_beside) || self.exact.is_some_and(is_inexact)
    }

    /// Compares a directory that only leads to the paths of the scope.
    fn above_scope(
        &mut self,
        path: &WorkspacePath,
        present: Option<&Node>,
        wanted: Option<&StoredNode>,
    ) -> Result<Stays> {
        match (present, wanted) {
            (Some(Node::Directory(present)), Some(StoredNode::Directory { snapshot, .. })) => {
                self.both_directories(path, present, snapshot)
            }
            (Some(Node::Directory(present)), _) => {
                for entry in present.entries() {
                    self.name(&path.join(&entry.name), Some(&entry.node), None)?;
                }
                Ok(Stays::Something)
            }
            (present, Some(StoredNode::Directory { snapshot, mode })) => {
                let before = self.steps.len();
                let (changes, widened, replaced) = (self.changes.len(), self.widened.len(), self.replaced.len());
                let entries = self.store.list(&self.reader, snapshot)?;
                threads::with_room(usize::from(snapshot.depth), || {
                    entries
                        .iter()
                        .try_for_each(|entry| self.name(&path.join(&entry.name), None, Some(&entry.node)).map(drop))
                })?;
                if self.steps.len() == before {
                    return Ok(if present.is_some() { Stays::Something } else { Stays::Nothing });
                }
                let refused = self.permitted.refusal_of_name(path)?;
                if refused.is_some() || matches!(present, Some(Node::Skipped(..))) {
                    self.steps.truncate(before);
                    self.changes.truncate(changes);
                    self.widened.truncate(widened);
                    self.replaced.truncate(replaced);
                }
                if let Some(Node::Skipped(reason, _)) = present {
                    return Ok(self.in_the_way(path, *reason));
                }
                if let Some(why) = refused {
                    self.refused(path, why);
                    return Ok(if present.is_some() { Stays::Something } else { Stays::Nothing });
                }
                // The directory has to be created first. It is recorded here, so that an undo removes it again.
                self.widened.push(path.clone());
                let old = present.and_then(Node::side);
                if let Some(old) = old {
                    self.replaced.push(path.clone());
                    self.changes.push(Change::between(path.clone(), Some(old), None));
                }
                self.step(path, old, Some(Side::Directory { mode: *mode }));
                Ok(Stays::Something)
            }
            (present, _) => Ok(if present.is_some() { Stays::Something } else { Stays::Nothing }),
        }
    }

    fn appears(&mut self, path: &WorkspacePath, wanted: &StoredNode) -> Result<()> {
        if self.spares(path, !matches!(wanted, StoredNode::Directory { .. })) {
            return Ok(());
        }
        if path.name().len() > MAX_NAME_BYTES {
            let reason = "its name is too long for the file system".to_owned();
            self.conflicts.push(Conflict::new(path.clone(), reason));
            return Ok(());
        }
        if let Some(why) = self.permitted.refusal_of_name(path)? {
            self.refused(path, why);
            return Ok(());
        }
        let new = self.side_of(wanted);
        self.step(path, None, Some(new));
        self.appears_below(path, None, wanted)
    }

    /// Adds the change for a new entry, and plans the entries below it.
    fn appears_below(&mut self, path: &WorkspacePath, old: Option<Side>, wanted: &StoredNode) -> Result<()> {
        let new = self.side_of(wanted);
        let StoredNode::Directory { snapshot, .. } = wanted else {
            self.changes.push(Change::between(path.clone(), old, Some(new)));
            return Ok(());
        };
        let entries = self.store.list(&self.reader, snapshot)?;
        if entries.is_empty() {
            self.changes.push(Change::between(path.clone(), None, Some(new)));
        }
        threads::with_room(usize::from(snapshot.depth), || {
            entries.iter().try_for_each(|entry| self.appears(&path.join(&entry.name), &entry.node))
        })
    }

    /// Plans for a path that the target does not hold. Entries that the target skipped stay, and so do entries that
    /// were not captured.
    fn vanishes(&mut self, path: &WorkspacePath, present: &Node) -> Result<Stays> {
        let is_leaf = !matches!(present, Node::Directory(_));
        if self.spares(path, is_leaf) || !self.may_remove || self.target_left_out(path, present)? {
            return Ok(Stays::Something);
        }
        if !matches!(present, Node::Skipped(..))
            && let Some(why) = self.permitted.refusal_of_name(path)?
        {
            self.refused(path, why);
            return Ok(Stays::Something);
        }
        match present {
            Node::Skipped(reason, _) => {
                if reason.breaks_completeness() {
                    let reason = "it can't be read, so it stays".to_owned();
                    self.unmet.push(Conflict::new(path.clone(), reason));
                }
                Ok(Stays::Something)
            }
            Node::File(_) | Node::Symlink(_) => {
                let old = present.side();
                self.step(path, old, None);
                self.changes.push(Change::between(path.clone(), old, None));
                Ok(Stays::Nothing)
            }
            Node::Directory(directory) => {
                let before = self.steps.len();
                let leads_to_another = self.also.touches(path);
                let mut stays = if leads_to_another { Stays::Something } else { Stays::Nothing };
                for entry in directory.entries() {
                    if self.vanishes(&path.join(&entry.name), &entry.node)? == Stays::Something {
                        stays = Stays::Something;
                    }
                }
                if self.steps.len() > before {
                    self.tell_repository(path, directory);
                }
                if stays == Stays::Nothing {
                    let old = Some(Side::Directory { mode: directory.mode() });
                    self.step(path, old, None);
                    if directory.entries().is_empty() {
                        self.changes.push(Change::between(path.clone(), old, None));
                    }
                }
                Ok(stays)
            }
        }
    }

    /// Reports a repository whose files are removed because the target does not hold them: git's own files stay, and
    /// the directory with them.
    fn tell_repository(&mut self, path: &WorkspacePath, directory: &Directory) {
        let is_of_git = |node: &Node| matches!(node, Node::Skipped(Reason::Git, _));
        let mut of_git = directory.entries().iter().filter(|entry| is_of_git(&entry.node));
        let (path, reason) = match (of_git.next(), of_git.next()) {
            (None, _) => return,
            (Some(only), None) => (path.join(&only.name), "it belongs to git, so it stays, and so does its directory"),
            (Some(_), Some(_)) => (path.clone(), "git's own files in it stay, and so does the directory"),
        };
        self.left_to_git.push(Conflict::new(path, reason.to_owned()));
    }

    fn target_left_out(&mut self, path: &WorkspacePath, present: &Node) -> Result<bool> {
        let is_directory = matches!(present, Node::Directory(_));
        if !self.left_out.covers(path, is_directory)? {
            return Ok(false);
        }
        // Entries that the operation itself created go when it is taken back, whatever the rules say. Entries that it
        // only found there, or that were written since, stay.
        for made in &self.made {
            let made = self.store.find(*made, path)?;
            let is_made = made.is_some_and(|made| match (present, &made) {
                (Node::Directory(_), StoredNode::Directory { .. }) => true,
                (Node::File(file), StoredNode::File { content, .. }) => file.content == *content,
                (Node::Symlink(_), StoredNode::Symlink { .. }) => present.side() == Some(self.side_of(&made)),
                _ => false,
            });
            if is_made {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Plans for an entry of another kind, or with other bytes or permission bits.
    fn differs(&mut self, path: &WorkspacePath, present: &Node, wanted: &StoredNode) -> Result<Stays> {
        let (old, new) = (present.side(), self.side_of(wanted));
        if old == Some(new) {
            return Ok(Stays::Something);
        }
        let in_place = match present {
            Node::File(file) => file.stamp.links == 1 && old.and_then(|old| old.content()) == new.content(),
            _ => false,
        };
        let refused =
            if in_place { self.permitted.refusal_of_mode(path)? } else { self.permitted.refusal_of_name(path)? };
        if let Some(why) = refused {
            self.refused(path, why);
            return Ok(Stays::Something);
        }
        if let Node::Directory(directory) = present {
            return self.directory_becomes(path, directory, wanted);
        }
        self.step(path, old, Some(new));
        if let Some(step) = self.steps.last_mut() {
            step.in_place = in_place;
        }
        if matches!(wanted, StoredNode::Directory { .. }) {
            self.replaced.push(path.clone());
            self.changes.push(Change::between(path.clone(), old, None));
            self.appears_below(path, None, wanted)?;
        } else {
            self.changes.push(Change::between(path.clone(), old, Some(new)));
        }
        Ok(Stays::Something)
    }

    fn directory_becomes(&mut self, path: &WorkspacePath, directory: &Directory, wanted: &StoredNode) -> Result<Stays> {
        let (steps, changes, conflicts) = (self.steps.len(), self.changes.len(), self.conflicts.len());
        let mut stays = Stays::Nothing;
        for entry in directory.entries() {
            if self.vanishes(&path.join(&entry.name), &entry.node)? == Stays::Something {
                stays = Stays::Something;
            }
        }
        if stays == Stays::Something {
            self.steps.truncate(steps);
            self.changes.truncate(changes);
            let reason = "a directory with files that are not captured is in the way".to_owned();
            // If the system would refuse to remove an entry below it, that is reported instead.
            if self.conflicts.len() == conflicts {
                self.conflicts.push(Conflict::new(path.clone(), reason));
            }
            return Ok(Stays::Something);
        }
        let new = self.side_of(wanted);
        self.step(path, Some(Side::Directory { mode: directory.mode() }), Some(new));
        self.changes.push(Change::between(path.clone(), None, Some(new)));
        Ok(Stays::Something)
    }

    /// Plans the permission bits of a directory that is on both sides.
    fn directory_mode(&mut self, path: &WorkspacePath, present: &Directory, wanted: Mode) -> Result<()> {
        let mode = present.mode();
        if mode == wanted || self.exact.is_some_and(|exact| !exact.contains(path)) {
            return Ok(());
        }
        if let Some(why) = self.permitted.refusal_of_mode(path)? {
            self.refused(path, why);
        } else {
            let (old, new) = (Side::Directory { mode }, Side::Directory { mode: wanted });
            self.step(path, Some(old), Some(new));
            self.changes.push(Change::between(path.clone(), Some(old), Some(new)));
        }
        Ok(())
    }

    /// Adds a conflict for a change that the system would refuse.
    fn refused(&mut self, path: &WorkspacePath, why: &str) {
        self.conflicts.push(Conflict::new(path.clone(), why.to_owned()));
    }

    fn is_left_to_git(&mut self, path: &WorkspacePath) -> Stays {
        let reason = "git has its own files there now, so it stays".to_owned();
        self.unmet.push(Conflict::new(path.clone(), reason));
        Stays::Something
    }

    fn in_the_way(&mut self, path: &WorkspacePath, reason: Reason) -> Stays {
        let reason = match reason {
            Reason::Special => "a special file is in the way".to_owned(),
            Reason::TooLarge => "a file that is too large to be saved first is in the way".to_owned(),
            Reason::Unreadable => "something that can't be read is in the way, so it can't be saved first".to_owned(),
            Reason::Changing => "something that keeps changing is in the way, so it can't be saved first".to_owned(),
            other => format!("something that is not captured is in the way ({})", other.as_str()),
        };
        self.conflicts.push(Conflict::new(path.clone(), reason));
        Stays::Something
    }

    fn side_of(&self, node: &StoredNode) -> Side {
        match *node {
            StoredNode::File { content, mode } if self.is_store_ours => Side::File { content, mode },
            StoredNode::File { content, mode } => Side::File { content, mode: mode.without_identity() },
            StoredNode::Symlink { target } => Side::Symlink { target },
            StoredNode::Directory { mode, .. } => Side::Directory { mode },
        }
    }

    fn step(&mut self, path: &WorkspacePath, old: Option<Side>, new: Option<Side>) {
        self.steps.push(Step { path: path.clone(), old, new, area: 0, in_place: false });
    }
}

/// Returns whether the store belongs to the current user.
pub(super) fn is_ours(store: &Store) -> Result<bool> {
    let root = store.layout().root();
    let owner = Dir::open(root).and_then(|directory| directory.owner()).or_fail("read", root)?;
    Ok(owner.is_current_user())
}
