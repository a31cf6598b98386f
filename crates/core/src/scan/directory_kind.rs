//! The kinds of directories that a scan distinguishes, and how each treats the names in it.

use crate::model::Reason;

/// The kind of a directory. It decides how the names in it are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryKind {
    /// Names are captured unless a rule excludes them.
    Ordinary,
    /// Names are skipped unless an exception applies to them.
    Ignored(Reason),
    /// Everything is captured, since the caller named the directory.
    Named,
    /// A git directory. Git's own names are skipped; other names are treated as if the directory were not git's.
    GitDirectory(Around),
}

/// The kind that a git directory would have if it were not git's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Ordinary,
    Ignored(Reason),
    Named,
}

impl DirectoryKind {
    /// Returns the kind of a subdirectory that no rule or exception concerns.
    pub(super) fn below(self) -> Self {
        match self {
            Self::GitDirectory(Around::Ordinary) => Self::Ordinary,
            Self::GitDirectory(Around::Ignored(reason)) => Self::Ignored(reason),
            Self::GitDirectory(Around::Named) => Self::Named,
            other => other,
        }
    }

    /// Returns the kind of a git directory of this kind.
    pub(super) fn of_git(self) -> Self {
        Self::GitDirectory(match self {
            Self::Ordinary => Around::Ordinary,
            Self::Ignored(reason) => Around::Ignored(reason),
            Self::Named => Around::Named,
            Self::GitDirectory(around) => around,
        })
    }

    pub(super) fn salt(self) -> u64 {
        match self {
            Self::Ordinary => 0,
            Self::Ignored(_) => 0x9e37_79b9_7f4a_7c15,
            Self::Named => 0xc2b2_ae3d_27d4_eb4f,
            Self::GitDirectory(_) => 0x1656_67b1_9e37_79f9 ^ self.below().salt(),
        }
    }
}
