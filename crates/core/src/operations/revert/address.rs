//! The words that name what a revert takes back: a checkpoint, `turn:N`, or `FROM..TO`.

use jiff::Zoned;

use super::RevertTarget;
use crate::{address::range::Range, error::Result, workspace::Workspace};

impl Workspace {
    /// Returns what a word asks a revert to take back. `session` tells whose prompt `turn:N` is; by default that of the
    /// session that worked here last.
    pub fn resolve_revert(&self, word: &str, session: Option<&str>, now: &Zoned) -> Result<RevertTarget> {
        match self.resolve_range(word, session, now)? {
            Some(Range { from, to }) => Ok(RevertTarget::Range { from, to }),
            None => self.resolve_in_session(word, session, now).map(RevertTarget::Checkpoint),
        }
    }
}
