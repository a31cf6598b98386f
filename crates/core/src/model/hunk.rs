//! A run of changed lines, with the lines around it.

/// A run of changed lines in a text, with its context, as in a patch.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hunk {
    /// A hash of the path, the lines of both sides and the position. It stays the same as long as the file does.
    pub id: String,
    /// The first line of the older side, counted from 1. If the hunk has no line of that side, the line before it.
    pub old_start: u64,
    /// The number of lines of the older side.
    pub old_lines: u64,
    /// The first line of the newer side, counted from 1. If the hunk has no line of that side, the line before it.
    pub new_start: u64,
    /// The number of lines of the newer side.
    pub new_lines: u64,
    /// The nearest line before the hunk that begins with a letter, `_` or `$`; empty if there is none.
    pub section: String,
    /// The lines, each after a space, `-` or `+`. Bytes that are not UTF-8 are replaced.
    pub lines: Vec<String>,
    /// The smaller hunks that this one can be split into; empty if it can't be split.
    #[serde(skip)]
    pub parts: Vec<Hunk>,
}
