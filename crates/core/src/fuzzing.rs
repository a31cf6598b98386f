//! Entry points for the fuzzers in `fuzz/`, and for the tests that run their corpora. Each accepts any bytes, and
//! panics only if an assertion fails.

use std::path::Path;

use crate::{
    error::Error,
    json::CheckpointJson,
    model::{OutsideRules, WorkspacePath},
    scan::{IgnoreRules, RuleVerdict},
    settings::{ScanSettings, Settings, parse_bytes, parse_duration, parse_text},
    store::fuzzing as store,
};

/// Parses the message of a checkpoint's commit.
pub fn record(bytes: &[u8]) {
    for checkpoint in store::record(bytes) {
        let json = serde_json::to_string(&CheckpointJson::from(&checkpoint));
        assert!(json.is_ok_and(|json| !json.contains('\n')), "an answer is one line");
    }
}

/// Parses a journal.
pub fn journal(bytes: &[u8]) {
    store::journal(bytes);
}

/// Parses a stored directory. Returns the names that a restore would write.
pub fn tree(bytes: &[u8]) -> Vec<Vec<u8>> {
    store::tree(bytes)
}

/// Parses a settings file.
pub fn settings(bytes: &[u8]) {
    let file = Path::new("backtrail.toml");
    let read = parse_text(file, bytes);
    let text = String::from_utf8_lossy(bytes);
    match &read {
        Ok(settings) => {
            assert!((1..=50).contains(&settings.checkpoints.every_n_steps));
            let outside = |path: &WorkspacePath| path.parts().any(|part| part == ".." || part.contains(&0));
            assert!(!settings.state.paths().iter().any(outside), "a file outside of the workspace");
            let values: serde_json::Value = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
            let given = Settings::default().with_values(values);
            assert_eq!(given.ok().as_ref(), Some(settings), "the same, whichever way the values come");
        }
        Err(Error::Settings { file: named, problem }) => {
            assert_eq!(named, file);
            assert!(!problem.is_empty() && !problem.contains('\n'), "a problem is one line: {problem:?}");
            if let Some(rest) = problem.strip_prefix("line ") {
                let number: usize = rest.split(':').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
                assert!((1..=text.matches('\n').count() + 1).contains(&number), "there is no line {number}");
            }
        }
        Err(other) => panic!("another kind of error: {other}"),
    }
    excluding(&text, read.ok().as_ref());
    for line in text.lines() {
        if let Ok(bytes) = parse_bytes(line) {
            assert_eq!(parse_bytes(&bytes.to_string()), Ok(bytes));
        }
        if let Ok(duration) = parse_duration(line) {
            assert_eq!(parse_duration(&format!("{}s", duration.as_secs())), Ok(duration));
        }
    }
}

/// Checks that `exclude` adds its pattern to the file and changes nothing else in it.
fn excluding(before: &str, settings: Option<&Settings>) {
    let pattern = "*.added \"by\" a fuzzer\\\u{7f}".to_owned();
    let Ok((after, all)) = crate::operations::exclude::with_patterns(before, std::slice::from_ref(&pattern)) else {
        return;
    };
    assert!(all.contains(&pattern));
    let Some(settings) = settings else { return };
    let mut wanted = settings.clone();
    if !wanted.scan.exclude.contains(&pattern) {
        wanted.scan.exclude.push(pattern);
    }
    let read = parse_text(Path::new("backtrail.toml"), after.as_bytes());
    assert_eq!(read.ok(), Some(wanted), "one pattern more, and nothing else: {after:?}");
    let count = |text: &str, what: &str| text.matches(what).count();
    assert!(count(&after, "\r\n") >= count(before, "\r\n"), "line endings changed: {after:?}");
    assert_eq!(after.starts_with('\u{feff}'), before.starts_with('\u{feff}'), "the mark in front is gone");
    // Inside a string of several lines, such a line may not be a comment.
    let has_long_text = ["\"\"\"", "'''"].iter().any(|quotes| before.contains(quotes));
    for line in before.lines().filter(|line| !has_long_text && line.trim_start().starts_with('#')) {
        assert!(after.contains(line.trim()), "the comment {line:?} is gone");
    }
}

/// A path and the ignore files above it, outermost first, as a question that git can answer too.
#[derive(Debug, Clone)]
pub struct IgnoreQuestion {
    /// The path, relative to the directory of the first ignore file.
    pub path: Vec<u8>,
    /// Set if it is a directory.
    pub is_directory: bool,
    /// The ignore file at the top, and that of the first directory on the way to the path.
    pub rules: [Vec<u8>; 2],
}

impl IgnoreQuestion {
    /// Parses a question: a path, with a slash at the end of a directory; a NUL; the rules at the top; a NUL; the rules
    /// below.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        let path = parts.next()?;
        let is_directory = path.ends_with(b"/");
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let is_usual = |name: &[u8]| crate::model::is_safe_name(name) && name != b".gitignore" && name.len() < 100;
        let checked = WorkspacePath::new(path).ok().filter(|path| !path.is_root())?;
        let rules = [parts.next()?.to_vec(), parts.next().unwrap_or_default().to_vec()];
        let is_asked = path.len() < 400
            && checked.parts().all(|name| is_usual(name))
            && !rules.iter().any(|rules| has_lone_blanks(rules));
        is_asked.then(|| Self { path: path.to_vec(), is_directory, rules })
    }

    /// Returns the directories on the way to the path, outermost first.
    pub fn directories(&self) -> impl Iterator<Item = &[u8]> {
        self.path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(slash, _)| &self.path[..slash])
    }

    /// Returns the answer, found as a scan finds it: from the top down, without looking below an ignored directory.
    pub fn is_ignored(&self) -> bool {
        let outside = IgnoreRules::new(&OutsideRules::default(), &ScanSettings::default());
        let mut rules = outside.below(b"", &self.rules[0]);
        assert_ne!(rules.fingerprint(), outside.fingerprint(), "every source changes the fingerprint");
        for (depth, directory) in self.directories().enumerate() {
            if rules.judge(directory, true) == RuleVerdict::Ignored {
                return true;
            }
            if depth == 0 {
                rules = rules.below(directory, &self.rules[1]);
            }
        }
        rules.judge(&self.path, self.is_directory) == RuleVerdict::Ignored
    }
}

/// Returns whether there is a line of blanks that are not all spaces. For git, such a line names files with that name.
/// Here it is not a rule.
fn has_lone_blanks(rules: &[u8]) -> bool {
    let is_odd = |line: &[u8]| line.trim_ascii().is_empty() && line.iter().any(|byte| *byte != b' ');
    rules.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).any(is_odd)
}
