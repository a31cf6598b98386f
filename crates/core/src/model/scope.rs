//! The part of the workspace that an operation concerns.

use super::WorkspacePath;

/// The paths that an operation concerns.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Option<Vec<WorkspacePath>>", into = "Option<Vec<WorkspacePath>>")]
pub enum Scope {
    /// Everything that is captured.
    #[default]
    Whole,
    /// These files, and these directories with everything below them.
    Paths(Vec<WorkspacePath>),
}

impl Scope {
    /// Creates a scope of these paths, sorted, without paths that are below another one. The root means everything, an
    /// empty list nothing.
    pub fn of_paths(mut paths: Vec<WorkspacePath>) -> Self {
        paths.sort();
        paths.dedup();
        if paths.first().is_some_and(WorkspacePath::is_root) {
            return Self::Whole;
        }
        let is_below_another = |path: &WorkspacePath| path.ancestors_bytes().any(|above| has(&paths, above));
        Self::Paths(paths.iter().filter(|path| !is_below_another(path)).cloned().collect())
    }

    /// Returns whether the scope contains this path.
    pub fn contains(&self, path: &WorkspacePath) -> bool {
        match self {
            Self::Whole => true,
            Self::Paths(paths) => {
                !paths.is_empty()
                    && (has(paths, path.as_bytes()) || path.ancestors_bytes().any(|above| has(paths, above)))
            }
        }
    }

    /// Returns whether the scope contains this path or something below it.
    pub fn touches(&self, path: &WorkspacePath) -> bool {
        match self {
            Self::Whole => true,
            Self::Paths(paths) => paths.iter().any(|other| path.is_within(other) || other.is_within(path)),
        }
    }

    /// Returns the paths. Returns `None` if the scope is everything.
    pub fn paths(&self) -> Option<&[WorkspacePath]> {
        match self {
            Self::Whole => None,
            Self::Paths(paths) => Some(paths),
        }
    }
}

fn has(sorted: &[WorkspacePath], path: &[u8]) -> bool {
    sorted.binary_search_by(|other| other.as_bytes().cmp(path)).is_ok()
}

impl From<Option<Vec<WorkspacePath>>> for Scope {
    fn from(paths: Option<Vec<WorkspacePath>>) -> Self {
        paths.map_or(Self::Whole, Self::of_paths)
    }
}

impl From<Scope> for Option<Vec<WorkspacePath>> {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Whole => None,
            Scope::Paths(paths) => Some(paths),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_others_are_left_out() {
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        let scope = Scope::of_paths(vec![path("b/c"), path("a"), path("b"), path("a")]);
        assert_eq!(scope, Scope::Paths(vec![path("a"), path("b")]));
        assert!(scope.contains(&path("b/c/d")));
        assert!(!scope.contains(&path("bc")));
        assert_eq!(Scope::of_paths(vec![path("a"), WorkspacePath::root()]), Scope::Whole);
    }
}
