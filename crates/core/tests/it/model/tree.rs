//! What a save captures and what a restore makes of a tree, over maps of paths.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{Scope, WorkspacePath};
use backtrail_testkit::Found;
use proptest::prelude::TestCaseError;

pub(super) type Tree = BTreeMap<Vec<u8>, Found>;
/// Some paths with all below them, or everything.
pub(super) type Paths = Option<Vec<Vec<u8>>>;
pub(super) type Checked<T = ()> = Result<T, TestCaseError>;

/// What a restore makes of a tree.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) tree: Tree,
    pub(super) scope: Paths,
    /// What of the scope was asked for, where directories above it had to be made.
    pub(super) named: Paths,
    pub(super) conflicts: BTreeSet<Vec<u8>>,
}

/// The agent's own files: captured although a rule leaves them out.
pub(super) const STATE: [&str; 2] = ["features.ign", "d/progress.ign"];

/// Left out: what the rules name, the agent's own files aside, and the git directory of a repository inside.
pub(super) fn is_ignored(path: &[u8]) -> bool {
    let is_state = STATE.iter().any(|name| name.as_bytes() == path);
    (path.ends_with(b".ign") && !is_state) || path == b".git" || path.ends_with(b"/.git")
}

pub(super) fn state_scope() -> Paths {
    normal(STATE.iter().map(|name| name.as_bytes().to_vec()).collect())
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

/// The directories above a path, the topmost first.
pub(super) fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(slash, _)| &path[..slash])
}

pub(super) fn contains(scope: &Paths, path: &[u8]) -> bool {
    scope.as_ref().is_none_or(|paths| paths.iter().any(|above| is_within(path, above)))
}

/// In order, without those below another.
pub(super) fn normal(mut paths: Vec<Vec<u8>>) -> Paths {
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

/// Is something ignored below it?
pub(super) fn holds_ignored(tree: &Tree, path: &[u8]) -> bool {
    tree.keys().any(|other| other != path && is_within(other, path) && is_ignored(other))
}

/// A directory that has something in it, but nothing that is captured, is not captured itself.
pub(super) fn is_hollow(tree: &Tree, path: &[u8]) -> bool {
    let below = || tree.iter().filter(|(other, _)| *other != path && is_within(other, path));
    let is_captured = |(other, found): (&Vec<u8>, &Found)| match found {
        Found::Directory(_) => !below().any(|(deeper, _)| deeper != other && is_within(deeper, other)),
        _ => !is_ignored(other),
    };
    is_directory(tree.get(path)) && below().next().is_some() && !below().any(is_captured)
}

/// What a checkpoint of this tree holds.
pub(super) fn captured(tree: &Tree) -> Tree {
    let held = tree.iter().filter(|(path, _)| !is_ignored(path) && !is_hollow(tree, path));
    held.map(|(path, found)| (path.clone(), found.clone())).collect()
}

/// Does it hold this path, or something below it?
fn touches(scope: &Paths, path: &[u8]) -> bool {
    contains(scope, path) || scope.as_ref().is_none_or(|paths| paths.iter().any(|below| is_within(below, path)))
}

/// What a restore makes of what is there.
pub(super) fn plan(present: &Tree, wanted: &Tree, scope: &Paths) -> Planned {
    plan_within(present, wanted, scope, &None)
}

/// What taking something back makes of what is there: of the directories that it made above what was named, nothing else
/// is touched.
pub(super) fn plan_within(present: &Tree, wanted: &Tree, scope: &Paths, named: &Paths) -> Planned {
    let is_leaf = |path: &[u8]| match wanted.get(path) {
        Some(found) => !is_directory(Some(found)),
        None => present.contains_key(path) && !is_directory(present.get(path)),
    };
    let is_beside = |path: &[u8]| if is_leaf(path) { !contains(named, path) } else { !touches(named, path) };
    let concerned = |path: &[u8]| contains(scope, path) && !is_beside(path) && !above(path).any(&is_beside);
    let holds_others = |path: &[u8]| present.keys().any(|other| is_within(other, path) && !concerned(other));
    let conflicts: BTreeSet<Vec<u8>> = wanted
        .iter()
        .filter(|(path, found)| concerned(path) && !is_directory(Some(found)))
        .filter(|(path, _)| is_directory(present.get(*path)) && holds_ignored(present, path))
        .map(|(path, _)| path.clone())
        .collect();
    let is_blocked = |path: &[u8]| conflicts.iter().any(|above| is_within(path, above));
    let mut tree = present.clone();
    for path in present.keys().filter(|path| concerned(path) && !is_ignored(path) && !is_blocked(path)) {
        let stays = is_directory(present.get(path))
            && (is_directory(wanted.get(path)) || holds_ignored(present, path) || holds_others(path));
        if !stays {
            tree.remove(path);
        }
    }
    let mut widened = Vec::new();
    for (path, found) in wanted.iter().filter(|(path, _)| concerned(path) && !is_blocked(path)) {
        for parent in above(path).filter(|parent| !concerned(parent)) {
            if !is_directory(tree.get(parent)) {
                // What must be made above the scope is taken back with it.
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
    let named = was_named.and_then(|paths| normal(paths.into_iter().chain(replaced).collect()));
    let scope = scope.clone().and_then(|paths| normal(paths.into_iter().chain(widened).collect()));
    Planned { tree, scope, named, conflicts }
}
