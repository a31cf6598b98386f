//! Matches a path against one glob, as git does for ignore rules.
//!
//! `*`, `?` and `[…]` match within one name; `**` between slashes matches any number of directories. The work is
//! bounded by the length of the pattern times the length of the path, since the author of a `.gitignore` chooses both.
//!
//! Parsing ignore files, and the choice between name and path, are left to [`ignore`](super::ignore).

mod class;

use gix_glob::pattern::Case;

/// The position to retry from after a mismatch: an index in the pattern, after a star, and an index in the path.
#[derive(Clone, Copy)]
struct Retry {
    pattern: usize,
    path: usize,
}

/// A run of stars in a pattern.
enum Stars {
    /// Matches within one name. The pattern continues at this index.
    InName(usize),
    /// Matches nothing or whole directories, including the slash after the stars. The pattern continues after that
    /// slash.
    Directories(usize),
    /// Matches any bytes up to a required slash. The pattern continues after that slash.
    UpToSlash(usize),
    /// Ends the pattern and matches everything.
    Everything,
}

/// Returns `true` if the glob matches the whole path, upper and lower case being different.
pub(super) fn matches_exactly(pattern: &[u8], path: &[u8]) -> bool {
    matches(pattern, path, Case::Sensitive)
}

/// Returns `true` if the glob matches the whole path.
///
/// Only the last star within the current name and the last `**` are retried. Earlier stars need no retry: whatever they
/// could match instead, the later star can match as well.
pub(super) fn matches(pattern: &[u8], path: &[u8], case: Case) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut in_name: Option<Retry> = None;
    let mut directories: Option<Retry> = None;
    loop {
        if at == pattern.len() && place == path.len() {
            return true;
        }
        if pattern.get(at) == Some(&b'*') {
            match stars(pattern, at) {
                Stars::Everything => return true,
                Stars::InName(next) if next == pattern.len() && !path[place..].contains(&b'/') => return true,
                Stars::InName(next) => {
                    in_name = Some(Retry { pattern: next, path: place });
                    at = next;
                }
                Stars::Directories(next) => {
                    directories = Some(Retry { pattern: next, path: place });
                    (in_name, at) = (None, next);
                }
                Stars::UpToSlash(next) => {
                    let Some(behind) = behind_slash(path, place) else { return false };
                    directories = Some(Retry { pattern: next, path: behind });
                    (in_name, at, place) = (None, next, behind);
                }
            }
            continue;
        }
        if let Some(byte) = path.get(place)
            && let Some(next) = one(pattern, at, *byte, case)
        {
            if *byte == b'/' {
                // The slash is at the same index no matter what the stars of the name before it matched.
                in_name = None;
            }
            (at, place) = (next, place + 1);
            continue;
        }
        if let Some(retry) = next_in_name(in_name, path) {
            in_name = Some(retry);
            (at, place) = (retry.pattern, retry.path);
        } else if let Some(retry) = next_directory(directories, path) {
            (in_name, directories) = (None, Some(retry));
            (at, place) = (retry.pattern, retry.path);
        } else {
            return false;
        }
    }
}

/// Reads the stars at index `at`.
fn stars(pattern: &[u8], at: usize) -> Stars {
    let end = pattern[at..].iter().position(|byte| *byte != b'*').map_or(pattern.len(), |length| at + length);
    let follows_slash = at == 0 || pattern[at - 1] == b'/';
    if end - at < 2 || !follows_slash {
        return Stars::InName(end);
    }
    match &pattern[end..] {
        [] => Stars::Everything,
        [b'/', ..] => Stars::Directories(end + 1),
        [b'\\', b'/', ..] => Stars::UpToSlash(end + 2),
        _ => Stars::InName(end),
    }
}

/// Extends the match of a star within a name by one byte. Returns `None` at the end of the name.
fn next_in_name(retry: Option<Retry>, path: &[u8]) -> Option<Retry> {
    let retry = retry?;
    let byte = path.get(retry.path)?;
    (*byte != b'/').then_some(Retry { path: retry.path + 1, ..retry })
}

/// Extends the match of `**` by one directory. Returns `None` if the path has no further directory.
fn next_directory(retry: Option<Retry>, path: &[u8]) -> Option<Retry> {
    let retry = retry?;
    Some(Retry { path: behind_slash(path, retry.path)?, ..retry })
}

fn behind_slash(path: &[u8], start: usize) -> Option<usize> {
    memchr::memchr(b'/', &path[start..]).map(|slash| start + slash + 1)
}

/// Matches one byte of the path with the pattern element at `at`, which is not a star. Returns the index after that
/// element, or `None` on a mismatch.
fn one(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match pattern.get(at)? {
        b'?' => (byte != b'/').then_some(at + 1),
        b'[' => {
            let (is_in, next) = class::read(pattern, at + 1, byte, case)?;
            (is_in && byte != b'/').then_some(next)
        }
        b'\\' => is_same(*pattern.get(at + 1)?, byte, case).then_some(at + 2),
        literal => is_same(*literal, byte, case).then_some(at + 1),
    }
}

fn is_same(one: u8, other: u8, case: Case) -> bool {
    match case {
        Case::Sensitive => one == other,
        Case::Fold => one.eq_ignore_ascii_case(&other),
    }
}

#[cfg(test)]
mod tests;
