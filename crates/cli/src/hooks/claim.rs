//! Claims an event when its turn comes, and stores the result in the session.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use backtrail::ListFilter;

use super::{
    event::{HookEvent, Moment},
    restore_notice::Told,
    session::{Novelty, SessionState},
    transcripts,
    worker::{Done, Worker, cut},
};
use crate::{failure::Failure, invocation::Invocation};

/// Time reserved for this process in case earlier ones hang.
const LAST_RESORT: Duration = Duration::from_secs(60);

/// The event that this process has claimed.
pub(super) struct ClaimedEvent {
    /// The workspace in which the session started.
    pub(super) root: PathBuf,
    /// The nested workspace in which the event took place, if there is one.
    pub(super) inner: Option<PathBuf>,
    /// The session that the event counts for.
    pub(super) session: String,
    /// Identifies the event.
    pub(super) key: u64,
    /// Set if this may be a duplicate of the previous event. Then it only counts if files changed in between.
    pub(super) may_be_duplicate: bool,
    pub(super) turn: u64,
    pub(super) prompt: Option<String>,
    /// Set if this is a prompt that no person typed.
    pub(super) is_own_prompt: bool,
    /// The position up to which the agent was informed about restores.
    pub(super) told: Told,
}

/// The result of an attempt to claim an event.
enum Claim {
    /// This process handles the event.
    Taken(ClaimedEvent),
    /// The event was handled already.
    Known,
    /// Other processes are ahead in the queue.
    NotYet,
}

impl Worker<'_> {
    /// Claims an event once all earlier events of its session are done. Returns `None` if it was handled already.
    pub(super) fn take_on(&self, event: &HookEvent, session: &str, key: u64) -> Result<Option<ClaimedEvent>, Failure> {
        loop {
            self.wait_for_turn(event, session);
            let known = self.sessions.get(session);
            let root = self.root(event, known.as_ref())?;
            // If the session's file is missing, the store still has the number of prompts.
            let turns_before = match &known {
                Some(known) => known.turn,
                None => self.turns_in_store(&root, session),
            };
            let fresh = || {
                let state = SessionState::new(session, event.agent.name(), root.clone(), self.arrived);
                SessionState { turn: turns_before, ..state }
            };
            let claim = |known: Option<SessionState>| {
                let mut state = known.unwrap_or_else(fresh);
                let dead = state.bury();
                let claim = self.claim(event, key, &root, &mut state);
                (Some(state), (claim, dead))
            };
            let (claim, dead) = self.sessions.change(session, claim).unwrap_or_else(|source| {
                self.tell_of_lost_memory(source);
                let mut state = known.clone().unwrap_or_else(fresh);
                state.queue.clear();
                (self.claim(event, key, &root, &mut state), Vec::new())
            });
            dead.iter().for_each(|problem| (self.problem)(&format!("no checkpoint was taken: {problem}")));
            match claim {
                Claim::Taken(assignment) => {
                    let inner = self.inner(event, &assignment.root);
                    return Ok(Some(ClaimedEvent { inner, ..assignment }));
                }
                Claim::Known => return Ok(None),
                Claim::NotYet => {}
            }
        }
    }

    /// Returns whether there is time left to wait for earlier processes. A checkpoint out of order is better than none.
    fn is_patient(&self) -> bool {
        self.deadline.saturating_duration_since(Instant::now()) > LAST_RESORT
    }

    /// Waits until no running process is ahead of this one, or until the time for waiting is over.
    fn wait_for_turn(&self, event: &HookEvent, session: &str) {
        let Some(own) = self.own_process else { return };
        let others = || self.sessions.get(session).filter(|state| state.has_others_before(own));
        if others().is_none() {
            return;
        }
        let queue_up = |known: Option<SessionState>| {
            let changed = known.map(|mut state| {
                state.queue_up(own, event.moment.word());
                state
            });
            (changed, ())
        };
        drop(self.sessions.change(session, queue_up));
        let mut pause = Duration::from_millis(1);
        while self.is_patient() && others().is_some() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn claim(&self, event: &HookEvent, key: u64, root: &Path, state: &mut SessionState) -> Claim {
        if let Some(own) = self.own_process {
            state.queue_up(own, event.moment.word());
            if self.is_patient() && state.has_others_before(own) {
                return Claim::NotYet;
            }
        }
        let novelty = state.hear(key, event.identity.is_some(), self.arrived);
        if novelty == Novelty::Known {
            self.own_process.into_iter().for_each(|own| state.leave_queue(own));
            return Claim::Known;
        }
        if state.root != root {
            // Event marks of one workspace mean nothing in another.
            state.told_event = None;
        }
        state.root = root.to_owned();
        state.is_over = event.moment == Moment::SessionEnd;
        state.transcript = transcripts::of_event(event, self.environment).or(state.transcript.take());
        state.process = self.agent_process.or(state.process);
        let is_own_prompt = state.is_own_prompt(event);
        let names_fresh_prompt = state.is_prompt_fresh && state.prompt.as_deref() == Some("");
        state.is_prompt_fresh = matches!(event.moment, Moment::Prompt(_));
        if is_own_prompt || !matches!(event.moment, Moment::Prompt(_)) {
            state.note_prompt(event);
            let (turn, prompt) = state.prompt_of(event);
            return Claim::Taken(self.claimed(state, root, key, novelty, (turn, prompt), is_own_prompt));
        }
        let mut turn = state.turn;
        if let Moment::Prompt(text) = &event.moment {
            state.prompt = Some(cut(text));
            if state.unsaved_prompt != Some(key) && !names_fresh_prompt {
                turn += 1;
            }
            if novelty == Novelty::New {
                state.turn = turn;
                state.unsaved_prompt = Some(key);
            }
        }
        state.note_prompt(event);
        let prompt = state.prompt.clone();
        Claim::Taken(self.claimed(state, root, key, novelty, (turn, prompt), false))
    }

    fn claimed(
        &self,
        state: &mut SessionState,
        root: &Path,
        key: u64,
        novelty: Novelty,
        (turn, prompt): (u64, Option<String>),
        is_own_prompt: bool,
    ) -> ClaimedEvent {
        ClaimedEvent {
            root: root.to_owned(),
            inner: None,
            session: state.session.clone(),
            key,
            may_be_duplicate: novelty == Novelty::PossiblyKnown,
            turn,
            prompt,
            is_own_prompt,
            told: Told { event: state.told_event, time: *state.told.get_or_insert(self.arrived) },
        }
    }

    /// Returns the workspace that an event belongs to.
    fn root(&self, event: &HookEvent, known: Option<&SessionState>) -> Result<PathBuf, Failure> {
        let root = match (&event.moment, known) {
            (Moment::SessionStart { source }, Some(known)) if source.as_deref() == Some("compact") => {
                Some(known.root.clone())
            }
            // A session that resumes in another directory gets that directory's workspace from then on.
            (Moment::SessionStart { .. }, _) => None,
            (_, known) => known.map(|known| known.root.clone()),
        };
        match root.filter(|root| root.is_dir()) {
            Some(root) => Ok(root),
            // If the session is known, its workspace was moved, possibly to the agent's current directory.
            None => self.root_around(event),
        }
    }

    /// Returns the workspace around the agent's current directory if it is nested in the session's workspace.
    fn inner(&self, event: &HookEvent, root: &Path) -> Option<PathBuf> {
        let stands_in_root = event.directory.as_ref().is_none_or(|directory| directory == root);
        let around = if stands_in_root { None } else { self.root_around(event).ok() };
        around.filter(|inner| inner != root && inner.starts_with(root))
    }

    /// Returns the workspace around the agent's current directory.
    fn root_around(&self, event: &HookEvent) -> Result<PathBuf, Failure> {
        let directory = match &event.directory {
            Some(directory) => directory.clone(),
            None => self.environment.current_directory()?.to_owned(),
        };
        if !directory.is_dir() {
            return Err(backtrail::Error::NotADirectory { path: directory }.into());
        }
        let around = Invocation::new(self.options(None), self.environment.clone().standing_in(directory));
        Ok(around.survey()?.location.root)
    }

    fn turns_in_store(&self, root: &Path, session: &str) -> u64 {
        let Ok(workspace) = self.invocation(root).workspace() else { return 0 };
        let filter =
            ListFilter { session: Some(session.to_owned()), limit: Some(1), turns: true, ..ListFilter::default() };
        let newest = workspace.list(&filter).ok().and_then(|found| found.into_iter().next());
        newest.and_then(|checkpoint| checkpoint.origin.turn).unwrap_or(0)
    }

    pub(super) fn remember_success(
        &self,
        event: &HookEvent,
        assignment: &ClaimedEvent,
        done: &Done,
        has_arrived: bool,
    ) {
        let change = |known: Option<SessionState>| {
            let changed = known.map(|mut state| {
                self.own_process.into_iter().for_each(|own| state.leave_queue(own));
                state.note_done(assignment.key);
                state.problem = None;
                state.unsaved_prompt = None;
                if done.created {
                    state.turn = state.turn.max(assignment.turn);
                }
                if has_arrived {
                    state.told_event = done.news.last.or(state.told_event);
                }
                if has_arrived && done.news.last.is_some() && matches!(event.moment, Moment::Prompt(_)) {
                    state.told = Some(self.arrived);
                }
                state
            });
            (changed, ())
        };
        // A session file that can't be written was reported when the event was claimed.
        drop(self.sessions.change(&assignment.session, change));
    }

    pub(super) fn remember_failure(&self, session: &str, failure: &Failure) {
        let change = |known: Option<SessionState>| {
            let changed = known.map(|mut state| {
                self.own_process.into_iter().for_each(|own| state.leave_queue(own));
                state.problem = Some(failure.message());
                state
            });
            (changed, ())
        };
        drop(self.sessions.change(session, change));
    }

    /// Reports that the session's file can't be written. The checkpoint is taken nevertheless.
    fn tell_of_lost_memory(&self, source: io::Error) {
        let failure = Failure::from(backtrail::Error::Io { action: "remember", path: "the session".into(), source });
        (self.problem)(&failure.message());
    }

    pub(super) fn remember_subagent(&self, event: &HookEvent, subagent: &str, session: &str) {
        if subagent == session {
            return;
        }
        let Some(root) = event.directory.clone() else { return };
        let change = |known: Option<SessionState>| {
            let state = known.unwrap_or_else(|| SessionState::new(subagent, event.agent.name(), root, self.arrived));
            (Some(SessionState { parent: Some(session.to_owned()), ..state }), ())
        };
        self.sessions.change(subagent, change).unwrap_or_else(|source| self.tell_of_lost_memory(source));
    }
}

/// Returns the key that identifies an event: the hash of its identity, or of the whole payload if the agent sends no
/// identity.
pub(super) fn event_key(event: &HookEvent, payload_hash: u64) -> u64 {
    match &event.identity {
        Some(identity) => xxhash_rust::xxh3::xxh3_64(format!("{} {identity}", event.moment.word()).as_bytes()),
        None => payload_hash,
    }
}
