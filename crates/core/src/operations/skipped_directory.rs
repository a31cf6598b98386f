//! Determines whether a workspace skips a directory in it as a whole.

use crate::{
    error::Result,
    model::{Node, Scope, WorkspacePath},
    scan::PatternSet,
    workspace::Workspace,
};

/// A file name that occurs in no workspace.
const NEW_FILE: &[u8] = b"backtrail-looks-for-a-new-file";

impl Workspace {
    /// Returns whether checkpoints skip a directory: the one that the workspace stands on holds nothing below it, and a
    /// new file there would be skipped.
    pub fn skips(&self, directory: &WorkspacePath) -> Result<bool> {
        if directory.is_root() || self.holds_below(directory)? {
            return Ok(false);
        }
        let new_file = directory.join(NEW_FILE);
        let is_included = PatternSet::parse(&self.settings().scan.include).fits_within(new_file.as_bytes());
        Ok(!is_included && (self.ignored_by(&new_file)?.is_some() || self.is_left_out_by_scan(&new_file)?))
    }

    fn holds_below(&self, directory: &WorkspacePath) -> Result<bool> {
        match self.current()? {
            Some(id) => Ok(!self.names_at(&id, directory)?.is_empty()),
            None => Ok(false),
        }
    }

    /// Returns whether a directory above a path is skipped, by a rule or by a mark.
    fn is_left_out_by_scan(&self, path: &WorkspacePath) -> Result<bool> {
        let store = self.store()?;
        let scan = self.scan_for_reading(store.as_ref(), &Scope::of_paths(vec![path.clone()]))?;
        let mut above = path.ancestors();
        Ok(above.any(|above| matches!(scan.root.find(&above), Some(Node::Skipped(..)))))
    }
}
