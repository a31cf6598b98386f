//! Finishes an interrupted restore, or takes it back.

use jiff::Timestamp;
use tracing::{info, warn};

use super::{retry_policy::Attempt, stage::Stage};
use crate::{
    error::{Error, Result},
    events::Event,
    model::Conflict,
    spans::{Outcome, operation, phase, write_span},
    store::{FoundJournal, Journal, OpenJournal, Operation, Restored, Writer},
    workspace::Workspace,
};

/// The outcome for an interrupted restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// There was no interrupted restore.
    Nothing,
    /// It was finished.
    Finished,
    /// It was taken back.
    TakenBack,
    /// It can't be carried out here: its journal can't be read, or another directory is at the workspace's path by now.
    /// It was set aside, and the files are as they were found.
    SetAside,
}

impl Recovery {
    /// Returns the word that JSON answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Finished => "finished",
            Self::TakenBack => "taken_back",
            Self::SetAside => "set_aside",
        }
    }
}

/// The recovery of an interrupted restore, with its conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The outcome.
    pub outcome: Recovery,
    /// Paths that were skipped, and why. Bytes that another process wrote in the meantime are kept.
    pub conflicts: Vec<Conflict>,
}

impl Recovered {
    fn without_conflicts(outcome: Recovery) -> Self {
        Self { outcome, conflicts: Vec::new() }
    }
}

/// The maximum number of conflicts that an event names.
const MAX_TOLD: usize = 100;

/// Returns whether the log of operations has the restore.
fn is_noted(writer: &Writer, journal: &Journal) -> Result<bool> {
    Ok(writer.timeline()?.operations.restores().any(|done| done.sequence == journal.sequence))
}

/// The direction in which an interrupted restore is carried to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the tree that it was to restore.
    Forward,
    /// To the tree that was there before it.
    Back,
}

impl Workspace {
    /// Returns whether there is an interrupted restore that is not finished yet.
    pub fn has_interrupted_restore(&self) -> Result<bool> {
        match self.store()? {
            Some(store) => Ok(!matches!(store.journal()?, FoundJournal::Nothing)),
            None => Ok(false),
        }
    }

    /// Finishes an interrupted restore, or takes it back.
    pub fn recover(&self, way: Way, now: Timestamp) -> Result<Recovered> {
        let span = write_span!(self.store_directory(), "recover", outcome, conflicts);
        let recovered = operation(&span, || self.recover_now(way, now))?;
        Outcome::on(&span).word("outcome", recovered.outcome.as_str()).count("conflicts", recovered.conflicts.len());
        Ok(recovered)
    }

    fn recover_now(&self, way: Way, now: Timestamp) -> Result<Recovered> {
        if self.store()?.is_none() {
            return Ok(Recovered::without_conflicts(Recovery::Nothing));
        }
        let ((writer, _), _) = self.lock_store(&now)?;
        writer.mend_indices()?;
        writer.mend_refs()?;
        self.recover_locked(&writer, way, now)
    }

    pub(crate) fn recover_locked(&self, writer: &Writer, way: Way, now: Timestamp) -> Result<Recovered> {
        let journal = match writer.store().journal()? {
            FoundJournal::Nothing => {
                let leftovers = writer.leftover_areas()?;
                // Beside a journal that could not be read, they may hold bytes that another process wrote during the
                // restore.
                if !leftovers.is_empty() && !writer.has_damaged_journal() {
                    self.clear_stage(writer, &leftovers)?;
                }
                return Ok(Recovered::without_conflicts(Recovery::Nothing));
            }
            FoundJournal::Journal(journal) => *journal,
            FoundJournal::Damaged(problem) if way == Way::Forward => {
                return Err(Error::JournalDamaged { store: self.store_directory().to_owned(), problem });
            }
            // It can't be carried out in either direction. Once it is set aside, other commands work again. The safety
            // checkpoint that was published before the first write is the way back, and `verify` goes on reporting the
            // damage.
            FoundJournal::Damaged(_) => {
                writer.set_journal_aside()?;
                return self.tell_recovery(writer, Recovered::without_conflicts(Recovery::SetAside), now);
            }
        };
        if self.is_another_directory(writer)? {
            return self.set_aside(writer, journal.journal(), now);
        }
        // Once it is in the log, only the cleanup is left: taking it back now would contradict the log.
        let is_over = journal.journal().taken_back || is_noted(writer, journal.journal())?;
        let journal = if way == Way::Back && !is_over { self.turn_back(writer, &journal)? } else { journal };
        let outcome = if journal.journal().taken_back { Recovery::TakenBack } else { Recovery::Finished };
        let conflicts = self.run_again(writer, &journal, now)?;
        self.tell_recovery(writer, Recovered { outcome, conflicts }, now)
    }

    fn tell_recovery(&self, writer: &Writer, recovered: Recovered, now: Timestamp) -> Result<Recovered> {
        let outcome = recovered.outcome.as_str();
        info!(name: "recovered", outcome, conflicts = recovered.conflicts.len(), "an interrupted restore was recovered");
        let conflicts = recovered.conflicts.iter().take(MAX_TOLD).cloned().collect();
        self.emit(writer, Event::Recovered { outcome: outcome.into(), conflicts }, now)?;
        Ok(recovered)
    }

    /// Sets the restore of another directory aside, and reports it.
    pub(crate) fn set_aside(&self, writer: &Writer, journal: &Journal, now: Timestamp) -> Result<Recovered> {
        let conflicts = self.abandon(writer, journal, now)?;
        self.tell_recovery(writer, Recovered { outcome: Recovery::SetAside, conflicts }, now)
    }

    /// Gives up a restore whose directory is gone, while another directory is at its path by now. That directory gets
    /// none of the files. Bytes that another process wrote into the old one in the meantime are kept.
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
        self.found()?.identity.write(writer.store().layout())?;
        Ok(conflicts)
    }

    /// Replaces the journal that leads forward with one that leads back.
    fn turn_back(&self, writer: &Writer, journal: &OpenJournal) -> Result<OpenJournal> {
        let journal = journal.journal();
        let steps = journal.steps.iter().map(crate::store::Step::reversed).collect();
        // The last step of the repository is the first one on the way back.
        let git = journal.git.iter().rev().map(crate::store::GitStep::reversed).collect();
        writer.open_journal(Journal { steps, git, taken_back: true, ..journal.clone() })
    }

    fn run_again(&self, writer: &Writer, journal: &OpenJournal, now: Timestamp) -> Result<Vec<Conflict>> {
        let stage = self.open_stage_again(writer, &journal.journal().areas)?;
        let mut conflicts = self.apply_journal(writer, journal, &stage, Attempt::Again, now)?;
        self.finish_journal(writer, journal, &stage, &mut conflicts, now)?;
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(conflicts)
    }

    /// Puts everything back after a step failed, so that the failure changed nothing. What can't be put back now is
    /// left to the next command.
    pub(super) fn take_back_after(
        &self,
        writer: &Writer,
        journal: &OpenJournal,
        error: Error,
        now: Timestamp,
    ) -> Error {
        warn!(name: "restore_taken_back", code = error.code().as_str(), "a step of a restore failed");
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

    /// Keeps bytes that another process wrote in the meantime, logs the restore, and cleans up.
    pub(super) fn finish_journal(
        &self,
        writer: &Writer,
        journal: &OpenJournal,
        stage: &Stage,
        conflicts: &mut Vec<Conflict>,
        now: Timestamp,
    ) -> Result<()> {
        let _phase = phase!("finish");
        let journal = journal.journal();
        self.keep_intruders(writer, journal, stage, conflicts, now)?;
        if !journal.taken_back && !is_noted(writer, journal)? {
            writer.log(&[Operation::Restored(Restored {
                sequence: journal.sequence,
                target: journal.target,
                safety: Some(journal.safety.id()),
                scope: journal.scope.clone(),
                named: journal.named.clone(),
                exact: journal.exact.clone(),
                reverted: journal.reverted.clone(),
                partial: journal.partial,
                adopted: journal.adopted.clone(),
                also_from: journal.also_from.clone(),
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
