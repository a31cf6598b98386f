//! Finishing a restore that was interrupted, or taking it back.

use jiff::Timestamp;

use super::{refused::Attempt, stage::Stage};
use crate::{
    error::{Error, Result},
    events::Event,
    model::Conflict,
    store::{FoundJournal, Journal, Operation, Restored, Writer},
    workspace::Workspace,
};

/// What became of an interrupted restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// There was none.
    Nothing,
    /// It was finished.
    Finished,
    /// It was taken back.
    TakenBack,
    /// It can't be carried out here, as its journal can't be read or another directory has the workspace's path by now:
    /// it was put out of the way, and the files are as they were found.
    SetAside,
}

impl Recovery {
    /// The word of the answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Finished => "finished",
            Self::TakenBack => "taken_back",
            Self::SetAside => "set_aside",
        }
    }
}

/// An interrupted restore, and what somebody else got in the way of when it was finished or taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What became of it.
    pub outcome: Recovery,
    /// What was left, and why; what somebody wrote in the meantime is kept.
    pub conflicts: Vec<Conflict>,
}

impl Recovered {
    fn without_conflicts(outcome: Recovery) -> Self {
        Self { outcome, conflicts: Vec::new() }
    }
}

/// So many conflicts an event names.
const MAX_TOLD: usize = 100;

/// Does the log of operations have it?
fn is_noted(writer: &Writer, journal: &Journal) -> Result<bool> {
    Ok(writer.timeline()?.operations.restores().any(|done| done.sequence == journal.sequence))
}

/// Which way an interrupted restore goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the tree that it was on the way to.
    Forward,
    /// To the tree that was there before it.
    Back,
}

impl Workspace {
    /// Is there a restore that was interrupted and not finished yet?
    pub fn has_interrupted_restore(&self) -> Result<bool> {
        match self.store()? {
            Some(store) => Ok(!matches!(store.journal()?, FoundJournal::Nothing)),
            None => Ok(false),
        }
    }

    /// Finishes a restore that was interrupted, or takes it back.
    pub fn recover(&self, way: Way, now: Timestamp) -> Result<Recovered> {
        if self.store()?.is_none() {
            return Ok(Recovered::without_conflicts(Recovery::Nothing));
        }
        let (writer, _) = self.writer_as_it_is(now)?;
        writer.mend_indices()?;
        writer.mend_refs()?;
        self.recover_locked(&writer, way, now)
    }

    pub(crate) fn recover_locked(&self, writer: &Writer, way: Way, now: Timestamp) -> Result<Recovered> {
        let journal = match writer.journal()? {
            FoundJournal::Nothing => {
                let leftovers = writer.leftover_areas()?;
                // Beside a journal that could not be read they may hold what somebody wrote during the restore.
                if !leftovers.is_empty() && !writer.has_damaged_journal() {
                    self.clear_stage(writer, &leftovers)?;
                }
                return Ok(Recovered::without_conflicts(Recovery::Nothing));
            }
            FoundJournal::Journal(journal) => *journal,
            FoundJournal::Damaged(problem) if way == Way::Forward => {
                return Err(Error::JournalDamaged { store: self.store_directory().to_owned(), problem });
            }
            // It can't be carried out either way. Out of the way it lets other commands work; the safety checkpoint that
            // was published before the first write is the way back, and `verify` goes on naming the damage.
            FoundJournal::Damaged(_) => {
                writer.set_journal_aside()?;
                return self.tell_recovery(writer, Recovered::without_conflicts(Recovery::SetAside), now);
            }
        };
        if self.is_another_directory(writer)? {
            return self.set_aside(writer, &journal, now);
        }
        // Once it is in the log it is done but for the cleaning up: taking it back now would contradict the log.
        let is_over = journal.taken_back || is_noted(writer, &journal)?;
        let journal = if way == Way::Back && !is_over { self.turn_back(writer, journal)? } else { journal };
        let outcome = if journal.taken_back { Recovery::TakenBack } else { Recovery::Finished };
        let conflicts = self.run_again(writer, &journal, now)?;
        self.tell_recovery(writer, Recovered { outcome, conflicts }, now)
    }

    fn tell_recovery(&self, writer: &Writer, recovered: Recovered, now: Timestamp) -> Result<Recovered> {
        let conflicts = recovered.conflicts.iter().take(MAX_TOLD).cloned().collect();
        self.emit(writer, Event::Recovered { outcome: recovered.outcome.as_str().into(), conflicts }, now)?;
        Ok(recovered)
    }

    /// Puts a restore of another directory out of the way, and tells of it.
    pub(crate) fn set_aside(&self, writer: &Writer, journal: &Journal, now: Timestamp) -> Result<Recovered> {
        let conflicts = self.abandon(writer, journal, now)?;
        self.tell_recovery(writer, Recovered { outcome: Recovery::SetAside, conflicts }, now)
    }

    /// The directory that was being restored is gone, and another has its path by now: it gets none of those files. What
    /// somebody wrote into the old one meanwhile is kept.
    fn abandon(&self, writer: &Writer, journal: &Journal, now: Timestamp) -> Result<Vec<Conflict>> {
        let mut conflicts = Vec::new();
        let mut areas = journal.areas.clone();
        if let Ok(stage) = self.open_stage_again(writer, &journal.areas) {
            self.keep_intruders(writer, journal, &stage, &mut conflicts, now)?;
            let (opened, unopened) = stage.opened_and_not();
            conflicts.extend(self.leave_unopened(writer, &unopened)?);
            areas = opened;
        }
        writer.close_journal()?;
        self.clear_stage(writer, &areas)?;
        self.found()?.identity.write(writer.layout())?;
        Ok(conflicts)
    }

    /// Writes the journal that leads back, in place of the one that led forward.
    fn turn_back(&self, writer: &Writer, journal: Journal) -> Result<Journal> {
        let steps = journal.steps.iter().map(crate::store::Step::reversed).collect();
        // The last step of the repository's is the first one back.
        let git = journal.git.iter().rev().map(crate::store::GitStep::reversed).collect();
        let back = Journal { steps, git, taken_back: true, ..journal };
        writer.open_journal(&back)?;
        Ok(back)
    }

    fn run_again(&self, writer: &Writer, journal: &Journal, now: Timestamp) -> Result<Vec<Conflict>> {
        let stage = self.open_stage_again(writer, &journal.areas)?;
        let mut conflicts = self.apply_journal(writer, journal, &stage, Attempt::Again, now)?;
        self.finish_journal(writer, journal, &stage, &mut conflicts, now)?;
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(conflicts)
    }

    /// A step failed: puts everything back, so that the failure changed nothing. What can't be put back now is left to
    /// the next command.
    pub(super) fn take_back_after(&self, writer: &Writer, journal: Journal, error: Error, now: Timestamp) -> Error {
        let back = self.turn_back(writer, journal).and_then(|journal| self.run_again(writer, &journal, now));
        match back {
            Ok(conflicts) if conflicts.is_empty() => error,
            Ok(conflicts) => {
                let recovered = Recovered { outcome: Recovery::TakenBack, conflicts };
                drop(self.tell_recovery(writer, recovered, now));
                error
            }
            Err(_) => Error::Unfinished { source: Box::new(error) },
        }
    }

    /// Keeps what somebody wrote in between, notes what was done, and cleans up behind itself.
    pub(super) fn finish_journal(
        &self,
        writer: &Writer,
        journal: &Journal,
        stage: &Stage,
        conflicts: &mut Vec<Conflict>,
        now: Timestamp,
    ) -> Result<()> {
        self.keep_intruders(writer, journal, stage, conflicts, now)?;
        if !journal.taken_back && !is_noted(writer, journal)? {
            writer.log(&[Operation::Restored(Restored {
                sequence: journal.sequence,
                target: journal.target,
                safety: Some(journal.safety),
                scope: journal.scope.clone(),
                named: journal.named.clone(),
                before: journal.before,
                after: journal.after,
                direction: journal.direction,
            })])?;
        }
        let (opened, unopened) = stage.opened_and_not();
        conflicts.extend(self.leave_unopened(writer, &unopened)?);
        writer.close_journal()?;
        self.clear_stage(writer, &opened)
    }
}
