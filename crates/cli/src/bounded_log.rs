//! A log file of JSON lines, readable only by its owner and bounded in size.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use backtrail::app_files;
use serde::{Serialize, de::DeserializeOwned};

/// A log file of JSON lines. The older half is removed if the file gets larger than its maximum.
#[derive(Debug, Clone)]
pub(crate) struct BoundedLog {
    file: PathBuf,
    max_bytes: u64,
}

impl BoundedLog {
    pub(crate) fn new(file: PathBuf, max_bytes: u64) -> Self {
        Self { file, max_bytes }
    }

    /// Returns the path of the file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the directory of the file.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.file.parent()
    }

    /// Appends a line. Returns an error if the directory does not exist, or if something else than a file is there.
    pub(crate) fn append(&self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let size = match self.size() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            size => size?,
        };
        app_files::append(&self.file, text.as_bytes())?;
        if size + text.len() as u64 > self.max_bytes {
            self.halve()?;
        }
        Ok(())
    }

    /// Returns the size of the file. Returns an error for anything else than a file: opening a FIFO would wait for another
    /// process, and a device may have no end.
    fn size(&self) -> io::Result<u64> {
        let there = fs::metadata(&self.file)?;
        if there.is_file() { Ok(there.len()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Removes the older half. If two processes do this at once, a few lines are lost, and nothing else.
    fn halve(&self) -> io::Result<()> {
        let bytes = fs::read(&self.file)?;
        let half = bytes.len() / 2;
        let start = bytes[half..].iter().position(|byte| *byte == b'\n').map_or(half, |end| half + end + 1);
        app_files::replace(&self.file, &bytes[start..])
    }

    /// Returns all lines, oldest first. Unreadable lines are skipped.
    pub(crate) fn lines<T: DeserializeOwned>(&self) -> Vec<T> {
        let bytes = self.size().and_then(|_| fs::read(&self.file)).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}
