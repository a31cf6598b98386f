//! Ignore rules from outside the workspace's tree.

/// The largest rule or settings file that is applied. A larger one is reported, and everything is captured.
pub(crate) const MAX_RULE_BYTES: u64 = 1 << 20;

/// Rules from outside the workspace's tree. They are stored with a checkpoint, so that they can be applied to it later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutsideRules {
    /// `.git/info/exclude` of the user repository.
    pub info_exclude: Vec<u8>,
    /// The user's global excludes file.
    pub global_excludes: Vec<u8>,
    /// The path of the workspace inside the user repository, with a trailing slash. Empty at the top of the repository.
    pub prefix: Vec<u8>,
    /// The ignore files above the workspace in the same repository, outermost first, each after its directory.
    pub above: Vec<(Vec<u8>, Vec<u8>)>,
}
