//! The exact paths that an operation changed. A scope would include everything below them.

use std::collections::BTreeSet;

use crate::model::WorkspacePath;

/// Paths that an operation changed, without the entries below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExactPaths(BTreeSet<WorkspacePath>);

impl ExactPaths {
    pub(crate) fn of(paths: Vec<WorkspacePath>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// Returns whether this very path is one of them.
    pub(super) fn contains(&self, path: &WorkspacePath) -> bool {
        self.0.contains(path)
    }

    /// Returns whether the path or something below it is one of them.
    pub(super) fn touches(&self, path: &WorkspacePath) -> bool {
        let is_below = |found: &WorkspacePath| found.is_within(path);
        self.0.contains(path) || self.0.range(path.join(b"")..).next().is_some_and(is_below)
    }

    pub(super) fn to_vec(&self) -> Vec<WorkspacePath> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_the_same_is_another_path() {
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        let exact = ExactPaths::of(vec![path("d-x"), path("d/in/f"), path("e")]);
        assert!(exact.touches(&path("d")) && exact.touches(&path("d/in")) && exact.touches(&path("e")));
        assert!(!exact.touches(&path("d/i")) && !exact.touches(&path("d-x/f")) && !exact.contains(&path("d")));
    }
}
