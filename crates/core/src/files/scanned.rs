//! What a scan gives.

use std::sync::Arc;

use super::StatCache;
use crate::model::{Directory, ModeDefaults, Node, Reason, Scope, Skipped, WorkspacePath};

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

fn collect_skipped(directory: &Directory, path: &WorkspacePath, list_ignored: bool, out: &mut Vec<Skipped>) {
    let mut list_ignored = list_ignored || directory.rules_left_out;
    if directory.place().is_some() {
        let summary = directory.summary();
        if !(summary.has_skipped || summary.has_ignored && list_ignored) {
            return;
        }
    }
    // Also where it is no rule that leaves them out.
    list_ignored |= matches!(directory.get(b".gitignore"), Some(Node::Skipped(..)));
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
