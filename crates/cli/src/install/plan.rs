//! The plan of an installation: the files that it changes, as a value, and its execution.

use std::path::Path;

use backtrail::Error;

use super::{
    config_file::ConfigFile,
    receipts::{Receipt, Receipts},
    text_edits::AddedText,
};
use crate::hooks::Agent;

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Created,
    Edited,
    Unchanged,
    /// Our entries are removed; the rest stays.
    Cleaned,
    Deleted,
}

impl FileChange {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Edited => "edited",
            Self::Unchanged => "unchanged",
            Self::Cleaned => "cleaned",
            Self::Deleted => "deleted",
        }
    }
}

/// The planned change of one file.
#[derive(Debug, Clone)]
pub(crate) struct FilePlan {
    pub(super) file: ConfigFile,
    pub(crate) change: FileChange,
    /// The text that is added or removed.
    pub(crate) pieces: Vec<AddedText>,
    pub(super) text: String,
    pub(super) is_executable: bool,
    pub(super) receipt: Option<Receipt>,
}

impl FilePlan {
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }
}

/// The planned changes of an agent's files.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(super) agent: Agent,
    pub(crate) files: Vec<FilePlan>,
    /// Messages for the user.
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Executes the plan. If a file can't be changed, the earlier ones are restored.
    pub(crate) fn apply(&self, receipts: &Receipts, receipts_file: &Path) -> Result<(), Error> {
        let _span = tracing::info_span!("edit_agent_files", files = self.files.len()).entered();
        let mut kept = receipts.clone();
        for file in &self.files {
            match (&file.receipt, file.change) {
                (receipt, FileChange::Cleaned | FileChange::Deleted) => {
                    kept.remove(self.agent, &file.file);
                    receipt.as_ref().and_then(Receipt::after_removal).into_iter().for_each(|left| kept.put(left));
                }
                (Some(receipt), _) => kept.put(receipt.clone()),
                (None, _) => {}
            }
        }
        let keep = |receipts: &Receipts| {
            let failed = |source| Error::Io { action: "write", path: receipts_file.to_owned(), source };
            receipts.write(receipts_file).map_err(failed)
        };
        // Additions are recorded before they are made: a receipt for an addition that was not made does no harm.
        let is_removal = self.files.iter().any(|file| matches!(file.change, FileChange::Cleaned | FileChange::Deleted));
        if kept != *receipts && !is_removal {
            keep(&kept)?;
        }
        for (number, file) in self.files.iter().enumerate() {
            let Err(source) = file.apply() else { continue };
            for done in &self.files[..number] {
                let directories = done.receipt.as_ref().map(|receipt| receipt.directories.as_slice());
                // Only the first error is reported.
                drop(done.file.put_back(directories.unwrap_or_default()));
            }
            drop(keep(receipts));
            return Err(Error::Io { action: "write", path: file.path().to_owned(), source });
        }
        if kept != *receipts && is_removal {
            keep(&kept)?;
        }
        Ok(())
    }
}

impl FilePlan {
    fn apply(&self) -> std::io::Result<()> {
        match self.change {
            FileChange::Unchanged => Ok(()),
            FileChange::Deleted => {
                let directories = self.receipt.as_ref().map(|receipt| receipt.directories.as_slice());
                self.file.remove(directories.unwrap_or_default())
            }
            FileChange::Created | FileChange::Edited | FileChange::Cleaned => {
                self.file.write(&self.text, self.is_executable).map(drop)
            }
        }
    }
}
