//! Repositories whose directory is not called `.git`: they are the user's own git all the same.

use std::io::{self, Read};

use super::stat_cache::Record;
use crate::disk::{Dir, FileType};

/// Directories that git, and what works with it, makes in a repository's own; any other one there is somebody's.
const DIRECTORIES: [&[u8]; 20] = [
    b"annex",
    b"branches",
    b"fsmonitor--daemon",
    b"git-crypt",
    b"hooks",
    b"info",
    b"lfs",
    b"logs",
    b"lost-found",
    b"modules",
    b"objects",
    b"rebase-apply",
    b"rebase-merge",
    b"refs",
    b"reftable",
    b"remotes",
    b"rr-cache",
    b"sequencer",
    b"svn",
    b"worktrees",
];

/// Files that git makes there, beside those whose name follows a rule.
const FILES: [&[u8]; 15] = [
    b"HEAD",
    b"AUTO_MERGE",
    b"MERGE_MODE",
    b"MERGE_RR",
    b"EDIT_DESCRIPTION",
    b"ADD_EDIT.patch",
    b"commondir",
    b"config",
    b"config.worktree",
    b"description",
    b"gitdir",
    b"gitk.cache",
    b"index",
    b"packed-refs",
    b"shallow",
];

/// Is it the directory of a repository that somebody works with: with an index, with worktrees elsewhere, or not bare? A
/// bare one that nothing is checked out of is plain files.
pub(super) fn is_git_directory(directory: &Dir, known: Option<Record<'_>>) -> bool {
    let may_have_head = known.is_none_or(|record| record.has_name(b"HEAD"));
    may_have_head
        && is_repository(directory)
        && (is_there(directory, b"worktrees", FileType::Directory)
            || is_there(directory, b"index", FileType::File)
            || is_there(directory, b"config", FileType::File) && !is_bare(directory))
}

/// Is it the directory of a repository, bare or not? What names it has is not enough: a project may have them, too.
pub(crate) fn is_repository(directory: &Dir) -> bool {
    has_head(directory)
        && [b"objects" as &[u8], b"refs"].iter().all(|name| is_there(directory, name, FileType::Directory))
}

/// May it hold a repository's objects?
pub(super) fn holds_objects(directory: &Dir) -> bool {
    is_there(directory, b"pack", FileType::Directory)
}

/// Is this name in such a directory git's own?
pub(crate) fn is_of_git(name: &[u8], file_type: FileType) -> bool {
    // Git follows a link to any of them.
    if matches!(file_type, FileType::Directory | FileType::Symlink) && DIRECTORIES.contains(&name) {
        return true;
    }
    if file_type == FileType::Directory {
        return false;
    }
    let is_upper = name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let is_note = [b"_HEAD" as &[u8], b"_MSG", b"_EDITMSG", b"_AUTOSTASH"].iter().any(|end| name.ends_with(end));
    FILES.contains(&name)
        || is_upper && (is_note || name.starts_with(b"BISECT_"))
        || name.ends_with(b".lock")
        || [b"gc." as &[u8], b"sharedindex.", b"fsmonitor--daemon"].iter().any(|start| name.starts_with(start))
}

/// Is there something of this type, or a link, which git follows?
fn is_there(directory: &Dir, name: &[u8], file_type: FileType) -> bool {
    directory.stamp_at(name).is_ok_and(|stamp| [file_type, FileType::Symlink].contains(&FileType::of(&stamp)))
}

/// Does it say what is checked out? One that can't be read is taken for one that does: what is git's is left alone.
fn has_head(directory: &Dir) -> bool {
    match directory.try_stamp_at(b"HEAD").map(|stamp| stamp.as_ref().map(FileType::of)) {
        Ok(Some(FileType::File)) => read(directory, b"HEAD").map_or(true, |head| names_commit(&head)),
        // So did early versions of git.
        Ok(Some(FileType::Symlink)) => directory.read_link(b"HEAD").is_ok_and(|head| head.starts_with(b"refs/")),
        Ok(_) => false,
        Err(_) => true,
    }
}

fn names_commit(head: &[u8]) -> bool {
    match head.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => matches!(head.trim_ascii().len(), 40 | 64) && head.trim_ascii().iter().all(u8::is_ascii_hexdigit),
    }
}

fn is_bare(directory: &Dir) -> bool {
    let metadata = gix_config::file::Metadata::from(gix_config::Source::Local);
    read(directory, b"config").is_ok_and(|bytes| {
        gix_config::File::from_bytes_no_includes(&bytes, metadata, Default::default())
            .is_ok_and(|config| matches!(config.boolean("core.bare"), Ok(Some(true))))
    })
}

fn read(directory: &Dir, name: &[u8]) -> io::Result<Vec<u8>> {
    /// Nothing that git writes there is larger.
    const MAX_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    directory.open_file(name)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
