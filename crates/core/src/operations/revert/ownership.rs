//! Tells whose change a path is, if several sessions worked at the same time.

use std::sync::Arc;

use crate::{
    model::{Author, CallBeside, WorkspacePath},
    store::{Record, TimelineEntry},
};

/// The session, or the prompt of a session, whose work is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    session: Option<String>,
    /// `None` for all prompts.
    turn: Option<u64>,
}

impl Wanted {
    pub(super) fn session(session: &str) -> Self {
        Self { session: Some(session.to_owned()), turn: None }
    }

    /// Returns the prompt that a checkpoint was taken for. Returns `None` if it has no number.
    pub(super) fn turn_of(entry: &TimelineEntry) -> Option<Self> {
        let record = entry.record()?;
        record.origin.turn.map(|turn| Self { session: record.origin.session.clone(), turn: Some(turn) })
    }

    fn fits(&self, session: Option<&str>, turn: Option<u64>) -> bool {
        self.session.as_deref() == session && (self.turn.is_none() || self.turn == turn)
    }

    fn is_author_of(&self, record: &Record) -> bool {
        let is_agents = record.author() == Some(Author::Agent) || record.is_of_wrapped_agent();
        is_agents && self.fits(record.origin.session.as_deref(), record.origin.turn)
    }

    fn is_beside(&self, call: &CallBeside) -> bool {
        self.fits(call.session.as_deref(), call.turn)
    }

    /// Returns whether a checkpoint may hold some of the work.
    pub(super) fn has_part_in(&self, record: &Record) -> bool {
        self.is_author_of(record) || record.beside.iter().any(|call| self.is_beside(call))
    }
}

/// The owner of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The work that is taken back.
    Wanted,
    /// Other work.
    Foreign,
    /// Several sessions may have made the change.
    Shared,
}

/// A checkpoint that was taken while calls of several sessions were running.
pub(super) struct SharedCheckpoint {
    record: Arc<Record>,
    wanted: Wanted,
}

impl SharedCheckpoint {
    /// Returns `None` if no call of another session was running: then the whole checkpoint is one session's work.
    pub(super) fn of(entry: &TimelineEntry, wanted: &Wanted) -> Option<Self> {
        let record = entry.record().filter(|record| !record.beside.is_empty())?;
        Some(Self { record, wanted: wanted.clone() })
    }

    /// Returns the owner of the change at a path. A path that a call names belongs to that call.
    pub(super) fn owner_of(&self, path: &WorkspacePath) -> Ownership {
        let Self { record, wanted } = self;
        let names = |paths: &[WorkspacePath]| paths.iter().any(|named| path.is_within(named));
        let is_agents = record.author() == Some(Author::Agent);
        let is_own = is_agents && names(&record.named);
        let others: Vec<&CallBeside> = record.beside.iter().filter(|call| names(&call.paths)).collect();
        let owned = |is_wanted: bool| if is_wanted { Ownership::Wanted } else { Ownership::Foreign };
        match (is_own, others.as_slice()) {
            (true, []) => owned(wanted.is_author_of(record)),
            (false, [only]) => owned(wanted.is_beside(only)),
            // No call names it. If only one call was running, that call made the change.
            (false, []) => match record.beside.as_slice() {
                [only] if !is_agents => owned(wanted.is_beside(only)),
                _ => Ownership::Shared,
            },
            _ => Ownership::Shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Kind, Origin};

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::new(text).unwrap()
    }

    fn claim(author: Author, wanted: &str) -> SharedCheckpoint {
        let mut record = Record::new(1, Kind::Step, Timestamp::UNIX_EPOCH, String::new());
        record.origin = Origin { session: Some("one".into()), author: Some(author), ..Origin::default() };
        record.named = vec![path("a"), path("both")];
        let paths = vec![path("b"), path("both")];
        record.beside = vec![CallBeside { session: Some("two".into()), turn: None, paths }];
        SharedCheckpoint { record: Arc::new(record), wanted: Wanted::session(wanted) }
    }

    #[test]
    fn a_path_belongs_to_the_call_that_names_it() {
        let owners =
            |wanted: &str| ["a", "b", "both", "c"].map(|name| claim(Author::Agent, wanted).owner_of(&path(name)));
        use Ownership::{Foreign, Shared, Wanted};
        assert_eq!(owners("one"), [Wanted, Foreign, Shared, Shared]);
        assert_eq!(owners("two"), [Foreign, Wanted, Shared, Shared]);
    }

    #[test]
    fn changes_before_a_call_belong_to_the_only_call_that_was_running() {
        assert_eq!(claim(Author::Other, "two").owner_of(&path("c")), Ownership::Wanted);
        assert_eq!(claim(Author::Other, "one").owner_of(&path("c")), Ownership::Foreign);
    }
}
