//! The watched directories as a tree, with the number of the last event in each.
//!
//! A directory that is not watched is *blind*: it counts as changed as a whole in every answer. So it can be left out
//! for any reason without a wrong answer.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io,
};

use bstr::{BString, ByteSlice};
use rustix::io::Errno;

use crate::{
    disk::{
        Dir, FileType, delays,
        watch::{EventQueue, WatchId},
    },
    model::WorkspacePath,
};

/// The maximum depth of watched directories. Deeper ones are blind.
const MAX_DEPTH: usize = 300;

type NodeId = u32;

const ROOT: NodeId = 0;

#[derive(Debug)]
struct Node {
    parent: NodeId,
    name: BString,
    children: BTreeMap<BString, NodeId>,
    /// `None` for a blind directory.
    watch: Option<WatchId>,
    /// The number of the last event in the directory itself.
    here: u64,
    /// The number of the event with which the directory appeared, and everything in it.
    whole: u64,
}

/// The reason why not every directory could be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The kernel allows no more watches.
    Watches,
}

/// The watched directories of one workspace.
#[derive(Debug)]
pub(super) struct WatchTree {
    nodes: Vec<Option<Node>>,
    free: Vec<NodeId>,
    by_watch: HashMap<WatchId, NodeId>,
    /// The directories with events, by the number of the last one.
    changed: BTreeSet<(u64, NodeId)>,
    blind: BTreeSet<NodeId>,
    /// Directories that are not worth watching, because checkpoints skip them.
    skipped: HashSet<WorkspacePath>,
    /// Mount points. They hide directories, and their files may change without an event.
    mounts: HashSet<WorkspacePath>,
    pub(super) shortage: Option<Shortage>,
}

/// The directories that changed.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) here: Vec<WorkspacePath>,
    pub(super) whole: Vec<WorkspacePath>,
}

impl WatchTree {
    /// Watches a directory and everything below it.
    pub(super) fn build(
        root: &Dir,
        queue: &EventQueue,
        skipped: HashSet<WorkspacePath>,
        mounts: HashSet<WorkspacePath>,
    ) -> io::Result<Self> {
        let mut tree = Self {
            nodes: Vec::new(),
            free: Vec::new(),
            by_watch: HashMap::new(),
            changed: BTreeSet::new(),
            blind: BTreeSet::new(),
            skipped,
            mounts,
            shortage: None,
        };
        let top = root.open_dir(b".")?;
        let watch = queue.watch(&top)?;
        tree.nodes.push(Some(Node::new(ROOT, BString::default(), Some(watch))));
        tree.by_watch.insert(watch, ROOT);
        tree.watch_below(ROOT, top, queue, 0);
        Ok(tree)
    }

    /// Returns the number of watched directories.
    pub(super) fn directories(&self) -> usize {
        self.by_watch.len()
    }

    /// Returns the number of directories with an event after this one.
    pub(super) fn changed_since(&self, sequence: u64) -> usize {
        self.changed.range((sequence + 1, 0)..).count()
    }

    /// Returns the directories with an event after this one, and the blind ones.
    pub(super) fn since(&self, sequence: u64) -> Found {
        let mut found = Found::default();
        for (_, id) in self.changed.range((sequence + 1, 0)..) {
            let is_whole = self.node(*id).is_some_and(|node| node.whole > sequence);
            if is_whole { &mut found.whole } else { &mut found.here }.push(self.path(*id));
        }
        found.whole.extend(self.blind.iter().map(|id| self.path(*id)));
        found
    }

    /// Returns the directories that are not worth watching.
    pub(super) fn skipped(&self) -> &HashSet<WorkspacePath> {
        &self.skipped
    }

    /// Replaces the directories that are not worth watching.
    pub(super) fn skip(&mut self, root: &Dir, queue: &EventQueue, skipped: HashSet<WorkspacePath>, sequence: u64) {
        self.skipped = skipped;
        let blind = self.blind.iter().map(|id| self.path(*id));
        let no_longer = blind.filter(|path| !self.skipped.contains(path));
        let newly = self.skipped.iter().filter(|path| self.is_watched_path(path)).cloned();
        for path in no_longer.chain(newly).collect::<Vec<_>>() {
            self.renew_path(root, queue, &path, sequence);
        }
    }

    fn renew_path(&mut self, root: &Dir, queue: &EventQueue, path: &WorkspacePath, sequence: u64) {
        let parent = path.parent().and_then(|parent| self.find(&parent));
        if let Some(parent) = parent.and_then(|parent| self.node(parent)?.watch) {
            self.renew(root, queue, parent, path.name(), sequence);
        }
    }

    fn is_watched_path(&self, path: &WorkspacePath) -> bool {
        self.find(path).and_then(|id| self.node(id)).is_some_and(|node| node.watch.is_some())
    }

    fn find(&self, path: &WorkspacePath) -> Option<NodeId> {
        path.parts().try_fold(ROOT, |id, part| self.node(id)?.children.get(part).copied())
    }

    /// Returns whether this watch is the root's.
    pub(super) fn is_root(&self, watch: WatchId) -> bool {
        self.by_watch.get(&watch) == Some(&ROOT)
    }

    /// Notes that something in a watched directory changed. Returns `false` if the directory is not watched any more.
    pub(super) fn note(&mut self, watch: WatchId, sequence: u64) -> bool {
        let Some(id) = self.by_watch.get(&watch).copied() else { return false };
        self.touch(id, sequence);
        true
    }

    /// Notes that every directory changed that is named here or is above one that is.
    pub(super) fn note_path(&mut self, path: &WorkspacePath, sequence: u64) {
        let mut id = ROOT;
        for part in path.parts() {
            match self.node(id).and_then(|node| node.children.get(part.as_bstr())) {
                Some(child) => id = *child,
                None => break,
            }
        }
        self.touch(id, sequence);
    }

    /// Forgets a watch that the kernel ended.
    pub(super) fn forget(&mut self, watch: WatchId) {
        if let Some(id) = self.by_watch.remove(&watch)
            && let Some(node) = self.nodes[id as usize].as_mut()
        {
            node.watch = None;
            // If the directory is still there, an event about its name follows; until then nothing is known about it.
            self.blind.insert(id);
        }
    }

    /// Watches a directory that appeared, or whose name did something else, and everything below it. It has changed as a
    /// whole.
    pub(super) fn renew(&mut self, root: &Dir, queue: &EventQueue, parent: WatchId, name: &[u8], sequence: u64) {
        let Some(parent) = self.by_watch.get(&parent).copied() else { return };
        let known = self.node(parent).and_then(|node| node.children.get(name.as_bstr()).copied());
        if let Some(known) = known {
            self.remove(known, queue);
        }
        if name == b".git" {
            return;
        }
        let path = self.path(parent);
        let depth = path.parts().count();
        let opened = root.open_dir(b".").and_then(|root| root.open_below(path.as_bytes()));
        // If the directory above is gone, its own event follows.
        let Ok(above) = opened else { return };
        let added = self.add(parent, &above, name, queue, depth + 1);
        if let Some(id) = added {
            self.set_whole(id, sequence);
        }
    }

    /// Returns whether a name below a watched directory is a directory that is watched, too.
    pub(super) fn is_watched(&self, parent: WatchId, name: &[u8]) -> bool {
        let parent = self.by_watch.get(&parent).and_then(|parent| self.node(*parent));
        let child = parent.and_then(|parent| self.node(*parent.children.get(name.as_bstr())?));
        child.is_some_and(|child| child.watch.is_some())
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)?.as_ref()
    }

    fn path(&self, mut id: NodeId) -> WorkspacePath {
        let mut parts: Vec<&BString> = Vec::new();
        while id != ROOT {
            let Some(node) = self.node(id) else { break };
            parts.push(&node.name);
            id = node.parent;
        }
        parts.iter().rev().fold(WorkspacePath::root(), |path, name| path.join(name))
    }

    fn touch(&mut self, id: NodeId, sequence: u64) {
        let Some(node) = self.nodes.get_mut(id as usize).and_then(Option::as_mut) else { return };
        let before = node.here;
        node.here = sequence;
        self.changed.remove(&(before, id));
        self.changed.insert((sequence, id));
    }

    fn set_whole(&mut self, id: NodeId, sequence: u64) {
        self.touch(id, sequence);
        if let Some(node) = self.nodes.get_mut(id as usize).and_then(Option::as_mut) {
            node.whole = sequence;
        }
    }

    /// Adds a name below a watched directory, and everything below it. Returns `None` if it is not a directory.
    fn add(&mut self, parent: NodeId, above: &Dir, name: &[u8], queue: &EventQueue, depth: usize) -> Option<NodeId> {
        let path = self.path(parent).join(name);
        if self.skipped.contains(&path) || self.mounts.contains(&path) || depth > MAX_DEPTH {
            return Some(self.insert(parent, name, None));
        }
        let opened = match above.open_dir(name) {
            Ok(opened) => opened,
            Err(error) if is_no_directory(&error) => return None,
            Err(_) => return Some(self.insert(parent, name, None)),
        };
        // Watched before it is listed, so that what appears in between is seen by one or the other.
        let watch = match queue.watch(&opened) {
            Ok(watch) => watch,
            Err(error) => {
                if Errno::from_io_error(&error) == Some(Errno::NOSPC) {
                    self.shortage = Some(Shortage::Watches);
                }
                return Some(self.insert(parent, name, None));
            }
        };
        // The directory was moved here from another place, and the event about that is still to come.
        if let Some(former) = self.by_watch.remove(&watch)
            && let Some(node) = self.nodes.get_mut(former as usize).and_then(Option::as_mut)
        {
            node.watch = None;
            self.blind.insert(former);
        }
        let id = self.insert(parent, name, Some(watch));
        self.watch_below(id, opened, queue, depth);
        Some(id)
    }

    fn watch_below(&mut self, id: NodeId, directory: Dir, queue: &EventQueue, depth: usize) {
        delays::pass();
        let listed = match directory.list() {
            Ok(listed) => listed,
            Err(_) => {
                self.blind.insert(id);
                return;
            }
        };
        for listed in listed {
            if matches!(listed.file_type, Some(FileType::Directory) | None) && listed.name != ".git" {
                self.add(id, &directory, &listed.name, queue, depth + 1);
            }
        }
    }

    fn insert(&mut self, parent: NodeId, name: &[u8], watch: Option<WatchId>) -> NodeId {
        let node = Node::new(parent, name.into(), watch);
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = Some(node);
                id
            }
            None => {
                self.nodes.push(Some(node));
                (self.nodes.len() - 1) as NodeId
            }
        };
        match watch {
            Some(watch) => drop(self.by_watch.insert(watch, id)),
            None => drop(self.blind.insert(id)),
        }
        if let Some(node) = self.nodes[parent as usize].as_mut() {
            node.children.insert(name.into(), id);
        }
        id
    }

    /// Removes a directory and everything below it.
    fn remove(&mut self, id: NodeId, queue: &EventQueue) {
        if let Some((parent, name)) = self.node(id).map(|node| (node.parent, node.name.clone()))
            && let Some(above) = self.nodes[parent as usize].as_mut()
        {
            above.children.remove(&name);
        }
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            let Some(node) = self.nodes[id as usize].take() else { continue };
            if let Some(watch) = node.watch {
                self.by_watch.remove(&watch);
                queue.unwatch(watch);
            }
            self.changed.remove(&(node.here, id));
            self.blind.remove(&id);
            self.free.push(id);
            pending.extend(node.children.into_values());
        }
    }
}

impl Node {
    fn new(parent: NodeId, name: BString, watch: Option<WatchId>) -> Self {
        Self { parent, name, children: BTreeMap::new(), watch, here: 0, whole: 0 }
    }
}

/// Returns whether the name is gone, or is something other than a directory.
fn is_no_directory(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}
