//! Precious paths: every checkpoint keeps their contents, and they are shown only to the user.

use crate::{model::WorkspacePath, scan::PatternSet, settings::ScanSettings};

/// The set of precious paths.
///
/// The built-in patterns apply whatever the settings say: a workspace's own settings file can add patterns, but not
/// remove them.
#[derive(Debug, Clone)]
pub struct Precious(PatternSet);

impl Precious {
    /// Combines the built-in patterns with those of each of these settings.
    pub fn of<'s>(settings: impl IntoIterator<Item = &'s ScanSettings>) -> Self {
        let mut patterns = ScanSettings::default().precious;
        patterns.extend(settings.into_iter().flat_map(|settings| settings.precious.iter().cloned()));
        Self(PatternSet::parse(&patterns))
    }

    /// Returns whether this path, or a directory above it, is precious.
    pub fn contains(&self, path: &WorkspacePath) -> bool {
        self.0.fits_within(path.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_patterns_always_hold() {
        let none = ScanSettings { precious: Vec::new(), ..ScanSettings::default() };
        let precious = Precious::of([&none]);
        let holds = |path: &str| precious.contains(&WorkspacePath::new(path).unwrap());
        for path in [".env", "a/b/.env", ".env.local", ".ENV", "sub/.envrc", ".env/secret"] {
            assert!(holds(path), "{path:?} is shown");
        }
        for path in ["env", "a/env.txt", ".environment", "x.env"] {
            assert!(!holds(path), "{path:?} is hidden");
        }
    }

    #[test]
    fn settings_add_to_them() {
        let keys = ScanSettings { precious: vec!["*.pem".into(), "secrets/".into()], ..ScanSettings::default() };
        let precious = Precious::of([&keys]);
        let holds = |path: &str| precious.contains(&WorkspacePath::new(path).unwrap());
        assert!(holds("deep/key.pem") && holds("secrets/a/b") && holds(".env") && !holds("secrets.txt"));
    }
}
