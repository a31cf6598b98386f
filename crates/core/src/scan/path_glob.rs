//! Patterns that select paths, as the user writes them.

use gix_glob::pattern::Case;

use super::glob;
use crate::model::WorkspacePath;

/// A pattern such as `*.md` or `docs/**/*.svg`. Without a slash it matches a name in any directory, else a path from the
/// top of the workspace. A directory that matches stands for everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob {
    pattern: Vec<u8>,
    /// Set if the pattern is for a whole path and not for a name.
    is_path: bool,
}

impl PathGlob {
    /// Creates a pattern. It never fails: a text without wildcards matches itself.
    pub fn new(pattern: impl Into<Vec<u8>>) -> Self {
        let pattern: Vec<u8> = pattern.into();
        let inside = pattern.strip_prefix(b"./").or(pattern.strip_prefix(b"/"));
        let is_rooted = inside.is_some();
        let inside = inside.unwrap_or(&pattern);
        let inside = inside.strip_suffix(b"/").unwrap_or(inside);
        Self { is_path: is_rooted || inside.contains(&b'/'), pattern: inside.to_vec() }
    }

    /// Returns whether the pattern matches a path, or a directory above it.
    pub fn matches(&self, path: &WorkspacePath) -> bool {
        self.is_match(path.as_bytes()) || path.ancestors_bytes().any(|above| self.is_match(above))
    }

    fn is_match(&self, path: &[u8]) -> bool {
        let text = if self.is_path { path } else { path.rsplit(|byte| *byte == b'/').next().unwrap_or(path) };
        !path.is_empty() && glob::matches(&self.pattern, text, Case::Sensitive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        PathGlob::new(pattern).matches(&WorkspacePath::new(path).unwrap())
    }

    #[test]
    fn a_pattern_without_a_slash_matches_names_everywhere() {
        assert!(fits("*.md", "README.md") && fits("*.md", "docs/a/b.md") && fits("docs", "docs/a"));
        assert!(!fits("*.md", "README.mdx") && !fits("*.md", "md") && !fits("doc", "docs/a"));
    }

    #[test]
    fn a_pattern_with_a_slash_matches_whole_paths() {
        assert!(fits("docs/*.md", "docs/a.md") && fits("docs/**/*.md", "docs/x/y/a.md") && fits("/a", "a"));
        assert!(!fits("docs/*.md", "docs/x/a.md") && !fits("docs/*.md", "x/docs/a.md") && !fits("/a", "x/a"));
        assert!(fits("src/", "src/main.rs") && fits("./src/*.rs", "src/main.rs"));
    }
}
