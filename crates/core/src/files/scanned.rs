//! What a scan gives.

use std::sync::Arc;

use super::StatCache;
use crate::model::{Directory, Exception, ModeDefaults, Node, Reason, Scope, Skipped, WorkspacePath};

/// The workspace as it was read.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) root: Directory,
    /// When it began, by the clock that stamps files.
    pub(crate) started: i64,
    /// What part of it was read.
    pub(crate) scope: Scope,
    /// What it was done with.
    pub(crate) cache: Option<Arc<StatCache>>,
    /// Ignore files that are too large to be applied.
    pub(crate) unapplied_rules: Vec<WorkspacePath>,
}

impl Scan {
    /// The usual permission bits that ids in it leave unsaid; none where no id is known.
    pub(crate) fn id_defaults(&self) -> Option<ModeDefaults> {
        self.cache.as_ref().map(|cache| cache.base().mode_defaults)
    }

    /// What was left out: all but what is told again by its name or by the rules, unless those are left out, too.
    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        collect_skipped(&self.root, &WorkspacePath::root(), false, &mut skipped);
        skipped
    }

    /// Those of them that somebody may want to hear of.
    pub(crate) fn told_skipped(&self) -> Vec<Skipped> {
        let mut skipped = self.skipped();
        skipped.retain(|skipped| !skipped.reason.goes_without_saying());
        skipped
    }
}

impl Scan {
    /// Returns the files and links that were captured only because a checkpoint holds them, each behind the path that the
    /// rule names: itself, or a directory above it.
    pub(crate) fn held(&self) -> Vec<(WorkspacePath, WorkspacePath)> {
        let mut held = Vec::new();
        collect_held(&self.root, &WorkspacePath::root(), None, &mut held);
        held
    }
}

fn collect_held(
    directory: &Directory,
    path: &WorkspacePath,
    named: Option<&WorkspacePath>,
    out: &mut Vec<(WorkspacePath, WorkspacePath)>,
) {
    if directory.place().is_some() && !directory.summary().has_held {
        return;
    }
    for entry in directory.entries() {
        let here = path.join(&entry.name);
        let is_held = entry.exception == Some(Exception::Held);
        match &entry.node {
            Node::Directory(child) => {
                let named = named.or(is_held.then_some(&here));
                collect_held(child, &here, named, out);
            }
            Node::File(_) | Node::Symlink(_) if is_held => {
                out.push((named.unwrap_or(&here).clone(), here));
            }
            _ => {}
        }
    }
}

fn collect_skipped(directory: &Directory, path: &WorkspacePath, list_ignored: bool, out: &mut Vec<Skipped>) {
    if directory.place().is_some() {
        let summary = directory.summary();
        if !(summary.has_skipped || summary.has_ignored && list_ignored) {
            return;
        }
    }
    // A rule file that could not be captured: the snapshot can't tell what it said.
    let list_ignored = list_ignored || matches!(directory.get(b".gitignore"), Some(Node::Skipped(..)));
    for entry in directory.entries() {
        match &entry.node {
            Node::Skipped(Reason::Git, _) if entry.name == ".git" => {}
            Node::Skipped(Reason::Ignored, _) if !list_ignored => {}
            Node::Skipped(reason, _) => out.push(Skipped { path: path.join(&entry.name), reason: *reason }),
            Node::Directory(child) => collect_skipped(child, &path.join(&entry.name), list_ignored, out),
            Node::File(_) | Node::Symlink(_) => {}
        }
    }
}
