//! Repositories whose directory is not called `.git`: they are the user's own git all the same.

use std::io::Read;

use super::stat_cache::Record;
use crate::disk::{Dir, FileType};

/// Directories that git makes in a repository's own; any other one there is somebody's worktree.
const OF_GIT: [&[u8]; 15] = [
    b"annex",
    b"branches",
    b"hooks",
    b"info",
    b"lfs",
    b"logs",
    b"modules",
    b"objects",
    b"rebase-apply",
    b"rebase-merge",
    b"refs",
    b"reftable",
    b"rr-cache",
    b"sequencer",
    b"worktrees",
];

/// Is it the directory of a repository that somebody works with: beside a worktree under another name, or with
/// worktrees elsewhere? A bare one that nothing is checked out of is plain files.
pub(super) fn is_git_directory(directory: &Dir, known: Option<Record<'_>>) -> bool {
    let has_head = match known {
        Some(record) => record.has_name(b"HEAD"),
        None => directory.stamp_at(b"HEAD").is_ok(),
    };
    let has = |name: &[u8]| directory.stamp_at(name).is_ok_and(|stamp| FileType::of(&stamp) == FileType::Directory);
    has_head && has(b"objects") && has(b"refs") && (has(b"worktrees") || !is_bare(directory))
}

/// Is this name in such a directory git's own?
pub(super) fn is_of_git(name: &[u8], is_directory: bool) -> bool {
    !is_directory || OF_GIT.contains(&name)
}

fn is_bare(directory: &Dir) -> bool {
    let is_file = directory.stamp_at(b"config").is_ok_and(|stamp| FileType::of(&stamp) == FileType::File);
    let mut bytes = Vec::new();
    let read = is_file && directory.open_file(b"config").and_then(|mut file| file.read_to_end(&mut bytes)).is_ok();
    let metadata = gix_config::file::Metadata::from(gix_config::Source::Local);
    read && gix_config::File::from_bytes_no_includes(&bytes, metadata, Default::default())
        .is_ok_and(|config| matches!(config.boolean("core.bare"), Ok(Some(true))))
}
