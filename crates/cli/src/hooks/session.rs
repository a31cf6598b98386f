//! The state of an agent's session that is kept between hooks.
//!
//! Each session has a small file. One lock guards changes to all of them, so that hooks of the same session may run at
//! once. If a file is lost or damaged, only this state is lost: the store still has the session's checkpoints.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use backtrail::app_files;
use jiff::{SignedDuration, Timestamp};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{event::HookEvent, own_prompts::KnownPrompt, queue::InQueue, restore_notice::EventMark};

/// The maximum number of events that are remembered.
const MAX_SEEN: usize = 256;

/// The maximum number of sessions that are remembered. The most recently active ones are kept.
const MAX_SESSIONS: usize = 200;

/// An event without an identity counts as a duplicate of the previous one if it arrives within this time.
const SAME_EVENT: SignedDuration = SignedDuration::from_secs(5);

/// The stored state of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    pub(crate) session: String,
    pub(crate) agent: String,
    /// The workspace, fixed when the session started.
    pub(crate) root: PathBuf,
    /// The number of the last prompt.
    pub(crate) turn: u64,
    /// The last prompt, for the steps that follow it.
    pub(crate) prompt: Option<String>,
    /// The session that this one belongs to. Set if this is the session of a subagent.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// The file in which the agent stores the conversation.
    #[serde(default)]
    pub(crate) transcript: Option<PathBuf>,
    /// The time up to which the agent was informed about restores.
    #[serde(default)]
    pub(crate) told: Option<Timestamp>,
    /// The last event that the agent was informed about, or the last one before the session started.
    #[serde(default)]
    pub(crate) told_event: Option<EventMark>,
    /// The agent's process.
    #[serde(default)]
    pub(crate) process: Option<ProcessMark>,
    /// The time of the last event.
    pub(crate) heard: Timestamp,
    /// Set if the session has ended.
    #[serde(default)]
    pub(crate) is_over: bool,
    /// The reason why the last event got no checkpoint. `None` if it got one.
    #[serde(default)]
    pub(crate) problem: Option<String>,
    /// The processes that work on the session's events or wait for their turn, in the order of arrival.
    #[serde(default)]
    pub(super) queue: Vec<InQueue>,
    /// The key of the last prompt while it has no checkpoint. If the prompt arrives again, it is the same one.
    #[serde(default)]
    pub(super) unsaved_prompt: Option<u64>,
    /// Set if nothing has happened since the last prompt.
    #[serde(default)]
    pub(super) is_prompt_fresh: bool,
    /// The last prompts whose ids are known.
    #[serde(default)]
    pub(super) prompts: Vec<KnownPrompt>,
    /// Background tasks, with the prompts that started them.
    #[serde(default)]
    pub(super) tasks: Vec<KnownPrompt>,
    /// The keys of events that were handled.
    pub(super) seen: Vec<u64>,
}

/// Tells whether an event was received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Novelty {
    New,
    /// The previous event had the same payload, and there is no identity that tells them apart.
    PossiblyKnown,
    Known,
}

impl SessionState {
    pub(crate) fn new(session: &str, agent: &str, root: PathBuf, now: Timestamp) -> Self {
        Self {
            session: session.to_owned(),
            agent: agent.to_owned(),
            root,
            turn: 0,
            prompt: None,
            parent: None,
            transcript: None,
            told: None,
            told_event: None,
            process: None,
            heard: now,
            is_over: false,
            problem: None,
            queue: Vec::new(),
            unsaved_prompt: None,
            is_prompt_fresh: false,
            prompts: Vec::new(),
            tasks: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Registers an event. Returns whether it is new.
    pub(crate) fn hear(&mut self, event: u64, has_identity: bool, now: Timestamp) -> Novelty {
        let since = now.duration_since(self.heard);
        self.heard = now;
        match has_identity {
            true if self.seen.contains(&event) => Novelty::Known,
            false if self.seen.last() == Some(&event) && since < SAME_EVENT => Novelty::PossiblyKnown,
            _ => Novelty::New,
        }
    }

    /// Marks an event as handled.
    pub(crate) fn note_done(&mut self, event: u64) {
        if self.seen.last() == Some(&event) {
            return;
        }
        self.seen.push(event);
        let surplus = self.seen.len().saturating_sub(MAX_SEEN);
        self.seen.drain(..surplus);
    }
}

/// The directory with a file for each session.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    directory: PathBuf,
}

impl Sessions {
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn file(&self, session: &str) -> PathBuf {
        // The agent chooses the session id, so it can't be used as a file name.
        self.directory.join(format!("{:032x}.json", xxhash_rust::xxh3::xxh3_128(session.as_bytes())))
    }

    /// Returns the state of a session. Returns `None` if it has no readable file.
    pub(crate) fn get(&self, session: &str) -> Option<SessionState> {
        let state: SessionState = serde_json::from_slice(&fs::read(self.file(session)).ok()?).ok()?;
        (state.session == session).then_some(state)
    }

    /// Returns the session that an event counts for. Events of subagents count for the session that started them.
    pub(super) fn that_counts(&self, event: &HookEvent) -> String {
        let mut session = event.parent.clone().unwrap_or_else(|| event.session.clone());
        for _ in 0..16 {
            match self.get(&session).and_then(|state| state.parent) {
                Some(parent) if parent != session => session = parent,
                _ => break,
            }
        }
        session
    }

    /// Returns all sessions, the most recent first.
    pub(crate) fn all(&self) -> Vec<SessionState> {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|file| file.path());
        let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
        let read = files.filter_map(|file| serde_json::from_slice(&fs::read(file).ok()?).ok());
        let mut states: Vec<SessionState> = read.collect();
        states.sort_by_key(|state| std::cmp::Reverse(state.heard));
        states
    }

    /// Changes the state of a session while holding the lock.
    pub(crate) fn change<T>(
        &self,
        session: &str,
        change: impl FnOnce(Option<SessionState>) -> (Option<SessionState>, T),
    ) -> io::Result<T> {
        app_files::make_private_directories(&self.directory)?;
        let _lock = self.lock()?;
        let (state, answer) = change(self.get(session));
        if let Some(state) = state {
            self.put(&state)?;
        }
        Ok(answer)
    }

    fn lock(&self) -> io::Result<File> {
        let file = app_files::open_lock(&self.directory.join("lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn put(&self, state: &SessionState) -> io::Result<()> {
        let path = self.file(&state.session);
        let is_new = !path.exists();
        app_files::replace(&path, &serde_json::to_vec(state)?)?;
        if is_new { self.forget_old_ones() } else { Ok(()) }
    }

    fn forget_old_ones(&self) -> io::Result<()> {
        let mut files: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.directory)?.flatten() {
            if entry.path().extension().is_some_and(|extension| extension != "json") || entry.file_name() == "lock" {
                continue;
            }
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
        files.sort();
        let surplus = files.len().saturating_sub(MAX_SESSIONS);
        for (_, path) in files.into_iter().take(surplus) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// Returns whether this process is running.
pub(crate) fn is_running(process: u32) -> bool {
    ProcessMark::of(process).is_some()
}

/// Identifies a process, even after its id was reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessMark {
    id: u32,
    /// The start time, in clock ticks since boot.
    started: u64,
}

/// The relevant fields of `/proc/<pid>/stat`.
struct ProcessStat {
    name: String,
    /// Set if the process has ended, even if its parent has not reaped it yet.
    is_over: bool,
    parent: u32,
    started: u64,
}

impl ProcessStat {
    fn read(process: u32) -> Option<Self> {
        let text = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
        // The name is in parentheses and may contain any character.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            name: name.to_owned(),
            is_over: fields.first().is_some_and(|state| ["Z", "X"].contains(state)),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

impl ProcessMark {
    /// Returns this process. Returns `None` if `/proc` belongs to another pid namespace, as in some containers: our id
    /// would mean another process there.
    pub(super) fn own() -> Option<Self> {
        let id = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
        Self::of(id)
    }

    /// Returns the process with this id if it is running.
    pub(super) fn of(id: u32) -> Option<Self> {
        ProcessStat::read(id).filter(|stat| !stat.is_over).map(|stat| Self { id, started: stat.started })
    }

    pub(super) fn id(self) -> u32 {
        self.id
    }

    /// Returns the agent that started this process. Shells in between are skipped.
    pub(crate) fn of_agent() -> Option<Self> {
        let shells = ["sh", "bash", "dash", "zsh", "fish", "ash", "ksh"];
        let mut id = std::os::unix::process::parent_id();
        for _ in 0..8 {
            let stat = ProcessStat::read(id)?;
            if !shells.contains(&stat.name.as_str()) {
                return Some(Self { id, started: stat.started });
            }
            id = stat.parent;
        }
        None
    }

    /// Formats the mark as text for another process. [`from_word`](Self::from_word) parses it.
    pub(crate) fn to_word(self) -> String {
        format!("{}-{}", self.id, self.started)
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let (id, started) = word.split_once('-')?;
        Some(Self { id: id.parse().ok()?, started: started.parse().ok()? })
    }

    pub(super) fn is_running(self) -> bool {
        Self::of(self.id) == Some(self)
    }
}

impl SessionState {
    /// Returns whether the agent is still running in this session.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_over && self.process.is_some_and(ProcessMark::is_running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn an_event_is_new_only_once() {
        let mut state = SessionState::new("s", "claude", "/w".into(), at(0));
        let mut done = |event, has_identity, now| {
            let novelty = state.hear(event, has_identity, now);
            state.note_done(event);
            novelty
        };
        assert_eq!(done(1, true, at(1)), Novelty::New);
        assert_eq!(done(2, true, at(2)), Novelty::New);
        assert_eq!(done(1, true, at(100)), Novelty::Known, "an event with an identity stays known");
        assert_eq!(done(7, false, at(101)), Novelty::New);
        assert_eq!(done(7, false, at(102)), Novelty::PossiblyKnown, "repeated at once");
        assert_eq!(done(7, false, at(200)), Novelty::New, "repeated later");
        assert_eq!(done(8, false, at(201)), Novelty::New);
        assert_eq!(done(7, false, at(202)), Novelty::New, "another event in between");
        assert!((10..1_000).all(|event| done(event, true, at(300)) == Novelty::New));
        assert_eq!(state.hear(2_000, true, at(301)), Novelty::New);
        assert_eq!(state.hear(2_000, true, at(302)), Novelty::New, "the event was not handled");
        assert_eq!(state.seen.len(), MAX_SEEN);
    }

    #[test]
    fn sessions_are_separate_and_their_number_is_limited() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::in_directory(place.path().join("sessions"));
        for number in 0..MAX_SESSIONS + 20 {
            let session = format!("../{number}");
            let change = |known: Option<SessionState>| {
                assert_eq!(known, None);
                (Some(SessionState::new(&session, "codex", "/w".into(), at(number as i64))), ())
            };
            sessions.change(&session, change).unwrap();
        }
        assert_eq!(sessions.all().len(), MAX_SESSIONS);
        assert_eq!(sessions.get("../219").map(|state| state.heard), Some(at(219)));
        fs::write(sessions.file("../219"), b"{").unwrap();
        assert_eq!(sessions.get("../219"), None);
    }

    #[test]
    fn concurrent_hooks_count_every_prompt() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::in_directory(place.path().into());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let count = |known: Option<SessionState>| {
                            let mut state =
                                known.unwrap_or_else(|| SessionState::new("s", "claude", "/w".into(), at(0)));
                            state.turn += 1;
                            (Some(state), ())
                        };
                        sessions.change("s", count).unwrap();
                    }
                });
            }
        });
        assert_eq!(sessions.get("s").unwrap().turn, 160);
    }
}
