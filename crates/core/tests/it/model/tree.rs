//! The expected results of saves and restores, computed on maps of paths.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{Scope, WorkspacePath};
use backtrail_testkit::Found;
use proptest::prelude::TestCaseError;

pub(super) type Tree = BTreeMap<Vec<u8>, Found>;
/// Some paths with everything below them, or `None` for the whole tree.
pub(super) type Paths = Option<Vec<Vec<u8>>>;
pub(super) type Checked<T = ()> = Result<T, TestCaseError>;

/// The expected result of a restore.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) tree: Tree,
    pub(super) scope: Paths,
    /// The requested part of the scope, if directories above it had to be created.
    pub(super) named: Paths,
    pub(super) conflicts: BTreeSet<Vec<u8>>,
}

/// The agent's own files, which are captured even if a rule ignores them.
pub(super) const STATE: [&str; 2] = ["features.ign", "d/progress.ign"];

/// Returns whether a path is skipped: a path that the rules ignore, except the agent's own files, or a git directory.
pub(super) fn is_ignored(path: &[u8]) -> bool {
    let is_state = STATE.iter().any(|name| name.as_bytes() == path);
    (path.ends_with(b".ign") && !is_state) || path == b".git" || path.ends_with(b"/.git")
}

pub(super) fn state_scope() -> Paths {
    normalize(STATE.iter().map(|name| name.as_bytes().to_vec()).collect())
}

pub(super) fn bytes_of(found: &Found) -> Option<Vec<u8>> {
    match found {
        Found::File(_, bytes) | Found::Link(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

pub(super) fn is_within(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Returns the directories above a path, topmost first.
pub(super) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(slash, _)| &path[..slash])
}

pub(super) fn contains(scope: &Paths, path: &[u8]) -> bool {
    scope.as_ref().is_none_or(|paths| paths.iter().any(|above| is_within(path, above)))
}

/// Sorts the paths and removes each one that is below another.
pub(super) fn normalize(mut paths: Vec<Vec<u8>>) -> Paths {
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| !all.iter().any(|other| other != path && is_within(path, other)));
    Some(paths)
}

pub(super) fn to_scope(paths: &Paths) -> Scope {
    match paths {
        None => Scope::Whole,
        Some(paths) => Scope::of_paths(paths.iter().map(|path| WorkspacePath::new(path.as_slice()).unwrap()).collect()),
    }
}

pub(super) fn is_directory(found: Option<&Found>) -> bool {
    matches!(found, Some(Found::Directory(_)))
}

/// Returns whether something below the path is ignored.
pub(super) fn holds_ignored(tree: &Tree, path: &[u8]) -> bool {
    tree.keys().any(|other| other != path && is_within(other, path) && is_ignored(other))
}

/// Returns whether a directory has entries but none that is captured. Such a directory is not captured itself.
pub(super) fn has_only_ignored_entries(tree: &Tree, path: &[u8]) -> bool {
    let below = || tree.iter().filter(|(other, _)| *other != path && is_within(other, path));
    let is_captured = |(other, found): (&Vec<u8>, &Found)| match found {
        Found::Directory(_) => !below().any(|(deeper, _)| deeper != other && is_within(deeper, other)),
        _ => !is_ignored(other),
    };
    is_directory(tree.get(path)) && below().next().is_some() && !below().any(is_captured)
}

/// Returns the tree that a checkpoint of this tree holds.
pub(super) fn captured(tree: &Tree) -> Tree {
    let held = tree.iter().filter(|(path, _)| !is_ignored(path) && !has_only_ignored_entries(tree, path));
    held.map(|(path, found)| (path.clone(), found.clone())).collect()
}

/// Returns whether the scope holds this path or something below it.
fn touches(scope: &Paths, path: &[u8]) -> bool {
    contains(scope, path) || scope.as_ref().is_none_or(|paths| paths.iter().any(|below| is_within(below, path)))
}

/// Returns the expected result of a restore.
pub(super) fn plan(present: &Tree, wanted: &Tree, scope: &Paths) -> Planned {
    plan_within(present, wanted, scope, &None)
}

/// Returns the expected result of an undo or redo. It touches nothing else in the directories that the restore created
/// above the requested paths.
pub(super) fn plan_within(present: &Tree, wanted: &Tree, scope: &Paths, named: &Paths) -> Planned {
    let is_leaf = |path: &[u8]| match wanted.get(path) {
        Some(found) => !is_directory(Some(found)),
        None => present.contains_key(path) && !is_directory(present.get(path)),
    };
    let is_not_requested = |path: &[u8]| if is_leaf(path) { !contains(named, path) } else { !touches(named, path) };
    let is_in_scope =
        |path: &[u8]| contains(scope, path) && !is_not_requested(path) && !ancestors(path).any(&is_not_requested);
    let holds_others = |path: &[u8]| present.keys().any(|other| is_within(other, path) && !is_in_scope(other));
    let conflicts: BTreeSet<Vec<u8>> = wanted
        .iter()
        .filter(|(path, found)| is_in_scope(path) && !is_directory(Some(found)))
        .filter(|(path, _)| is_directory(present.get(*path)) && holds_ignored(present, path))
        .map(|(path, _)| path.clone())
        .collect();
    let is_blocked = |path: &[u8]| conflicts.iter().any(|above| is_within(path, above));
    let mut tree = present.clone();
    for path in present.keys().filter(|path| is_in_scope(path) && !is_ignored(path) && !is_blocked(path)) {
        let stays = is_directory(present.get(path))
            && (is_directory(wanted.get(path)) || holds_ignored(present, path) || holds_others(path));
        if !stays {
            tree.remove(path);
        }
    }
    let mut widened = Vec::new();
    for (path, found) in wanted.iter().filter(|(path, _)| is_in_scope(path) && !is_blocked(path)) {
        for parent in ancestors(path).filter(|parent| !is_in_scope(parent)) {
            if !is_directory(tree.get(parent)) {
                // A directory that is created above the scope is removed again by an undo.
                tree.insert(parent.to_vec(), wanted[parent].clone());
                widened.push(parent.to_vec());
            }
        }
        tree.insert(path.clone(), found.clone());
    }
    let was_named = named.clone().or(scope.clone().filter(|_| !widened.is_empty()));
    let is_replaced = |path: &&Vec<u8>| {
        let is_leaf = present.contains_key(*path) && !is_directory(present.get(*path));
        is_leaf && is_directory(tree.get(*path))
    };
    let replaced: Vec<Vec<u8>> = present.keys().filter(is_replaced).cloned().collect();
    let named = was_named.and_then(|paths| normalize(paths.into_iter().chain(replaced).collect()));
    let scope = scope.clone().and_then(|paths| normalize(paths.into_iter().chain(widened).collect()));
    Planned { tree, scope, named, conflicts }
}
