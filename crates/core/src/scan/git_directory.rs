//! Git directories that are not called `.git`. They belong to the user's own git like any `.git`.

use std::io::{self, Read};

use super::stat_cache::CachedDirectory;
use crate::disk::{Dir, FileType};

/// Directories that git and its extensions create in a git directory. Any other directory there is the user's.
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

/// Files that git creates in a git directory. Does not include files whose names follow a pattern, which [`is_of_git`]
/// checks.
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

/// Returns whether a directory is the git directory of a repository in use: one with an index, with linked worktrees,
/// or not bare. A bare repository that nothing is checked out of counts as plain files.
pub(super) fn is_git_directory(directory: &Dir, known: Option<CachedDirectory<'_>>) -> bool {
    let may_have_head = known.is_none_or(|record| record.has_name(b"HEAD"));
    may_have_head
        && is_repository(directory)
        && (is_there(directory, b"worktrees", FileType::Directory)
            || is_there(directory, b"index", FileType::File)
            || is_there(directory, b"config", FileType::File) && !is_bare(directory))
}

/// Returns whether a directory is a git directory, bare or not. The names in it are not enough, since a project may use
/// the same names: `HEAD` is read as well.
pub(crate) fn is_repository(directory: &Dir) -> bool {
    has_head(directory)
        && [b"objects" as &[u8], b"refs"].iter().all(|name| is_there(directory, name, FileType::Directory))
}

/// Returns whether a directory may hold the objects of a repository.
pub(super) fn holds_objects(directory: &Dir) -> bool {
    is_there(directory, b"pack", FileType::Directory)
}

/// Returns whether a name in a git directory is one of git's own.
pub(crate) fn is_of_git(name: &[u8], file_type: FileType) -> bool {
    // Git follows a symlink in place of any of these directories.
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

/// Returns whether the name has this type or is a symlink, which git follows.
fn is_there(directory: &Dir, name: &[u8], file_type: FileType) -> bool {
    directory.stamp_at(name).is_ok_and(|stamp| [file_type, FileType::Symlink].contains(&FileType::of(&stamp)))
}

/// Returns whether `HEAD` names a branch or a commit. Returns `true` if it can't be read: in doubt, git's files are
/// left alone.
fn has_head(directory: &Dir) -> bool {
    match directory.try_stamp_at(b"HEAD").map(|stamp| stamp.as_ref().map(FileType::of)) {
        Ok(Some(FileType::File)) => read(directory, b"HEAD").map_or(true, |head| names_commit(&head)),
        // Early versions of git made `HEAD` a symlink.
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
    /// Larger than any file that git writes here.
    const MAX_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    directory.open_file(name)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
