//! Where things lie in a store.

use std::path::{Path, PathBuf};

/// The paths of one store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident = $path:literal;)*) => {
        $($(#[$doc])* pub(crate) fn $name(&self) -> PathBuf { self.root.join($path) })*
    };
}

impl Layout {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The store itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    places! {
        /// Git's object database.
        objects = "objects";
        /// Its packs.
        packs = "objects/pack";
        /// One ref per checkpoint.
        checkpoint_refs = "refs/checkpoints";
        /// One ref per pinned checkpoint.
        pinned_refs = "refs/pinned";
        /// Refs that were packed.
        packed_refs = "packed-refs";
        /// Git's own configuration of this repository.
        config = "config";
        /// Git needs it to take the directory for a repository.
        head = "HEAD";
        /// What git has no room for.
        own = "backtrail";
        /// Which features are needed to read and to write; its presence makes the directory a store.
        format = "backtrail/format";
        /// Whose store this is.
        identity = "backtrail/workspace";
        /// The kernel lock of writers; never deleted.
        lock = "backtrail/lock";
        /// What the last scan saw.
        stat_cache = "backtrail/stat-cache";
        /// The index over the records.
        timeline = "backtrail/timeline";
        /// Restores and deletions.
        operations = "backtrail/ops";
        /// The note that a restore is under way.
        journal = "backtrail/journal";
        /// A journal that could not be read.
        damaged_journal = "backtrail/journal.damaged";
        /// The note that staging areas lie in the workspace.
        staging_note = "backtrail/staging";
        /// Where files of a restore are made ready, each restore in a directory of its own.
        stage = "backtrail/stage";
        /// How many steps each session has taken.
        steps = "backtrail/steps";
        /// Exclude patterns that the owner of the workspace decided on.
        confirmed_excludes = "backtrail/excludes";
        /// What retention remembers between commands.
        retention_notes = "backtrail/retention";
        /// What happened, for people and scripts.
        events = "backtrail/events.jsonl";
    }
}
