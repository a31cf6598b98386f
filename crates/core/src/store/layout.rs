//! The paths of files and directories in a store.

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

    /// The directory of the store.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    places! {
        /// Git's object database.
        objects = "objects";
        /// Git's packs.
        packs = "objects/pack";
        /// One ref per checkpoint.
        checkpoint_refs = "refs/checkpoints";
        /// One ref per pinned checkpoint.
        pinned_refs = "refs/pinned";
        /// One ref per checkpoint in the bin.
        deleted_refs = "refs/deleted";
        /// Refs that were packed.
        packed_refs = "packed-refs";
        /// Git's own configuration of this repository.
        config = "config";
        /// Git's `HEAD`. Without it, git does not recognize the directory as a repository.
        head = "HEAD";
        /// The directory for files that git has no place for.
        own = "backtrail";
        /// The features that are required to read and to write. The presence of this file makes the directory a store.
        format = "backtrail/format";
        /// The directory that the store belongs to.
        identity = "backtrail/workspace";
        /// The file with the kernel lock of writers. It is never deleted.
        lock = "backtrail/lock";
        /// The stat cache, with the results of the last scan.
        stat_cache = "backtrail/stat-cache";
        /// The moment of a watcher that belongs to the stat cache.
        watch_note = "backtrail/watched";
        /// The files of a running watcher.
        watcher = "backtrail/watch";
        /// The socket of a running watcher.
        watcher_socket = "backtrail/watch/socket";
        /// The index over the records of the checkpoints.
        timeline = "backtrail/timeline";
        /// The index of the timeline.
        timeline_index = "backtrail/timeline-index";
        /// The log of restores and deletions.
        operations = "backtrail/ops";
        /// The note that a restore is under way.
        journal = "backtrail/journal";
        /// A journal that could not be read.
        damaged_journal = "backtrail/journal.damaged";
        /// The note that there are staging areas in the workspace.
        staging_note = "backtrail/staging";
        /// The staging areas in the store. Each restore has a directory of its own.
        stage = "backtrail/stage";
        /// The number of steps that each session has taken.
        steps = "backtrail/steps";
        /// Exclude patterns that the owner of the workspace decided on.
        confirmed_excludes = "backtrail/excludes";
        /// The notes that retention keeps between commands.
        retention_notes = "backtrail/retention";
        /// The note of what was tidied last.
        tidy_notes = "backtrail/tidied";
        /// The workspace and the checkpoint that a fork was made of.
        origin = "backtrail/origin";
        /// The forks that were made of the workspace.
        forks = "backtrail/forks";
        /// The log of events, for people and scripts.
        events = "backtrail/events.jsonl";
    }
}
