//! The journal: the note that a restore is under way, with what each path was and what it becomes.
//!
//! Writing the journal is the commit point of a restore; removing it is the end. It is one file with a checksum,
//! replaced in one step, so there is a whole journal or none.

use std::io;

use super::{
    ExactText, Layout,
    checksummed_lines::{self, Lines},
    operations::Direction,
};
use crate::{
    disk::private::{self, Durability},
    model::{CheckpointId, ContentId, Scope, Side, WorkspacePath, is_safe_name},
};

/// One path of a restore, with what was there before and what is there afterwards.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Step {
    pub(crate) path: WorkspacePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Side>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Side>,
    /// The index of its staging area in [`Journal::areas`].
    #[serde(default)]
    pub(crate) area: usize,
    /// Set if only the permission bits differ and the file has no other hard link. The bits are then changed in place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_place: bool,
}

impl Step {
    /// Returns whether a file or symlink is removed from the path.
    pub(crate) fn takes_leaf(&self) -> bool {
        !self.in_place && self.old.is_some_and(|old| !old.is_directory())
    }

    /// Returns whether a file or symlink is put at the path.
    pub(crate) fn puts_leaf(&self) -> bool {
        !self.in_place && self.new.is_some_and(|new| !new.is_directory())
    }

    /// Returns whether a directory is removed from the path.
    pub(crate) fn takes_directory(&self) -> bool {
        self.old.is_some_and(|old| old.is_directory()) && !self.new.is_some_and(|new| new.is_directory())
    }

    /// Returns whether a directory is created at the path.
    pub(crate) fn puts_directory(&self) -> bool {
        self.new.is_some_and(|new| new.is_directory()) && !self.old.is_some_and(|old| old.is_directory())
    }

    /// Returns whether a restore plan could contain a step for this path.
    fn is_ours(&self) -> bool {
        // A restore only opens up the permissions of the root and sets them back.
        let stays = self.old == self.new && self.new.is_some_and(|new| new.is_directory());
        (!self.path.is_root() || stays) && self.path.parts().all(|name| is_safe_name(name))
    }

    /// Returns the step that takes this one back.
    pub(crate) fn reversed(&self) -> Self {
        Self { path: self.path.clone(), old: self.new, new: self.old, area: self.area, in_place: self.in_place }
    }
}

/// A file of the user's repository, with its old and its new contents. Both are in the safety checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct GitStep {
    pub(crate) path: ExactText,
    pub(crate) old: Option<ContentId>,
    pub(crate) new: Option<ContentId>,
}

impl GitStep {
    /// Returns the step that takes this one back.
    pub(crate) fn reversed(&self) -> Self {
        Self { path: self.path.clone(), old: self.new, new: self.old }
    }
}

/// A staging area: a directory where new files are prepared and old ones set aside. It is on the same mount as the
/// paths that it serves.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub(crate) enum Area {
    /// In the store.
    Store {
        /// The directory's name below [`Layout::stage`].
        name: String,
    },
    /// In the workspace, at the top of a mount.
    Workspace {
        /// The directory that holds it.
        parent: WorkspacePath,
        /// Its name.
        name: String,
    },
}

impl Area {
    /// Returns whether the name is one that this program gives. This matters because the contents of an area are
    /// removed at the end.
    fn is_ours(&self) -> bool {
        match self {
            Self::Store { name } => !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Workspace { name, .. } => {
                let rest = name.strip_prefix(".backtrail-").unwrap_or_default();
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
        }
    }
}

/// A restore that is under way.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Journal {
    pub(crate) version: u32,
    pub(crate) sequence: u64,
    pub(crate) target: CheckpointId,
    pub(crate) safety: SafetyCheckpoint,
    pub(crate) scope: Scope,
    /// The same as in the log of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) named: Option<Scope>,
    /// The same as in the log of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exact: Option<Vec<WorkspacePath>>,
    /// The same as in the log of operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reverted: Vec<CheckpointId>,
    /// Set if a revert took back only a part: some paths, some hunks, or all but the conflicts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    /// The same as in the log of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopted: Option<ExactText>,
    /// The same as in the log of operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also_from: Vec<CheckpointId>,
    pub(crate) before: Option<CheckpointId>,
    pub(crate) after: Option<CheckpointId>,
    pub(crate) direction: Direction,
    /// The path of the workspace, for people who find this file.
    pub(crate) workspace: ExactText,
    pub(crate) areas: Vec<Area>,
    pub(crate) steps: Vec<Step>,
    /// The files of the user's repository that change with the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) git: Vec<GitStep>,
    /// The logs of refs of the user's repository that get a line: the log file, the commit before and the commit after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) git_logs: Vec<(ExactText, String, String)>,
    /// Set if the restore is being taken back: the steps lead back to how the workspace was.
    #[serde(default)]
    pub(crate) taken_back: bool,
}

/// A journal that is on disk: if this process dies, the next one carries it out. Only such a journal can be applied.
#[derive(Debug, PartialEq)]
pub(crate) struct OpenJournal(Journal);

impl OpenJournal {
    pub(crate) fn journal(&self) -> &Journal {
        &self.0
    }
}

/// A safety checkpoint that was published. A journal can't be made without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SafetyCheckpoint(CheckpointId);

impl SafetyCheckpoint {
    /// Creates the proof. Only [`Writer::publish_safety`](super::Writer::publish_safety) may call this.
    pub(super) fn published(id: CheckpointId) -> Self {
        Self(id)
    }

    pub(crate) fn id(self) -> CheckpointId {
        self.0
    }
}

/// The result of reading the journal.
#[derive(Debug)]
pub(crate) enum FoundJournal {
    Nothing,
    Journal(Box<OpenJournal>),
    /// The journal can't be read, for this reason.
    Damaged(String),
}

pub(super) fn read(layout: &Layout) -> io::Result<FoundJournal> {
    Ok(private::read(&layout.journal())?.map_or(FoundJournal::Nothing, |bytes| parse(&bytes)))
}

/// Parses the bytes of a journal.
pub(super) fn parse(bytes: &[u8]) -> FoundJournal {
    let Some(line) = Lines::of(bytes).sound.first().copied() else {
        return FoundJournal::Damaged("its checksum does not match".into());
    };
    match serde_json::from_str::<Journal>(line) {
        Ok(journal) if !journal.areas.iter().all(Area::is_ours) => {
            FoundJournal::Damaged("it names a staging area that Backtrail did not create".into())
        }
        Ok(journal) if !journal.steps.iter().all(Step::is_ours) => {
            FoundJournal::Damaged("it names a path that a restore must not write".into())
        }
        Ok(journal) => FoundJournal::Journal(Box::new(OpenJournal(journal))),
        Err(error) => FoundJournal::Damaged(error.to_string()),
    }
}

/// Returns the bytes of a journal's file.
pub(super) fn to_bytes(journal: &Journal) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(journal).map_err(io::Error::other)?;
    Ok(checksummed_lines::seal(&json).into_bytes())
}

pub(super) fn write(layout: &Layout, journal: Journal) -> io::Result<OpenJournal> {
    private::replace(&layout.journal(), &to_bytes(&journal)?, Durability::Synced)?;
    Ok(OpenJournal(journal))
}

pub(super) fn close(layout: &Layout) -> io::Result<()> {
    private::remove(&layout.journal())?;
    private::sync_directory(&layout.own())
}

/// Records staging areas before they are created, so that none is left behind.
pub(super) fn note_areas(layout: &Layout, areas: &[Area]) -> io::Result<()> {
    let json = serde_json::to_string(areas).map_err(io::Error::other)?;
    private::replace(&layout.staging_note(), checksummed_lines::seal(&json).as_bytes(), Durability::Synced)
}

pub(super) fn noted_areas(layout: &Layout) -> io::Result<Vec<Area>> {
    Ok(parse_areas(&private::read(&layout.staging_note())?.unwrap_or_default()))
}

/// Parses a note of staging areas. Areas with names that this program does not give are skipped.
pub(super) fn parse_areas(bytes: &[u8]) -> Vec<Area> {
    let noted: Option<Vec<Area>> = Lines::of(bytes).sound.first().and_then(|line| serde_json::from_str(line).ok());
    noted.unwrap_or_default().into_iter().filter(Area::is_ours).collect()
}

pub(super) fn forget_areas(layout: &Layout) -> io::Result<()> {
    if private::exists(&layout.staging_note()) {
        private::remove(&layout.staging_note())?;
    }
    Ok(())
}
