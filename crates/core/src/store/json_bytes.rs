//! Bytes in JSON: a string if they are UTF-8, base64 if they are not. Both are exact.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};

/// Bytes that are usually text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum ExactText {
    Text(String),
    Bytes { base64: String },
}

impl ExactText {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { base64: BASE64_STANDARD.encode(bytes) },
        }
    }

    pub(crate) fn of_path(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        Self::of(path.as_os_str().as_bytes())
    }

    /// Returns the bytes, or `None` if the base64 is damaged.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Bytes { base64 } => BASE64_STANDARD.decode(base64).ok(),
        }
    }

    pub(crate) fn to_path(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        self.to_bytes().map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
    }
}
