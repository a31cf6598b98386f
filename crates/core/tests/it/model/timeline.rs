//! The expected timeline: a list of checkpoints, two stacks of restores, and the workspace's current checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{CheckpointId, Kind};

use super::tree::*;

/// The user's retention policy, with limits so small that they apply. The retention oracle tests the `unsaved` rule.
pub(super) const POLICY: &str = "[checkpoints]\nmax_checkpoints = 7\n\n[retention]\nautomatic = 2\nsession = 1\n\
    turn = 2\nstep = 3\nsafety = 4\nunsaved = \"0s\"\n";
/// The workspace's own settings.
pub(super) const WORKSPACE_SETTINGS: &str = "[state]\nfeatures = \"features.ign\"\nprogress = \"d/progress.ign\"\n";

fn max_kept(kind: Kind) -> usize {
    match kind {
        Kind::Automatic | Kind::Turn => 2,
        Kind::Session => 1,
        Kind::Step => 3,
        Kind::Safety => 4,
        Kind::Manual | Kind::Feature | Kind::Thread => usize::MAX,
    }
}

/// A checkpoint in the model.
#[derive(Debug, Clone)]
pub(super) struct KnownCheckpoint {
    pub(super) id: CheckpointId,
    pub(super) kind: Kind,
    pub(super) tree: Tree,
    pub(super) scope: Paths,
    /// The checkpoint that the workspace stood on.
    pub(super) parent: Option<CheckpointId>,
    pub(super) attachments: BTreeMap<String, Vec<u8>>,
    pub(super) is_pinned: bool,
    pub(super) is_gone: bool,
    /// Set if it holds bytes that were written during a restore. The model does not know the rest of it.
    pub(super) is_opaque: bool,
}

impl KnownCheckpoint {
    /// Returns the contents that it must hold.
    pub(super) fn bytes(&self) -> BTreeSet<Vec<u8>> {
        let within = self.tree.iter().filter(|(path, _)| contains(&self.scope, path));
        within.filter_map(|(_, found)| bytes_of(found)).collect()
    }
}

/// A restore that can be undone, or an undo that can be redone.
#[derive(Debug, Clone)]
pub(super) struct Reversible {
    /// The safety checkpoint, if the restore changed something.
    pub(super) safety: Option<CheckpointId>,
    pub(super) scope: Paths,
    /// The requested part of the scope, if directories above it had to be created.
    pub(super) named: Paths,
    pub(super) stood_on: Option<CheckpointId>,
}

/// The timeline of one workspace.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// All checkpoints in order, including deleted ones.
    pub(super) known: Vec<KnownCheckpoint>,
    pub(super) undo: Vec<Reversible>,
    pub(super) redo: Vec<Reversible>,
    /// The checkpoint that the workspace stands on. It may be deleted since.
    pub(super) at: Option<CheckpointId>,
}

impl Timeline {
    pub(super) fn existing(&self) -> impl DoubleEndedIterator<Item = &KnownCheckpoint> {
        self.known.iter().filter(|known| !known.is_gone)
    }

    /// Returns the existing checkpoint at this position, counted back from the newest. Skips opaque ones.
    pub(super) fn nth_back(&self, back: usize) -> Option<&KnownCheckpoint> {
        self.existing().rev().filter(|known| !known.is_opaque).nth(back)
    }

    /// Like [`nth_back`](Self::nth_back), but counts only checkpoints of the whole tree.
    pub(super) fn nth_whole(&self, back: usize) -> Option<&KnownCheckpoint> {
        self.existing().rev().filter(|known| known.scope.is_none() && !known.is_opaque).nth(back)
    }

    pub(super) fn get(&self, id: CheckpointId) -> &KnownCheckpoint {
        self.known.iter().find(|known| known.id == id).unwrap()
    }

    pub(super) fn get_mut(&mut self, id: CheckpointId) -> &mut KnownCheckpoint {
        self.known.iter_mut().find(|known| known.id == id).unwrap()
    }

    /// Returns the checkpoint that the workspace stands on: the nearest existing ancestor, otherwise the oldest one.
    pub(super) fn stands_on(&self) -> Option<&KnownCheckpoint> {
        let mut at = self.at.map(|id| self.get(id));
        while let Some(known) = at.filter(|known| known.is_gone) {
            at = known.parent.map(|id| self.get(id));
        }
        at.or_else(|| self.at.and_then(|_| self.existing().find(|known| known.kind != Kind::Safety)))
    }

    pub(super) fn standing_id(&self) -> Option<CheckpointId> {
        self.stands_on().map(|known| known.id)
    }

    /// Returns whether it can still be taken back: the checkpoint that it needs must exist.
    pub(super) fn is_reachable(&self, reversible: &Reversible) -> bool {
        reversible.safety.or(reversible.stood_on).is_some_and(|id| !self.get(id).is_gone)
    }

    /// Returns the checkpoints that the policy deletes now.
    pub(super) fn surplus(&self) -> BTreeSet<CheckpointId> {
        let standing = self.standing_id();
        let latest_safety = self.existing().rev().find(|known| known.kind == Kind::Safety).map(|known| known.id);
        let mut of_kind: BTreeMap<&str, usize> = BTreeMap::new();
        let mut total = 0;
        let mut surplus = BTreeSet::new();
        for known in self.existing().rev() {
            let count = of_kind.entry(known.kind.as_str()).or_default();
            *count += 1;
            let is_over = *count > max_kept(known.kind);
            let is_temporary = matches!(known.kind, Kind::Step | Kind::Automatic | Kind::Session | Kind::Safety);
            total += usize::from(is_temporary && !is_over);
            let is_protected = known.is_pinned
                || matches!(known.kind, Kind::Manual | Kind::Feature)
                || [standing, latest_safety].contains(&Some(known.id));
            if !is_protected && (is_over || (is_temporary && total > 7)) {
                surplus.insert(known.id);
            }
        }
        surplus
    }

    pub(super) fn forget(&mut self, ids: &BTreeSet<CheckpointId>) {
        for known in self.known.iter_mut().filter(|known| ids.contains(&known.id)) {
            known.is_gone = true;
        }
    }
}
