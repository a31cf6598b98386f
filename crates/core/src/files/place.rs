//! What a directory's place means for the names in it.

use crate::model::Reason;

/// What a directory's place means for the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Names are captured unless a rule leaves them out.
    Ordinary,
    /// Names are left out unless an exception brings them in.
    Ignored(Reason),
    /// Everything is captured: a caller named the directory.
    Named,
    /// Some names are git's own; others are what they would be without git.
    GitDirectory(Around),
}

/// What the directory of a repository would be without git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Ordinary,
    Ignored(Reason),
    Named,
}

impl Place {
    /// What it means for a directory in it that nothing else is said of.
    pub(super) fn below(self) -> Self {
        match self {
            Self::GitDirectory(Around::Ordinary) => Self::Ordinary,
            Self::GitDirectory(Around::Ignored(reason)) => Self::Ignored(reason),
            Self::GitDirectory(Around::Named) => Self::Named,
            other => other,
        }
    }

    /// The same, in the directory of a repository.
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
