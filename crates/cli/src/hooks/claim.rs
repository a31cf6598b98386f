//! Takes an event on, in its turn, and remembers what came of it.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use backtrail::ListFilter;

use super::{
    event::{HookEvent, Moment},
    news::Told,
    session::{Novelty, SessionState},
    worker::{Done, Worker, cut},
};
use crate::{failure::Failure, invocation::Invocation};

/// So much of its time a process keeps for itself, should those before it never come to an end.
const LAST_RESORT: Duration = Duration::from_secs(60);

/// What is known once an event is taken on.
pub(super) struct Assignment {
    /// The workspace in which the session began.
    pub(super) root: PathBuf,
    /// The workspace inside of it in which the event took place, where there is one.
    pub(super) inner: Option<PathBuf>,
    /// The session that the event counts for.
    pub(super) session: String,
    /// Tells the event from others.
    pub(super) key: u64,
    /// Is it perhaps the one before, told again? It then counts only where something changed in between.
    pub(super) is_perhaps_known: bool,
    pub(super) turn: u64,
    pub(super) prompt: Option<String>,
    /// How far the agent was told about restores.
    pub(super) told: Told,
}

/// What comes of an attempt to take an event on.
enum Claim {
    /// It is this process's to do.
    Taken(Assignment),
    /// It was done already.
    Known,
    /// Others came first.
    NotYet,
}

impl Worker<'_> {
    /// Claims an event, once all that came before it in its session are done; none where it was done already.
    pub(super) fn take_on(&self, event: &HookEvent, session: &str, key: u64) -> Result<Option<Assignment>, Failure> {
        loop {
            self.wait_for_turn(event, session);
            let known = self.sessions.get(session);
            let root = self.root(event, known.as_ref())?;
            // Without a memory, the store knows how many prompts there were.
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
                    return Ok(Some(Assignment { inner, ..assignment }));
                }
                Claim::Known => return Ok(None),
                Claim::NotYet => {}
            }
        }
    }

    /// Is there still time to let others go first? A checkpoint out of its turn is better than none.
    fn is_patient(&self) -> bool {
        self.deadline.saturating_duration_since(Instant::now()) > LAST_RESORT
    }

    /// Returns when nobody's turn comes before ours, or nobody can be waited for any longer.
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
            // Another workspace has other events.
            state.told_event = None;
        }
        state.root = root.to_owned();
        state.is_over = event.moment == Moment::SessionEnd;
        state.transcript = event.transcript.clone().or(state.transcript.take());
        state.process = self.agent_process.or(state.process);
        let mut turn = state.turn;
        if let Moment::Prompt(text) = &event.moment {
            state.prompt = Some(cut(text));
            if state.unsaved_prompt != Some(key) {
                turn += 1;
            }
            if novelty == Novelty::New {
                state.turn = turn;
                state.unsaved_prompt = Some(key);
            }
        }
        Claim::Taken(Assignment {
            root: root.to_owned(),
            inner: None,
            session: state.session.clone(),
            key,
            is_perhaps_known: novelty == Novelty::PerhapsKnown,
            turn,
            prompt: state.prompt.clone(),
            told: Told { event: state.told_event, time: *state.told.get_or_insert(self.arrived) },
        })
    }

    /// The workspace that an event is about.
    fn root(&self, event: &HookEvent, known: Option<&SessionState>) -> Result<PathBuf, Failure> {
        let root = match (&event.moment, known) {
            (Moment::SessionStart { source }, Some(known)) if source.as_deref() == Some("compact") => {
                Some(known.root.clone())
            }
            // A session that goes on somewhere else has another workspace from then on.
            (Moment::SessionStart { .. }, _) => None,
            (_, known) => known.map(|known| known.root.clone()),
        };
        match root.filter(|root| root.is_dir()) {
            Some(root) => Ok(root),
            // Of a session that is known, it was moved, perhaps to where the agent stands now.
            None => self.root_around(event),
        }
    }

    /// The workspace around the directory in which the agent stands, where it lies inside that of the session.
    fn inner(&self, event: &HookEvent, root: &Path) -> Option<PathBuf> {
        let stands_in_root = event.directory.as_ref().is_none_or(|directory| directory == root);
        let around = if stands_in_root { None } else { self.root_around(event).ok() };
        around.filter(|inner| inner != root && inner.starts_with(root))
    }

    /// The workspace around the directory in which the agent stands.
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
        newest.and_then(|checkpoint| checkpoint.turn).unwrap_or(0)
    }

    pub(super) fn remember_success(&self, event: &HookEvent, assignment: &Assignment, done: &Done, has_arrived: bool) {
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
                if has_arrived && matches!(event.moment, Moment::Prompt(_)) {
                    state.told = Some(self.arrived);
                }
                state
            });
            (changed, ())
        };
        // Where it can't be remembered, that was told when the event was taken on.
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

    /// A session that can't be remembered costs the memory alone: the checkpoint is taken all the same.
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

/// Tells events apart: by what the agent says, else by all that it says.
pub(super) fn event_key(event: &HookEvent, payload_hash: u64) -> u64 {
    match &event.identity {
        Some(identity) => xxhash_rust::xxh3::xxh3_64(format!("{} {identity}", event.moment.word()).as_bytes()),
        None => payload_hash,
    }
}
