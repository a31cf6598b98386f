//! Paths inside a workspace, as bytes that were validated once.

use std::{borrow::Cow, fmt};

use bstr::{BStr, BString, ByteSlice};

/// A path that is not valid inside a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path inside a workspace")]
pub struct InvalidPath(pub BString);

/// A path relative to the workspace's root, with `/` between its parts. The empty path is the root itself.
///
/// It is never absolute and never has an empty, `.` or `..` part, so that its users need not check again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WorkspacePath(BString);

impl WorkspacePath {
    /// Returns the path of the workspace itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path. Returns an error unless every part is a valid name.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidPath> {
        let bytes: Vec<u8> = bytes.into();
        let is_name = |part: &[u8]| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0);
        if bytes.is_empty() || bytes.split_str("/").all(is_name) {
            Ok(Self(bytes.into()))
        } else {
            Err(InvalidPath(bytes.into()))
        }
    }

    /// Appends one name to the path.
    pub fn join(&self, name: &[u8]) -> Self {
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(&self.0);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Self(path.into())
    }

    /// Returns whether this is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the directory that contains the path. Returns `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.rfind_byte(b'/').unwrap_or(0);
        Some(Self(self.0[..end].into()))
    }

    /// Returns the path of the directory that contains it. It is empty for a name in the root, and for the root itself.
    pub(crate) fn parent_bytes(&self) -> &[u8] {
        &self.0[..self.0.rfind_byte(b'/').unwrap_or(0)]
    }

    /// Returns the directories above the path, nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        self.ancestors_bytes().map(|path| Self(path.into()))
    }

    /// Like [`Self::ancestors`], but returns borrowed bytes.
    pub(crate) fn ancestors_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.rfind_iter("/").map(|slash| &self.0[..slash])
    }

    /// Returns the last name of the path. It is empty for the root.
    pub fn name(&self) -> &BStr {
        let start = self.0.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        self.0[start..].as_bstr()
    }

    /// Returns the names in the path, from the root down.
    pub fn parts(&self) -> impl Iterator<Item = &BStr> {
        self.0.split_str("/").filter(|part| !part.is_empty()).map(ByteSlice::as_bstr)
    }

    /// Returns whether the path is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        other.is_root()
            || self.0 == other.0
            || (self.0.len() > other.0.len() && self.0.starts_with(&other.0) && self.0[other.0.len()] == b'/')
    }

    /// Returns the raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the raw bytes as a byte string.
    pub fn as_bstr(&self) -> &BStr {
        self.0.as_bstr()
    }

    /// Returns the path as text for people and JSON. Bytes that are not UTF-8 are replaced.
    pub fn to_text(&self) -> Cow<'_, str> {
        self.0.to_str_lossy()
    }

    /// Returns the exact text. Returns `None` if it is not UTF-8.
    pub fn to_utf8(&self) -> Option<&str> {
        self.0.to_str().ok()
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { "" })?;
        fmt::Display::fmt(&self.to_text(), f)
    }
}

/// Writes a path that is not UTF-8 as `{"base64": …}`, so that the record loses no byte.
impl serde::Serialize for WorkspacePath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::{Engine, prelude::BASE64_STANDARD};
        use serde::ser::SerializeMap;
        match self.to_utf8() {
            Some(text) => serializer.serialize_str(text),
            None => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &BASE64_STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> serde::Deserialize<'de> for WorkspacePath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::{Engine, prelude::BASE64_STANDARD};
        use serde::de::Error;
        #[derive(serde::Deserialize)]
        #[serde(untagged, expecting = "a path is text in quotes")]
        enum Form {
            Text(String),
            Bytes { base64: String },
        }
        let bytes = match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into_bytes(),
            Form::Bytes { base64 } => BASE64_STANDARD.decode(base64).map_err(D::Error::custom)?,
        };
        Self::new(bytes).map_err(D::Error::custom)
    }
}

/// Returns whether a tree can hold an entry of this name, and a restore may write it.
///
/// Refuses what git forbids: separators, NUL, `.`, `..`, and `.git` in every spelling that some file system treats as
/// the same (other case, NTFS short names and trailing dots or spaces, HFS characters that are invisible in a name).
pub(crate) fn is_safe_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
        && (is_plainly_other_than_git(name) || !(is_dot_git_on_ntfs(name) || is_dot_git_on_hfs(name)))
}

/// Returns `true` for nearly all names that are no spelling of `.git`. Such a spelling starts with one of a few bytes.
/// A name with a backslash is not decided here, since NTFS starts another name after it.
fn is_plainly_other_than_git(name: &[u8]) -> bool {
    let start = name.first().copied().unwrap_or(b'.');
    start.is_ascii() && !matches!(start, b'.' | b'g' | b'G') && !name.contains(&b'\\')
}

fn is_dot_git_on_ntfs(name: &[u8]) -> bool {
    // On NTFS a backslash separates names and a colon starts a stream, so the part before either is a name by itself.
    let first = name.split(|byte| matches!(byte, b'\\' | b':')).next().unwrap_or_default();
    let spelled = |part: &[u8]| {
        let trimmed = part.trim_end_with(|c| c == '.' || c == ' ');
        trimmed.eq_ignore_ascii_case(b".git") || trimmed.eq_ignore_ascii_case(b"git~1")
    };
    spelled(first) || name.split(|byte| *byte == b'\\').any(spelled)
}

fn is_dot_git_on_hfs(name: &[u8]) -> bool {
    // Git reads a name only up to the first bytes that are not valid text, and so `git fsck` finds `.git` in it.
    let valid = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let text = valid.split(['\u{fffe}', '\u{ffff}']).next().unwrap_or_default();
    let ignorable = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = text.chars().filter(|c| !ignorable(c)).collect();
    seen.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_taken() {
        for good in ["", "a", "a/b", "a b/c.d", ".hidden", "..a", "a..", "x\ny"] {
            assert!(WorkspacePath::new(good).is_ok(), "{good:?} was refused");
        }
        for bad in ["/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "x\0y"] {
            assert!(WorkspacePath::new(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn within_means_itself_or_below() {
        let path = |text: &str| WorkspacePath::new(text).unwrap();
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("a")));
        assert!(path("a").is_within(&WorkspacePath::root()));
        assert!(!path("ab").is_within(&path("a")));
        assert!(!path("a").is_within(&path("a/b")));
    }

    #[test]
    fn dot_git_is_refused_in_every_spelling() {
        let bad: [&[u8]; 18] = [
            "\u{200c}.git".as_bytes(),
            b"x\\git~1",
            b".git\xff",
            b".GIT\xc5\xc5:x",
            b".g\xe2\x80\x8cit\xff",
            ".git\u{ffff}x".as_bytes(),
            b".git",
            b".GIT",
            b".Git",
            b"git~1",
            b"GIT~1",
            b".git ",
            b".git.",
            b".git...",
            b".git::$INDEX_ALLOCATION",
            ".g\u{200c}it".as_bytes(),
            b"..",
            b"a\\.git",
        ];
        for name in bad {
            assert!(!is_safe_name(name), "{:?} was taken", name.as_bstr());
        }
        let good: [&[u8]; 10] = [
            b"\xff.git",
            b".gi\xfft",
            b".gitx",
            b"x.git",
            b".github",
            b"git",
            b"git~2",
            b".gitignore",
            b"a\\b",
            b"a:b",
        ];
        for name in good {
            assert!(is_safe_name(name), "{:?} was refused", name.as_bstr());
        }
    }

    /// The quick check must never pass a name that the full check would refuse.
    #[test]
    fn what_is_plainly_other_than_git_is_no_spelling_of_it() {
        let pieces: [&[u8]; 11] =
            [b".", b"g", b"G", b"it", b".git", b"git~1", b"\\", b":", b"x", "\u{200c}".as_bytes(), b"\xff"];
        let mut names = vec![Vec::new()];
        for _ in 0..4 {
            let longer = names.iter().flat_map(|name| pieces.map(|piece| [name.as_slice(), piece].concat()));
            names = longer.collect();
            for name in &names {
                let is_git = is_dot_git_on_ntfs(name) || is_dot_git_on_hfs(name);
                assert!(!(is_git && is_plainly_other_than_git(name)), "{:?}", name.as_bstr());
            }
        }
    }
}
