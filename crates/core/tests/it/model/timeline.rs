//! What the timeline must hold: a list of checkpoints, two stacks of restores, and where the workspace stands.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{CheckpointId, Kind};

use super::tree::*;

/// The user's policy, small enough to bite. Contents are the matter of the retention oracle.
pub(super) const POLICY: &str = "[checkpoints]\nmax_checkpoints = 7\n\n[retention]\nautomatic = 2\nsession = 1\n\
    turn = 2\nstep = 3\nsafety = 4\nunsaved = \"0s\"\n";
/// The workspace's own settings.
pub(super) const WORKSPACE_SETTINGS: &str = "[state]\nfeatures = \"features.ign\"\nprogress = \"d/progress.ign\"\n";

fn kept_of(kind: Kind) -> usize {
    match kind {
        Kind::Automatic | Kind::Turn => 2,
        Kind::Session => 1,
        Kind::Step => 3,
        Kind::Safety => 4,
        Kind::Manual | Kind::Feature => usize::MAX,
    }
}

/// A checkpoint as the model knows it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) id: CheckpointId,
    pub(super) kind: Kind,
    pub(super) tree: Tree,
    pub(super) scope: Paths,
    /// Where the workspace stood.
    pub(super) parent: Option<CheckpointId>,
    pub(super) attachments: BTreeMap<String, Vec<u8>>,
    pub(super) is_pinned: bool,
    pub(super) is_gone: bool,
    /// It holds what somebody wrote in the middle of a restore; the model knows no more of it.
    pub(super) is_opaque: bool,
}

impl Known {
    /// The bytes that it answers for.
    pub(super) fn bytes(&self) -> BTreeSet<Vec<u8>> {
        let within = self.tree.iter().filter(|(path, _)| contains(&self.scope, path));
        within.filter_map(|(_, found)| bytes_of(found)).collect()
    }
}

/// A restore that can be taken back.
#[derive(Debug, Clone)]
pub(super) struct Takeable {
    /// What was there before, where it changed something.
    pub(super) safety: Option<CheckpointId>,
    pub(super) scope: Paths,
    /// What of the scope was asked for, where directories above it had to be made.
    pub(super) named: Paths,
    pub(super) stood_on: Option<CheckpointId>,
}

/// The timeline of one workspace.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// In order, also those that are gone.
    pub(super) known: Vec<Known>,
    pub(super) undo: Vec<Takeable>,
    pub(super) redo: Vec<Takeable>,
    /// Where it stands, or stood when that was still there.
    pub(super) at: Option<CheckpointId>,
}

impl Timeline {
    pub(super) fn living(&self) -> impl DoubleEndedIterator<Item = &Known> {
        self.known.iter().filter(|known| !known.is_gone)
    }

    /// The living ones that a restore may be asked for, counted back from the newest.
    pub(super) fn nth_back(&self, back: usize) -> Option<&Known> {
        self.living().rev().filter(|known| !known.is_opaque).nth(back)
    }

    /// The same, of those that hold the whole tree.
    pub(super) fn nth_whole(&self, back: usize) -> Option<&Known> {
        self.living().rev().filter(|known| known.scope.is_none() && !known.is_opaque).nth(back)
    }

    pub(super) fn get(&self, id: CheckpointId) -> &Known {
        self.known.iter().find(|known| known.id == id).unwrap()
    }

    pub(super) fn get_mut(&mut self, id: CheckpointId) -> &mut Known {
        self.known.iter_mut().find(|known| known.id == id).unwrap()
    }

    /// The checkpoint that the workspace stands on: the nearest that is left of those that led there, else the oldest.
    pub(super) fn stands_on(&self) -> Option<&Known> {
        let mut at = self.at.map(|id| self.get(id));
        while let Some(known) = at.filter(|known| known.is_gone) {
            at = known.parent.map(|id| self.get(id));
        }
        at.or_else(|| self.at.and_then(|_| self.living().find(|known| known.kind != Kind::Safety)))
    }

    pub(super) fn standing_id(&self) -> Option<CheckpointId> {
        self.stands_on().map(|known| known.id)
    }

    /// Can it still be taken back? What it needs must be there.
    pub(super) fn is_reachable(&self, takeable: &Takeable) -> bool {
        takeable.safety.or(takeable.stood_on).is_some_and(|id| !self.get(id).is_gone)
    }

    /// What the policy takes now.
    pub(super) fn surplus(&self) -> BTreeSet<CheckpointId> {
        let standing = self.standing_id();
        let latest_safety = self.living().rev().find(|known| known.kind == Kind::Safety).map(|known| known.id);
        let mut of_kind: BTreeMap<&str, usize> = BTreeMap::new();
        let mut together = 0;
        let mut surplus = BTreeSet::new();
        for known in self.living().rev() {
            let count = of_kind.entry(known.kind.as_str()).or_default();
            *count += 1;
            let is_many = *count > kept_of(known.kind);
            let is_passing = matches!(known.kind, Kind::Step | Kind::Automatic | Kind::Session | Kind::Safety);
            together += usize::from(is_passing && !is_many);
            let is_protected = known.is_pinned
                || matches!(known.kind, Kind::Manual | Kind::Feature)
                || [standing, latest_safety].contains(&Some(known.id));
            if !is_protected && (is_many || (is_passing && together > 7)) {
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
