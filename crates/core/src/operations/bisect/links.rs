//! Directories of the workspace that checkpoints skip and that a scratch directory links to.

use crate::{
    disk::{Dir, FileType},
    error::{Error, Result, While},
    model::{Directory, Node, Reason, Scope, WorkspacePath},
    scan::is_rebuildable,
    workspace::Workspace,
};

/// Selects the directories that a scratch directory links to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Links {
    /// Directories that a tool can rebuild, such as `node_modules`, virtual environments and caches.
    #[default]
    Rebuildable,
    /// None.
    None,
    /// Skipped directories with these names or paths.
    Named(Vec<String>),
}

impl Workspace {
    /// Returns the directories to link to.
    pub(super) fn linked_directories(&self, links: &Links) -> Result<Vec<WorkspacePath>> {
        if *links == Links::None {
            return Ok(Vec::new());
        }
        let present = self.scan_for_reading(self.store()?.as_ref(), &Scope::Whole)?;
        let mut skipped = Vec::new();
        collect(&present.root, &WorkspacePath::root(), &mut skipped);
        match links {
            Links::Named(names) => self.named(names, &skipped),
            _ => self.rebuildable(skipped),
        }
    }

    /// Opens a skipped directory, with the directory around it. Returns `None` if it is not a directory, or
    /// can't be opened.
    fn open_skipped(&self, path: &WorkspacePath) -> Result<Option<(Dir, Dir)>> {
        let full = self.root().join(path.to_text().as_ref());
        let parent = Dir::open_parent(self.root(), path).or_fail("open", &full)?;
        let stamp = parent.try_stamp_at(path.name()).or_fail("read", &full)?;
        if stamp.is_none_or(|stamp| FileType::of(&stamp) != FileType::Directory) {
            return Ok(None);
        }
        // A directory that can't be opened is of no use to the command either.
        Ok(parent.open_dir(path.name()).ok().map(|directory| (parent, directory)))
    }

    fn rebuildable(&self, skipped: Vec<WorkspacePath>) -> Result<Vec<WorkspacePath>> {
        let mut found = Vec::new();
        for path in skipped {
            // Python recreates these at once, and a link would make it write into the workspace.
            if path.name() == "__pycache__" {
                continue;
            }
            let Some((parent, directory)) = self.open_skipped(&path)? else { continue };
            let full = self.root().join(path.to_text().as_ref());
            if is_rebuildable(&parent, path.name(), &directory, || false).or_fail("read", full)? {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn named(&self, names: &[String], skipped: &[WorkspacePath]) -> Result<Vec<WorkspacePath>> {
        let mut found = Vec::new();
        for name in names {
            let wanted = name.trim_end_matches('/').as_bytes();
            let count = found.len();
            for path in skipped.iter().filter(|path| *path.name() == *wanted || path.as_bytes() == wanted) {
                if self.open_skipped(path)?.is_some() {
                    found.push(path.clone());
                }
            }
            if found.len() == count {
                let reason = "no skipped directory of the workspace has this name or path";
                return Err(Error::Usage(format!("can't link {name:?}: {reason}")));
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

/// Collects the paths that are skipped as a whole. The scan does not tell which of them are directories.
fn collect(directory: &Directory, path: &WorkspacePath, skipped: &mut Vec<WorkspacePath>) {
    for entry in directory.entries() {
        let below = path.join(&entry.name);
        match &entry.node {
            // An ignored directory is read as well, because it may contain precious files.
            Node::Directory(directory) if !directory.is_captured() => skipped.push(below),
            Node::Directory(directory) => collect(directory, &below, skipped),
            Node::Skipped(Reason::Ignored | Reason::Rebuildable, _) => skipped.push(below),
            _ => {}
        }
    }
}
