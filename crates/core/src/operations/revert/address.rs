//! The words that name what a revert takes back: a checkpoint, `turn:N`, or `FROM..TO`.

use jiff::Zoned;

use super::RevertTarget;
use crate::{
    address::range::Range,
    error::{Error, Result},
    model::CheckpointId,
    workspace::Workspace,
};

impl Workspace {
    /// Returns what a word asks a revert to take back. `session` tells whose prompt `turn:N` is; by default that of the
    /// session that worked here last.
    pub fn resolve_revert(&self, word: &str, session: Option<&str>, now: &Zoned) -> Result<RevertTarget> {
        match self.resolve_range(word, session, now)? {
            Some(Range { from, to }) => Ok(RevertTarget::Range { from, to }),
            None => self.resolve_in_session(word, session, now).map(RevertTarget::Checkpoint),
        }
    }

    /// Returns what a caller asks a revert to take back: the thing that a word names, the work for the `turn`-th last
    /// prompt, or the work in a session. Exactly one of them must be given. Next to `turn:N`, `session` only tells whose
    /// prompt it is.
    pub fn revert_target(
        &self,
        what: Option<&str>,
        turn: Option<u64>,
        session: Option<&str>,
        now: &Zoned,
    ) -> Result<RevertTarget> {
        match (what, turn, session) {
            (Some(what), None, session) if session.is_none() || what.starts_with("turn:") => {
                self.resolve_revert(what, session, now)
            }
            (None, Some(turn), None) => self.prompt_from_the_end(turn).map(RevertTarget::Checkpoint),
            (None, None, Some(session)) => Ok(RevertTarget::Session(session.to_owned())),
            (None, None, None) => {
                Err(Error::Usage("nothing to take back is named: give what, turn or session".to_owned()))
            }
            _ => Err(Error::Usage("what, turn and session each say what to take back: give one of them".to_owned())),
        }
    }

    fn prompt_from_the_end(&self, turn: u64) -> Result<CheckpointId> {
        let unknown = || Error::UnknownCheckpoint { word: format!("prompt {turn} from the end"), nearest: None };
        let position =
            turn.checked_sub(1).ok_or_else(|| Error::Usage("turn is 0, but must be 1 or more".to_owned()))?;
        let turns = self.turns_behind()?;
        usize::try_from(position).ok().and_then(|at| turns.get(at)).map(|prompt| prompt.id).ok_or_else(unknown)
    }
}
