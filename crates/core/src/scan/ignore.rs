//! Git's ignore rules, evaluated for each name from the top down.
//!
//! Gitoxide parses the patterns and [`glob`] matches them. This module implements their precedence: `[scan] exclude`
//! first, then the deepest `.gitignore` and the ones above it, `.git/info/exclude` and the user's global excludes.
//! Within each file the last line that matches decides.

use std::sync::Arc;

use bstr::{BStr, ByteSlice};
use gix_glob::{
    Pattern,
    pattern::{Case, Mode},
};

use super::glob;
use crate::{
    model::{MAX_RULE_BYTES, OutsideRules},
    settings::{ScanSettings, WORKSPACE_FILE},
};

/// The decision of the rules about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleVerdict {
    /// No rule excludes it.
    Captured,
    /// A rule excludes it.
    Ignored,
}

/// Returns whether a path is a rule file: a `.gitignore` at any level, or the workspace's own settings.
///
/// Rule files are captured even if a rule excludes them: a restore could not undo a rule that hides itself.
pub(crate) fn is_rule_file(path: &[u8], is_directory: bool) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !is_directory && (name == b".gitignore" || path == WORKSPACE_FILE.as_bytes())
}

/// The file or setting that contains a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleSource {
    /// `[scan] exclude`.
    Settings,
    /// An ignore file in the workspace, by its path.
    Inside(Vec<u8>),
    /// An ignore file above the workspace, in the same repository.
    Above,
    /// `.git/info/exclude`.
    InfoExclude,
    /// The user's own excludes file.
    GlobalExcludes,
}

/// Patterns that are matched one by one, independent of other rules.
#[derive(Debug, Clone)]
pub(crate) struct PatternSet(Vec<Pattern>);

impl PatternSet {
    /// Parses patterns in the syntax of an ignore file.
    pub(crate) fn parse(patterns: &[String]) -> Self {
        Self(PatternList::parse(Vec::new(), patterns.join("\n").as_bytes()).patterns)
    }

    /// Returns whether any pattern matches this file, or a directory above it, ignoring case.
    pub(crate) fn fits_within(&self, path: &[u8]) -> bool {
        let ends = path.find_iter("/").chain([path.len()]);
        ends.into_iter().any(|end| {
            let is_directory = end < path.len();
            self.0.iter().any(|pattern| fits_in(pattern, path[..end].as_bstr(), is_directory, Case::Fold))
        })
    }
}

/// The rules that apply in one directory: its own and those of the directories above it.
#[derive(Debug, Clone)]
pub(crate) struct IgnoreRules {
    outside: Arc<Outside>,
    frame: Option<Arc<Frame>>,
    fingerprint: u64,
}

#[derive(Debug)]
struct Outside {
    /// Sorted by precedence, lowest first.
    lists: Vec<PatternList>,
    /// `[scan] exclude`. Its patterns are relative to the workspace, wherever that is in the repository.
    exclude: PatternList,
    /// The patterns of `exclude` that the owner of the workspace chose. They apply even to paths that a checkpoint
    /// holds.
    exclude_by_owner: PatternList,
    prefix: Vec<u8>,
    include: Vec<Pattern>,
    precious: Vec<Pattern>,
}

#[derive(Debug)]
struct Frame {
    parent: Option<Arc<Frame>>,
    list: PatternList,
}

/// The byte order mark that a UTF-8 file may begin with.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
struct PatternList {
    /// The directory that the patterns are relative to: its path from the top of the repository, with a trailing slash.
    base: Vec<u8>,
    patterns: Vec<Pattern>,
}

impl PatternList {
    fn parse(base: Vec<u8>, bytes: &[u8]) -> Self {
        // Git treats the end of the file like the end of a line, so that a carriage return before it is not part of the
        // rule. Git skips only the UTF-8 byte order mark, but the parser would skip that of UTF-16 as well. With a
        // UTF-8 mark in front, the parser skips just that one.
        let bytes = bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes);
        let text = [UTF8_MARK, bytes, b"\n"].concat();
        let patterns = gix_ignore::parse(&text, false).map(|(pattern, _, _)| pattern).collect();
        Self { base, patterns }
    }

    /// Returns whether the last matching pattern ignores the path (`true`) or re-includes it (`false`). Returns `None`
    /// if no pattern matches.
    fn decide(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        Some(!self.last_fitting(path, is_directory)?.is_negative())
    }

    fn last_fitting(&self, path: &[u8], is_directory: bool) -> Option<&Pattern> {
        let relative = path.strip_prefix(self.base.as_slice())?.as_bstr();
        self.patterns.iter().rev().find(|pattern| fits(pattern, relative, is_directory))
    }
}

fn fits(pattern: &Pattern, path: &BStr, is_directory: bool) -> bool {
    fits_in(pattern, path, is_directory, Case::Sensitive)
}

/// Returns `true` if the pattern matches this path. A pattern without a slash is matched against the last part of the
/// path.
fn fits_in(pattern: &Pattern, path: &BStr, is_directory: bool, case: Case) -> bool {
    if !is_directory && pattern.mode.contains(Mode::MUST_BE_DIR) {
        return false;
    }
    let is_name = pattern.mode.contains(Mode::NO_SUB_DIR) && !pattern.mode.contains(Mode::ABSOLUTE);
    let text = if is_name { name_of(path) } else { path };
    let Some((plain, stars)) = split_before_glob(pattern) else { return is_same(text, &pattern.text, case) };
    if is_name && pattern.mode.contains(Mode::ENDS_WITH) {
        let start = text.len().checked_sub(pattern.text.len() - 1);
        return start.is_some_and(|start| is_same(&text[start..], &pattern.text[1..], case));
    }
    let starts = text.get(..plain.len()).is_some_and(|start| is_same(start, plain, case));
    starts && glob::matches(stars, &text[plain.len()..], case)
}

/// Splits a pattern before its first special character. Returns `None` if it has none.
///
/// Git compares the literal prefix separately. So the stars of `foo**/bar` are at the beginning of a glob, where they
/// match any number of directories.
fn split_before_glob(pattern: &Pattern) -> Option<(&[u8], &[u8])> {
    Some(pattern.text.split_at(pattern.first_wildcard_pos?))
}

fn name_of(path: &BStr) -> &BStr {
    path.rfind_byte(b'/').map_or(path, |slash| path[slash + 1..].as_bstr())
}

fn is_same(one: &[u8], other: &[u8], case: Case) -> bool {
    match case {
        Case::Sensitive => one == other,
        Case::Fold => one.eq_ignore_ascii_case(other),
    }
}

/// Returns `true` if a path below this directory could match. The parts of the pattern are compared up to the first
/// `**`.
fn may_fit_below(pattern: &Pattern, directory: &[u8]) -> bool {
    let mut parts = pattern.text.split_str("/");
    for name in directory.split_str("/") {
        match parts.next() {
            Some(b"**") => return pattern.text.contains(&b'/'),
            Some(part) if glob::matches(part, name, Case::Sensitive) => {}
            _ => return false,
        }
    }
    parts.next().is_some()
}

impl IgnoreRules {
    /// Creates the rules that come from outside the workspace's tree, and from the settings.
    pub(crate) fn new(outside: &OutsideRules, settings: &ScanSettings) -> Self {
        let lines = |patterns: &[String]| patterns.join("\n").into_bytes();
        let parse = |patterns: &[String]| PatternList::parse(Vec::new(), &lines(patterns)).patterns;
        let mut lists = vec![
            PatternList::parse(Vec::new(), &outside.global_excludes),
            PatternList::parse(Vec::new(), &outside.info_exclude),
        ];
        for (base, bytes) in &outside.above {
            lists.push(PatternList::parse(base.clone(), bytes));
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(&outside.global_excludes);
        fingerprint.add(&outside.info_exclude);
        fingerprint.add(&outside.prefix);
        for (base, bytes) in &outside.above {
            fingerprint.add(base);
            fingerprint.add(bytes);
        }
        let by_owner = settings.exclude_by_owner();
        for patterns in [&settings.exclude, &by_owner, &settings.include, &settings.precious] {
            fingerprint.add(&lines(patterns));
        }
        fingerprint.add(&settings.max_file_bytes.to_le_bytes());
        fingerprint.add(&[u8::from(settings.capture_rebuildable)]);
        let prefix = outside.prefix.clone();
        let outside = Outside {
            lists,
            exclude: PatternList::parse(prefix.clone(), &lines(&settings.exclude)),
            exclude_by_owner: PatternList::parse(prefix.clone(), &lines(&by_owner)),
            prefix,
            include: parse(&settings.include),
            precious: parse(&settings.precious),
        };
        Self { outside: Arc::new(outside), frame: None, fingerprint: fingerprint.finish() }
    }

    /// Returns the rules for a directory that contains this ignore file. A file that is too large is not applied.
    pub(crate) fn below(&self, directory: &[u8], bytes: &[u8]) -> Self {
        if bytes.len() as u64 > MAX_RULE_BYTES {
            return self.clone();
        }
        let mut base = self.full(directory);
        if !directory.is_empty() {
            base.push(b'/');
        }
        let list = PatternList::parse(base, bytes);
        let mut fingerprint = Fingerprint(self.fingerprint);
        fingerprint.add(directory);
        fingerprint.add(bytes);
        Self {
            outside: Arc::clone(&self.outside),
            frame: Some(Arc::new(Frame { parent: self.frame.clone(), list })),
            fingerprint: fingerprint.finish(),
        }
    }

    /// Returns whether the owner of the workspace excluded a path. Such a path is skipped even if `@` holds it.
    pub(crate) fn is_excluded_by_owner(&self, path: &[u8], is_directory: bool) -> bool {
        self.outside.exclude_by_owner.decide(&self.full(path), is_directory) == Some(true)
    }

    /// Returns the decision of git's rules and of `exclude` about a path in this directory. The caller has already
    /// judged the directories above it.
    pub(crate) fn judge(&self, path: &[u8], is_directory: bool) -> RuleVerdict {
        let path = self.full(path);
        match self.outside.exclude.decide(&path, is_directory) {
            Some(true) => return RuleVerdict::Ignored,
            Some(false) => return RuleVerdict::Captured,
            None => {}
        }
        let mut frame = self.frame.as_deref();
        while let Some(present) = frame {
            match present.list.decide(&path, is_directory) {
                Some(true) => return RuleVerdict::Ignored,
                Some(false) => return RuleVerdict::Captured,
                None => frame = present.parent.as_deref(),
            }
        }
        match self.outside.lists.iter().rev().find_map(|list| list.decide(&path, is_directory)) {
            Some(true) => RuleVerdict::Ignored,
            _ => RuleVerdict::Captured,
        }
    }

    /// Returns the pattern that excludes a path, and its source. Returns `None` if no rule excludes the path.
    pub(crate) fn ignored_by(&self, path: &[u8], is_directory: bool) -> Option<(String, RuleSource)> {
        let path = self.full(path);
        let frames = std::iter::successors(self.frame.as_deref(), |frame| frame.parent.as_deref());
        let own = std::iter::once((&self.outside.exclude, RuleSource::Settings));
        let inside = frames.map(|frame| {
            let base = frame.list.base.strip_prefix(self.outside.prefix.as_slice()).unwrap_or_default();
            (&frame.list, RuleSource::Inside([base, b".gitignore"].concat()))
        });
        let outside = self.outside.lists.iter().enumerate().rev().map(|(number, list)| {
            let source = match number {
                0 => RuleSource::GlobalExcludes,
                1 => RuleSource::InfoExclude,
                _ => RuleSource::Above,
            };
            (list, source)
        });
        let mut lists = own.chain(inside).chain(outside);
        let (pattern, source) =
            lists.find_map(|(list, source)| Some((list.last_fitting(&path, is_directory)?, source)))?;
        (!pattern.is_negative()).then(|| (pattern.to_string(), source))
    }

    /// Returns whether an ignored file is matched by `precious`, or by an `include` pattern that is not limited to
    /// directories.
    pub(crate) fn is_precious(&self, path: &[u8]) -> bool {
        let path = path.as_bstr();
        self.outside.precious.iter().chain(&self.outside.include).any(|pattern| fits(pattern, path, false))
    }

    /// Returns whether an `include` pattern matches this path.
    pub(crate) fn is_included(&self, path: &[u8], is_directory: bool) -> bool {
        self.outside.include.iter().any(|pattern| fits(pattern, path.as_bstr(), is_directory))
    }

    /// Returns whether an `include` pattern could match something below this ignored directory.
    ///
    /// Only patterns with a slash can: one without would require a walk through every ignored directory.
    pub(crate) fn may_include_below(&self, directory: &[u8]) -> bool {
        self.outside.include.iter().any(|pattern| may_fit_below(pattern, directory))
    }

    /// Returns a hash of all sources of rules. It changes if any of them changes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn full(&self, path: &[u8]) -> Vec<u8> {
        [self.outside.prefix.as_slice(), path].concat()
    }
}

#[derive(Default, Clone, Copy)]
struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(&length, self.0);
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(settings: &ScanSettings) -> IgnoreRules {
        IgnoreRules::new(&OutsideRules::default(), settings)
    }

    #[test]
    fn the_deepest_file_and_the_last_line_win() {
        let top = rules(&ScanSettings::default()).below(b"", b"*.log\n!keep.log\n/only-top\n");
        assert_eq!(top.judge(b"a.log", false), RuleVerdict::Ignored);
        assert_eq!(top.judge(b"keep.log", false), RuleVerdict::Captured);
        assert_eq!(top.judge(b"only-top", false), RuleVerdict::Ignored);
        assert_eq!(top.judge(b"sub/only-top", false), RuleVerdict::Captured);
        let below = top.below(b"sub", b"!a.log\n");
        assert_eq!(below.judge(b"sub/a.log", false), RuleVerdict::Captured);
    }

    #[test]
    fn stars_behind_plain_characters_mean_directories_as_in_git() {
        let top = rules(&ScanSettings::default()).below(b"", b"foo**/bar\n!a/keep**/x\n/top**/d/\n");
        for path in ["foo/bar", "foo/x/y/bar", "foox/y/bar", "foobar"] {
            assert_eq!(top.judge(path.as_bytes(), false), RuleVerdict::Ignored, "{path}");
        }
        for path in ["a/foo/q/bar", "fo/bar", "foo/x", "top/x/d"] {
            assert_eq!(top.judge(path.as_bytes(), false), RuleVerdict::Captured, "{path}");
        }
        assert_eq!(top.judge(b"top/x/d", true), RuleVerdict::Ignored);
    }

    #[test]
    fn the_rule_that_decides_is_known() {
        let settings = ScanSettings { exclude: vec!["*.tmp".into()], ..ScanSettings::default() };
        let outside = OutsideRules { global_excludes: b"*.swp\n".to_vec(), ..OutsideRules::default() };
        let rules = IgnoreRules::new(&outside, &settings).below(b"", b"*.log\n!keep.log\n/build/\n");
        let below = rules.below(b"sub", b"x\n");
        let inside = |file: &str| RuleSource::Inside(file.into());
        assert_eq!(rules.ignored_by(b"a.log", false), Some(("*.log".into(), inside(".gitignore"))));
        assert_eq!(rules.ignored_by(b"keep.log", false), None);
        assert_eq!(rules.ignored_by(b"build", true), Some(("/build/".into(), inside(".gitignore"))));
        assert_eq!(below.ignored_by(b"sub/x", false), Some(("x".into(), inside("sub/.gitignore"))));
        assert_eq!(below.ignored_by(b"sub/x.tmp", false), Some(("*.tmp".into(), RuleSource::Settings)));
        assert_eq!(below.ignored_by(b"sub/x.swp", false), Some(("*.swp".into(), RuleSource::GlobalExcludes)));
        assert_eq!(below.ignored_by(b"sub/y", false), None);
    }

    #[test]
    fn a_pattern_that_only_the_workspace_has_is_not_the_owners() {
        let settings = ScanSettings {
            exclude: vec!["*.log".into(), "dist/".into()],
            exclude_by_workspace: vec!["dist/".into()],
            ..ScanSettings::default()
        };
        let rules = rules(&settings);
        assert_eq!(rules.judge(b"dist", true), RuleVerdict::Ignored);
        assert!(!rules.is_excluded_by_owner(b"dist", true));
        assert!(rules.is_excluded_by_owner(b"a.log", false));
    }

    #[test]
    fn an_ignore_file_that_is_too_large_is_not_applied() {
        let large = b"*.dat\n".repeat(1 << 20);
        assert_eq!(rules(&ScanSettings::default()).below(b"", &large).judge(b"a.dat", false), RuleVerdict::Captured);
    }

    #[test]
    fn include_reaches_into_ignored_directories_by_path_alone() {
        let settings = ScanSettings {
            include: vec!["config/local.yaml".into(), "*.key".into(), "a/**/z".into()],
            ..ScanSettings::default()
        };
        let rules = rules(&settings);
        assert!(rules.may_include_below(b"config"));
        assert!(!rules.may_include_below(b"node_modules"));
        assert!(rules.may_include_below(b"a/b/c"));
        assert!(!rules.may_include_below(b"config/local.yaml"));
        assert!(rules.is_included(b"config/local.yaml", false));
    }

    #[test]
    fn every_source_changes_the_fingerprint() {
        let base = rules(&ScanSettings::default());
        let exclude = ScanSettings { exclude: vec!["x".into()], ..ScanSettings::default() };
        let global = OutsideRules { global_excludes: b"x".to_vec(), ..OutsideRules::default() };
        let prints = [
            base.fingerprint(),
            rules(&exclude).fingerprint(),
            IgnoreRules::new(&global, &ScanSettings::default()).fingerprint(),
            base.below(b"", b"x").fingerprint(),
            base.below(b"", b"y").fingerprint(),
        ];
        let distinct: std::collections::HashSet<_> = prints.iter().collect();
        assert_eq!(distinct.len(), prints.len());
    }
}
