//! Ignore rules from outside the tree.

/// The largest rule or settings file that is applied. A larger one is reported, and everything is captured.
pub(crate) const MAX_RULE_BYTES: u64 = 1 << 20;

/// Rules that lie outside the tree; they are kept with a checkpoint, so that it can judge by them later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutsideRules {
    /// `.git/info/exclude` of the user's repository.
    pub info_exclude: Vec<u8>,
    /// The user's global excludes file.
    pub global_excludes: Vec<u8>,
    /// Where the workspace lies inside the user's repository, with a slash at its end; empty at its top.
    pub prefix: Vec<u8>,
    /// The ignore files above the workspace, in the same repository, outermost first, each with its directory.
    pub above: Vec<(Vec<u8>, Vec<u8>)>,
}
