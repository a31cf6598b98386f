//! The reasons why a path can't be merged, in the words of a revert or of an adoption.

/// The purpose of a merge. It decides how a conflict is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Taking back a change: the base is the state after it.
    TakeBack,
    /// Bringing in the changes of a fork: the base is the fork point.
    BringIn,
}

/// A reason why a path can't be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// The base lacks the path, the other side has it, and something else is on disk.
    Occupied,
    /// The other side lacks the path, and its contents differ from the base.
    Edited,
    /// The other side lacks the path, and its permission bits differ from the base.
    ModeChanged,
    /// The other side lacks the path, and something of another type is on disk.
    Replaced,
    /// The other side lacks the path, and the file was moved.
    Moved,
    /// The other side differs from the base, and nothing is on disk.
    Deleted,
    /// A reason with the same words for both purposes.
    Both(&'static str),
}

impl Clash {
    pub(super) fn text(self, purpose: Purpose) -> &'static str {
        match (self, purpose) {
            (Self::Both(text), _) => text,
            (Self::Occupied, Purpose::TakeBack) => "the change deleted it, and something else is there now",
            (Self::Edited, Purpose::TakeBack) => "the change created it, and it was edited since",
            (Self::ModeChanged, Purpose::TakeBack) => {
                "the change created it, and its permission bits were changed since"
            }
            (Self::Replaced, Purpose::TakeBack) => "the change created it, and it was replaced since",
            (Self::Moved, Purpose::TakeBack) => "the change created it, and it was moved since",
            (Self::Deleted, Purpose::TakeBack) => "the change edited it, and it was deleted since",
            (Self::Occupied, Purpose::BringIn) => "the fork created it, and something else is here",
            (Self::Edited, Purpose::BringIn) => "the fork deleted it, and it was edited here",
            (Self::ModeChanged, Purpose::BringIn) => "the fork deleted it, and its permission bits were changed here",
            (Self::Replaced, Purpose::BringIn) => "the fork deleted it, and it was replaced here",
            (Self::Moved, Purpose::BringIn) => "the fork deleted it, and it was moved here",
            (Self::Deleted, Purpose::BringIn) => "the fork edited it, and it was deleted here",
        }
    }
}
