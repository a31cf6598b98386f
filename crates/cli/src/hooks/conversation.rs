//! Restores a conversation: writes a copy of it under a new session id, beside the original.
//!
//! The agent's own file is never written: a running session keeps its conversation in memory, and would not notice the
//! change.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use backtrail::{CheckpointId, Error, Workspace, app_files};
use serde_json::Value;
use uuid::Uuid;

use super::{Agent, session::Sessions, worker::CONVERSATION};
use crate::{failure::Failure, output::shell_words};

/// A conversation that the user can resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) agent: Agent,
    /// The prompt that the conversation ends before.
    pub(crate) before: String,
    /// Set if the original session is still running.
    pub(crate) is_live: bool,
    pub(crate) continuation: Continuation,
    /// The command line that resumes the conversation, shows it, or starts a new one.
    pub(crate) command: String,
}

/// The way in which a conversation continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// In this copy, which has to be written.
    Copy(ForkedFile),
    /// It can only be read: the agent can't resume from a file.
    ReadOnly,
    /// In a new conversation: this one was still empty.
    New,
    /// Not at all: conversations of this agent are not stored.
    Unsupported,
}

impl Fork {
    /// Returns the file to write. Returns `None` if the conversation does not go on in a copy.
    pub(crate) fn copy(&self) -> Option<&ForkedFile> {
        match &self.continuation {
            Continuation::Copy(copy) => Some(copy),
            Continuation::ReadOnly | Continuation::New | Continuation::Unsupported => None,
        }
    }
}

/// The copy of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForkedFile {
    /// The id of the new session.
    pub(crate) session: String,
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
    /// Further files that the agent needs.
    beside: Vec<(PathBuf, Vec<u8>)>,
}

/// Prepares the copy of the conversation that belongs to a checkpoint.
pub(crate) fn plan(workspace: &Workspace, id: &CheckpointId, sessions: &Sessions) -> Result<Fork, Failure> {
    let turn = workspace.turn_of(id)?.ok_or_else(|| no_conversation(id))?;
    let (Some(agent), Some(session)) =
        (turn.origin.agent.as_ref().and_then(|agent| agent.parse().ok()), &turn.origin.session)
    else {
        return Err(no_conversation(id));
    };
    let is_live = sessions.get(session).is_some_and(|state| state.is_live());
    let before = turn.origin.prompt.clone().unwrap_or_default();
    let has_conversation = turn.attachments.iter().any(|attachment| attachment.name == CONVERSATION);
    let transcript = turn.metadata.get("transcript").and_then(Value::as_str).map(PathBuf::from);
    let (true, Some(transcript)) = (has_conversation, transcript) else {
        let command = start(agent).to_owned();
        let continuation = if is_stored(agent) { Continuation::New } else { Continuation::Unsupported };
        return Ok(Fork { agent, before, is_live, continuation, command });
    };
    let bytes = workspace.attachment(&turn.id, CONVERSATION)?;
    let (command, continuation) = match fork(agent, session, &transcript, &bytes) {
        Some(copy) => (resume(agent, &copy.session), Continuation::Copy(copy)),
        None => {
            let command = shell_words(["backtrail", "cat", &turn.id.short(), "--attachment", CONVERSATION]);
            (command, Continuation::ReadOnly)
        }
    };
    Ok(Fork { agent, before, is_live, continuation, command })
}

fn no_conversation(id: &CheckpointId) -> Failure {
    Error::UnknownAttachment { checkpoint: *id, name: CONVERSATION.to_owned() }.into()
}

impl ForkedFile {
    /// Returns the files to write. The conversation itself is the last one.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        let beside = self.beside.iter().map(|(path, bytes)| (path.as_path(), bytes.as_slice()));
        beside.chain([(self.path.as_path(), self.bytes.as_slice())])
    }

    /// Writes the copy. Fails if a file of it exists already.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        self.files().try_for_each(|(path, bytes)| {
            let write = || -> io::Result<()> {
                app_files::make_directories(path.parent().unwrap_or(Path::new("/")))?;
                let mut file = app_files::create_new(path, 0o600)?;
                file.write_all(bytes)?;
                file.sync_all()
            };
            write().map_err(|source| Error::Io { action: "write", path: path.to_owned(), source }.into())
        })
    }
}

/// Returns whether the conversations of this agent are stored with its prompts.
fn is_stored(agent: Agent) -> bool {
    !matches!(agent, Agent::Cline | Agent::Opencode | Agent::Kilo | Agent::Kimi | Agent::Droid | Agent::Generic)
}

/// Returns the command that starts an agent.
fn start(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "claude",
        Agent::Codex => "codex",
        Agent::Gemini => "gemini",
        Agent::Qwen => "qwen",
        Agent::Cursor => "agent",
        Agent::Copilot => "copilot",
        Agent::Cline => "cline",
        Agent::Opencode => "opencode",
        Agent::Kilo => "kilo",
        Agent::Kimi => "kimi",
        Agent::Pi => "pi",
        Agent::Droid => "droid",
        Agent::Generic => "the agent",
    }
}

fn resume(agent: Agent, session: &str) -> String {
    match agent {
        Agent::Copilot => format!("copilot --resume={session}"),
        Agent::Pi => format!("pi --session {session}"),
        Agent::Codex => format!("codex resume {session}"),
        _ => format!("{} --resume {session}", start(agent)),
    }
}

/// Copies the conversation to a new session id. Returns `None` if the agent's file format is not supported.
fn fork(agent: Agent, session: &str, transcript: &Path, bytes: &[u8]) -> Option<ForkedFile> {
    let (new, bytes) = match agent {
        Agent::Claude | Agent::Qwen => (Uuid::new_v4(), without_last_lines(bytes, is_queued)),
        Agent::Codex => (Uuid::now_v7(), without_unfinished_turn(bytes)),
        Agent::Pi => (Uuid::now_v7(), bytes.to_vec()),
        Agent::Gemini => (Uuid::new_v4(), bytes.to_vec()),
        Agent::Copilot => (Uuid::new_v4(), without_pending_prompt(bytes)),
        _ => return None,
    };
    let new = new.to_string();
    let path = if agent == Agent::Copilot {
        // The directory has the name of the session.
        transcript.parent()?.with_file_name(&new).join(transcript.file_name()?)
    } else {
        renamed(transcript, session, &new)?
    };
    let bytes = replace(&bytes, session.as_bytes(), new.as_bytes());
    let beside =
        if agent == Agent::Copilot { vec![workspace_of_copilot(transcript, session, &path, &new)] } else { Vec::new() };
    Some(ForkedFile { session: new, path, bytes, beside })
}

/// Returns the path with the new session in its name. Returns `None` if the name does not contain the session.
fn renamed(transcript: &Path, session: &str, new: &str) -> Option<PathBuf> {
    let name = transcript.file_name()?.to_str()?;
    // Gemini CLI uses only the start of the id in the file name.
    let short = |session: &str| session.chars().take(8).collect::<String>();
    let named =
        if name.contains(session) { name.replace(session, new) } else { name.replace(&short(session), &short(new)) };
    (named != name).then(|| transcript.with_file_name(named))
}

/// Returns the file that describes a session of Copilot. Without it, Copilot does not list the session.
fn workspace_of_copilot(transcript: &Path, session: &str, copy: &Path, new: &str) -> (PathBuf, Vec<u8>) {
    const NAME: &str = "workspace.yaml";
    let original =
        fs::read(transcript.with_file_name(NAME)).unwrap_or_else(|_| format!("id: {session}\n").into_bytes());
    (copy.with_file_name(NAME), replace(&original, session.as_bytes(), new.as_bytes()))
}

fn replace(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, old) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn parsed(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_default()
}

/// Returns whether the line records that a prompt was queued. A queued prompt is not part of the conversation yet.
fn is_queued(line: &[u8]) -> bool {
    parsed(line)["type"] == "queue-operation"
}

fn without_last_lines(bytes: &[u8], is_unwanted: fn(&[u8]) -> bool) -> Vec<u8> {
    let mut lines = lines(bytes);
    while lines.pop_if(|line| is_unwanted(line)).is_some() {}
    lines.concat()
}

/// Removes the last turn if it was not completed. Codex records the start of a turn before it runs the hook of the
/// prompt.
fn without_unfinished_turn(bytes: &[u8]) -> Vec<u8> {
    let lines = lines(bytes);
    let kind = |line: &[u8]| {
        let line = parsed(line);
        line["payload"]["type"].as_str().filter(|_| line["type"] == "event_msg").map(str::to_owned)
    };
    let last = |wanted: &str| lines.iter().rposition(|line| kind(line).as_deref() == Some(wanted));
    match (last("task_started"), last("task_complete")) {
        (Some(started), done) if done.is_none_or(|done| done < started) => lines[..started].concat(),
        _ => bytes.to_vec(),
    }
}

/// Removes the end of the file from the hook of a prompt that is not in the conversation yet. Copilot records the call
/// of the hook.
fn without_pending_prompt(bytes: &[u8]) -> Vec<u8> {
    let lines = lines(bytes);
    let is = |line: &[u8], kind: &str| parsed(line)["type"] == kind;
    let is_prompt_hook =
        |line: &[u8]| is(line, "hook.start") && parsed(line)["data"]["hookType"] == "userPromptSubmitted";
    let message = lines.iter().rposition(|line| is(line, "user.message")).map_or(0, |message| message + 1);
    let hook = lines[message..].iter().position(|line| is_prompt_hook(line));
    lines[..hook.map_or(lines.len(), |hook| message + hook)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD_SESSION: &str = "3242fa0a-dafd-4132-bb98-d25a8567ae3d";

    fn text(file: &ForkedFile) -> String {
        String::from_utf8(file.bytes.clone()).unwrap()
    }

    #[test]
    fn a_fork_has_its_own_file_name_and_session_id() {
        let transcript = format!(
            "{{\"sessionId\":\"{OLD_SESSION}\",\"n\":1}}\n{{\"type\":\"queue-operation\",\"sessionId\":\"{OLD_SESSION}\"}}\n"
        );
        let path = PathBuf::from(format!("/h/.claude/projects/-w/{OLD_SESSION}.jsonl"));
        let copy = fork(Agent::Claude, OLD_SESSION, &path, transcript.as_bytes()).unwrap();
        assert_ne!(copy.session, OLD_SESSION);
        assert_eq!(copy.path, PathBuf::from(format!("/h/.claude/projects/-w/{}.jsonl", copy.session)));
        assert_eq!(text(&copy), format!("{{\"sessionId\":\"{}\",\"n\":1}}\n", copy.session));

        let path = PathBuf::from("/h/.gemini/tmp/w/chats/session-2026-11-15T12-35-3242fa0a.jsonl");
        let copy = fork(Agent::Gemini, OLD_SESSION, &path, transcript.as_bytes()).unwrap();
        let name = format!("session-2026-11-15T12-35-{}.jsonl", &copy.session[..8]);
        assert_eq!(copy.path.file_name().unwrap().to_str(), Some(name.as_str()));
        assert_eq!(fork(Agent::Cursor, OLD_SESSION, &path, b""), None);
    }

    #[test]
    fn an_unfinished_turn_of_codex_is_removed() {
        let line = |kind: &str| format!("{{\"type\":\"event_msg\",\"payload\":{{\"type\":\"{kind}\"}}}}\n");
        let done = format!("{{\"type\":\"session_meta\"}}\n{}{}", line("task_started"), line("task_complete"));
        assert_eq!(without_unfinished_turn(done.as_bytes()), done.as_bytes());
        let unfinished = format!("{done}{}{{\"type\":\"turn_context\"}}\n", line("task_started"));
        assert_eq!(without_unfinished_turn(unfinished.as_bytes()), done.as_bytes());
    }
}
