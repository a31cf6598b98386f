//! Determines what a user means by a pattern, and which patterns could never match anything.

use std::path::Path;

use crate::{disk, model::WorkspacePath, workspace::Workspace};

/// Returns the pattern as it goes into the list. A path that is written like one becomes a pattern for just that path.
/// The error is the reason why the pattern could never match anything in the workspace, as far as that can be
/// determined.
pub(super) fn meant(workspace: &Workspace, current: &Path, pattern: &str) -> Result<String, String> {
    if let Some(problem) = mistake(pattern) {
        return Err(problem.to_owned());
    }
    let (negation, rest) = split_negation(pattern.trim_start());
    if let Some(below) = below_current(rest) {
        let Some(directory) = inside(workspace, current) else {
            return Err(format!("it is outside the workspace {}", workspace.root().display()));
        };
        let directory =
            str::from_utf8(directory.as_bytes()).map_err(|_| "the path of the current directory is not UTF-8")?;
        return anchored(negation, &escaped(directory), below);
    }
    if !rest.starts_with('/') {
        return Ok(pattern.to_owned());
    }
    match inside(workspace, Path::new(rest.trim_end())) {
        Some(path) => {
            let slash = if rest.trim_end().ends_with('/') { "/" } else { "" };
            let path = str::from_utf8(path.as_bytes()).map_err(|_| "it is not UTF-8")?;
            anchored(negation, "", &format!("{path}{slash}"))
        }
        None if is_elsewhere(workspace, rest.trim_end()) => {
            let root = workspace.root().display();
            let inside = rest.trim_matches('/');
            Err(format!("it is outside the workspace {root}; for that path inside the workspace, write {inside:?}"))
        }
        None => Ok(pattern.to_owned()),
    }
}

fn split_negation(pattern: &str) -> (&str, &str) {
    match pattern.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => ("", pattern),
    }
}

/// Returns the part after `./`.
fn below_current(pattern: &str) -> Option<&str> {
    pattern.strip_prefix("./").or_else(|| (pattern.trim_end() == ".").then_some(""))
}

fn inside(workspace: &Workspace, path: &Path) -> Option<WorkspacePath> {
    workspace.path_from(Path::new("/"), path).ok()
}

/// Returns a pattern that matches at one place alone.
fn anchored(negation: &str, directory: &str, below: &str) -> Result<String, String> {
    let parts = [directory, below].into_iter().filter(|part| !part.trim_matches('/').trim().is_empty());
    let path = parts.collect::<Vec<_>>().join("/");
    if path.is_empty() {
        return Err("it is the workspace itself".to_owned());
    }
    Ok(format!("{negation}/{path}"))
}

/// Escapes the characters of a path that have a special meaning in a pattern.
fn escaped(path: &str) -> String {
    path.chars().flat_map(|c| "\\*?[".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Returns whether a pattern that starts with a slash is rather the path of something outside of the workspace. A
/// single name, such as `/tmp`, is a pattern. So is a path whose first name exists in the workspace.
fn is_elsewhere(workspace: &Workspace, pattern: &str) -> bool {
    let exists = |path: &Path| disk::stamp_following(path).is_ok_and(|stamp| stamp.is_some());
    let path = Path::new(pattern);
    let names: Vec<_> = pattern.trim_matches('/').split('/').collect();
    if names.len() < 2 || exists(&workspace.root().join(names[0])) {
        return false;
    }
    exists(path) || (names.len() > 2 && path.parent().is_some_and(exists))
}

/// Returns why a pattern could never match anything in the workspace, as far as its text tells.
fn mistake(pattern: &str) -> Option<&'static str> {
    let pattern = pattern.trim_matches([' ', '\t']);
    if pattern.contains(['\n', '\r']) {
        return Some("it has more than one line; give each pattern as a separate argument");
    }
    if pattern.contains('\0') {
        return Some("a path can't contain a NUL character");
    }
    if pattern.starts_with('#') {
        return Some("a line that starts with # is a comment; write \\# for the character");
    }
    if pattern.trim_matches(['!', '/']).is_empty() {
        return Some("it is empty");
    }
    let (_, path) = split_negation(pattern);
    let path = below_current(path).unwrap_or(path);
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut parts = path.strip_suffix('/').unwrap_or(path).split('/').peekable();
    let is_one = !path.contains('/');
    if parts.clone().any(|part| part == "..") {
        return Some("a path in the workspace can't contain ..");
    }
    if parts.clone().any(|part| part == ".") {
        return Some("a path in the workspace can't contain . as a part");
    }
    if !is_one && parts.any(str::is_empty) {
        return Some("it has two slashes in a row");
    }
    let mut escaped = false;
    let mut open = false;
    for c in pattern.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => open = true,
            ']' => open = false,
            _ => {}
        }
    }
    open.then_some("it has a [ without a ]; write \\[ for the character")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_never_fit_are_known() {
        for bad in [
            "[", "a[b", "[a-", "../x", "x/../y", "/", "!", "!/", "# note", "x/./y", "././x", "./../x", "/./x", "x/.",
            "a//b", "a//", "//a", "a\nb", "a\n", "a\r", "!a/./b", "a\0b",
        ] {
            assert!(mistake(bad).is_some(), "{bad:?} was taken");
        }
        for good in [
            "*.log", "data/", "[ab].txt", "\\[", "a..b", "..hidden", "/top", "!keep", "**/x", "\\#x", "./x", "!./x/",
            ".", "./", ".x", "a/.b/c.", "/a/b/", "a/**/b", "x ",
        ] {
            assert!(mistake(good).is_none(), "{good:?} was refused");
        }
    }

    #[test]
    fn a_directory_is_taken_literally() {
        assert_eq!(anchored("!", &escaped("a[1]/b*"), "*.log").unwrap(), "!/a\\[1]/b\\*/*.log");
        assert_eq!(anchored("", "", "x/").unwrap(), "/x/");
        assert!(anchored("", "", "").is_err());
    }
}
