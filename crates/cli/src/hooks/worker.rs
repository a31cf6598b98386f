//! Takes the checkpoint that an event asks for, in the session's workspace and in the nested workspace in which the
//! event took place.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use backtrail::{
    Author, ErrorCode, Kind, Origin, SaveRequest, Saved, StepRequest, Workspace, WorkspacePath, json::start_of,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    claim::{ClaimedEvent, event_key},
    event::{HookEvent, Moment, ToolCall},
    late_checkpoint,
    restore_notice::{self, RestoreNotice},
    session::{ProcessMark, Sessions},
    tools, transcripts,
};
use crate::{
    cli::{ColorWhen, GlobalOptions},
    failure::Failure,
    invocation::Invocation,
    output::{self, dropped_warnings},
    settings::Environment,
};

/// The maximum wait for another process that holds the workspace's lock. The agent has long stopped waiting for this
/// process by then.
pub(super) const PATIENCE_SECONDS: u64 = 600;

/// The maximum size of a prompt. Longer prompts are truncated, because a checkpoint's record is read whenever it is
/// listed.
const MAX_PROMPT_BYTES: usize = 16 << 10;

/// The maximum size of a conversation. Larger ones are not stored.
const MAX_TRANSCRIPT_BYTES: u64 = 512 << 20;

/// The name of the attachment that holds the conversation.
pub(crate) const CONVERSATION: &str = "conversation";

/// Handles one event.
pub(crate) struct Worker<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) sessions: &'a Sessions,
    /// The agent's process, if it is known.
    pub(crate) agent_process: Option<ProcessMark>,
    /// This process. `None` if it can't be identified.
    pub(crate) own_process: Option<ProcessMark>,
    /// The time at which the event arrived.
    pub(crate) arrived: Timestamp,
    /// The time after which this process stops waiting for other processes.
    pub(crate) deadline: Instant,
    /// Reports a problem that occurred although the checkpoint was taken.
    pub(crate) problem: &'a dyn Fn(&str),
}

/// The result of an event.
pub(super) struct Done {
    /// Set if a new checkpoint was created.
    pub(super) created: bool,
    /// The message for the agent.
    pub(super) news: RestoreNotice,
}

impl Worker<'_> {
    /// Takes the checkpoint that an event asks for, and sends the agent its message with `tell`, which returns whether
    /// the message arrived. Returns whether a checkpoint was taken.
    pub(crate) fn run(
        &self,
        event: &HookEvent,
        payload_hash: u64,
        tell: impl FnOnce(&str) -> bool,
    ) -> Result<bool, Failure> {
        let session = self.sessions.that_counts(event);
        if let (Moment::SubagentStart, Some(subagent)) = (&event.moment, &event.subagent) {
            self.remember_subagent(event, subagent, &session);
            return Ok(false);
        }
        let assignment = match self.take_on(event, &session, event_key(event, payload_hash)) {
            Ok(Some(assignment)) => assignment,
            Ok(None) => return Ok(false),
            Err(failure) => {
                self.remember_failure(&session, &failure);
                return Err(failure);
            }
        };
        match self.work(event, &assignment) {
            Ok(done) => {
                // A message that did not arrive is sent again with the next prompt.
                let has_arrived = done.news.text.as_ref().is_none_or(|news| tell(news));
                self.remember_success(event, &assignment, &done, has_arrived);
                Ok(done.created)
            }
            Err(failure) => {
                self.remember_failure(&session, &failure);
                Err(failure)
            }
        }
    }

    pub(super) fn invocation(&self, root: &Path) -> Invocation {
        Invocation::new(self.options(Some(root.to_owned())), self.environment.clone())
    }

    pub(super) fn options(&self, workspace: Option<PathBuf>) -> GlobalOptions {
        let wait = self.deadline.saturating_duration_since(Instant::now()).as_secs().max(1);
        GlobalOptions { workspace, store: None, json: false, quiet: true, wait, color: ColorWhen::Never, log: None }
    }

    /// Takes the checkpoint in the workspace in which the event took place, and in the session's workspace.
    fn work(&self, event: &HookEvent, assignment: &ClaimedEvent) -> Result<Done, Failure> {
        let inner = assignment.inner.as_deref().map(|inner| self.work_in(inner, event, assignment));
        let outer = self.work_in(&assignment.root, event, assignment);
        let Some(inner) = inner else { return outer };
        match (outer, inner) {
            (Ok(outer), Ok(inner)) => Ok(Done { created: outer.created || inner.created, ..outer }),
            // Hooks don't create a workspace in the outer directory, and the project inside it has its checkpoint.
            (Err(outer), Ok(inner)) if outer.code() == ErrorCode::ProtectedDirectory => {
                Ok(Done { news: RestoreNotice::default(), ..inner })
            }
            (Err(outer), Err(inner)) => {
                self.report(&format!("not protected: {}", inner.message()));
                Err(outer)
            }
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        }
    }

    fn work_in(&self, root: &Path, event: &HookEvent, assignment: &ClaimedEvent) -> Result<Done, Failure> {
        let workspace = self.invocation(root).workspace_to_protect()?;
        if matches!(event.moment, Moment::SessionStart { .. } | Moment::Prompt(_)) {
            self.tell_of_spoilt_settings(root)?;
        }
        if !workspace.has_store()?
            && let Some(former) = self.invocation(root).location()?.former
        {
            self.report(&former.notice(root));
        }
        let saved = match workspace.settings().checkpoints.auto {
            true => self.take(event, assignment, &workspace)?,
            false => None,
        };
        saved.iter().for_each(|saved| self.tell_of_dropped(saved));
        let created = saved.is_some_and(|saved| saved.created);
        Ok(Done { created, news: restore_notice::since(&workspace, event.agent, &event.moment, &assignment.told) })
    }

    /// Reports the paths that a checkpoint could not capture any more, on stderr and in the log.
    fn tell_of_dropped(&self, saved: &Saved) {
        dropped_warnings(saved).iter().for_each(|warning| self.report(warning));
    }

    /// Reports a problem to the user that occurred although the checkpoint was taken.
    fn report(&self, message: &str) {
        (self.problem)(message);
        output::talk_of_hook(&format!("backtrail: {message}"));
    }

    /// Reports why the workspace's own settings are ignored, if they are.
    fn tell_of_spoilt_settings(&self, root: &Path) -> Result<(), Failure> {
        for problem in self.invocation(root).survey()?.problems {
            let message = format!("{}; the file is ignored until that is corrected", problem.message());
            self.report(&message);
        }
        Ok(())
    }

    /// Takes the checkpoint that an event asks for. Returns `None` if it asks for none.
    fn take(
        &self,
        event: &HookEvent,
        assignment: &ClaimedEvent,
        workspace: &Workspace,
    ) -> Result<Option<Saved>, Failure> {
        // The time is taken once this process holds the lock, no matter how long it waited.
        let clock = Timestamp::now;
        Ok(match &event.moment {
            Moment::SessionStart { source } if source.as_deref() == Some("compact") => None,
            Moment::SessionStart { source } => {
                let message = match source {
                    Some(source) => format!("a session of {} begins ({source})", event.agent.title()),
                    None => format!("a session of {} begins", event.agent.title()),
                };
                let mut request = self.request(event, assignment, Kind::Session, message);
                (request.origin.turn, request.origin.prompt) = (None, None);
                Some(workspace.save(&request, clock)?)
            }
            Moment::Prompt(_) if assignment.is_own_prompt => self.step_done(event, assignment, workspace, clock)?,
            Moment::Prompt(text) => {
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("a prompt without text");
                let request = self.request(event, assignment, Kind::Turn, cut_at(first, 200));
                let transcript = transcripts::of_event(event, self.environment);
                let conversation = conversation(transcript.as_deref()).unwrap_or_else(|problem| {
                    (self.problem)(&problem);
                    None
                });
                let attachments = conversation.into_iter().collect();
                Some(workspace.save(&SaveRequest { attachments, ..request }, clock)?)
            }
            Moment::BeforeTool(call) if tools::may_change_files(call) => {
                workspace.step(&self.step(event, assignment, call, workspace), clock)?.saved
            }
            Moment::AfterTool(call) if tools::may_change_files(call) => {
                workspace.step_done(&self.step(event, assignment, call, workspace), clock)?
            }
            Moment::BeforeTool(_) | Moment::AfterTool(_) | Moment::SubagentStart => None,
            Moment::SubagentEnd | Moment::TurnEnd | Moment::SessionEnd => {
                self.step_done(event, assignment, workspace, clock)?
            }
        })
    }

    /// Takes a checkpoint of the work since the last one. It is the agent's.
    fn step_done(
        &self,
        event: &HookEvent,
        assignment: &ClaimedEvent,
        workspace: &Workspace,
        clock: fn() -> Timestamp,
    ) -> Result<Option<Saved>, Failure> {
        let request = StepRequest {
            metadata: self.metadata(event),
            origin: Origin {
                session: Some(assignment.session.clone()),
                agent: Some(event.agent.name().to_owned()),
                turn: Some(assignment.turn).filter(|turn| *turn > 0),
                prompt: assignment.prompt.clone(),
                author: Some(Author::Agent),
                ..Origin::default()
            },
            ..StepRequest::default()
        };
        Ok(workspace.step_done(&request, clock)?)
    }

    fn request(&self, event: &HookEvent, assignment: &ClaimedEvent, kind: Kind, message: String) -> SaveRequest {
        SaveRequest {
            message: Some(message),
            kind: Some(kind),
            metadata: self.metadata(event),
            metadata_once_read: Some(late_checkpoint::words),
            allow_empty: !assignment.may_be_duplicate,
            if_changed: assignment.may_be_duplicate,
            origin: Origin {
                session: Some(assignment.session.clone()),
                agent: Some(event.agent.name().to_owned()),
                turn: Some(assignment.turn),
                prompt: assignment.prompt.clone(),
                author: Some(Author::Other),
                ..Origin::default()
            },
            ..SaveRequest::default()
        }
    }

    fn metadata(&self, event: &HookEvent) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("event".into(), event.moment.word().into());
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                metadata.insert(key.into(), value.into());
            }
        };
        if let Moment::BeforeTool(call) | Moment::AfterTool(call) = &event.moment {
            put("tool_use_id", call.id.clone());
        }
        put("subagent", event.subagent.clone());
        if matches!(event.moment, Moment::Prompt(_) | Moment::SessionStart { .. }) {
            put(
                "transcript",
                transcripts::of_event(event, self.environment).map(|path| path.to_string_lossy().into_owned()),
            );
        }
        metadata
    }

    fn step(
        &self,
        event: &HookEvent,
        assignment: &ClaimedEvent,
        call: &ToolCall,
        workspace: &Workspace,
    ) -> StepRequest {
        StepRequest {
            message: None,
            metadata: self.metadata(event),
            may_be_duplicate: assignment.may_be_duplicate,
            call: call.id.clone(),
            metadata_once_read: late_checkpoint::may_be_late(&event.moment).then_some(late_checkpoint::words),
            paths: touched(event, call, workspace, assignment.inner.as_deref()),
            origin: Origin {
                session: Some(assignment.session.clone()),
                agent: Some(event.agent.name().to_owned()),
                turn: Some(assignment.turn).filter(|turn| *turn > 0),
                prompt: assignment.prompt.clone(),
                tool: Some(call.name.clone()),
                command: tools::command_line(call),
                author: Some(author_of(&event.moment)),
                ..Origin::default()
            },
        }
    }
}

/// Returns the author of the changes since the previous checkpoint: only what lies behind a call is the agent's work.
fn author_of(moment: &Moment) -> Author {
    match moment {
        Moment::AfterTool(_) => Author::Agent,
        _ => Author::Other,
    }
}

/// Returns the files that a call names, if they are in the workspace and not in the nested one. Directories are
/// skipped: naming one does not capture it.
fn touched(event: &HookEvent, call: &ToolCall, workspace: &Workspace, inner: Option<&Path>) -> Vec<WorkspacePath> {
    let start = event.directory.as_deref().unwrap_or(workspace.root());
    let inner = inner.and_then(|inner| workspace.path_from(inner, inner).ok()).filter(|inner| !inner.is_root());
    let is_inner = |path: &WorkspacePath| inner.as_ref().is_some_and(|inner| path.is_within(inner));
    let named = tools::named_files(call).into_iter().filter(|path| !start.join(path).is_dir());
    let inside = named.filter_map(|path| workspace.path_from(start, &path).ok());
    inside.filter(|path| !path.is_root() && !is_inner(path)).collect()
}

/// Returns the conversation so far, in whole lines. Returns `None` if there is none yet, and an error message if it
/// can't be stored.
fn conversation(transcript: Option<&Path>) -> Result<Option<(String, Vec<u8>)>, String> {
    let Some(path) = transcript else { return Ok(None) };
    let not_kept = |why: String| format!("the conversation is not saved: {} {why}", path.display());
    let mut bytes = match read_transcript(path) {
        // Agents name the file before they write the first line.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_kept(format!("can't be read: {error}"))),
        Ok(None) => return Err(not_kept(format!("has more than {} MiB", MAX_TRANSCRIPT_BYTES >> 20))),
        Ok(Some(bytes)) => bytes,
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    bytes.truncate(end);
    Ok((!bytes.is_empty()).then(|| (CONVERSATION.to_owned(), bytes)))
}

/// Reads the conversation. Returns `None` if it is too large.
fn read_transcript(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.len() > MAX_TRANSCRIPT_BYTES {
        return Ok(None);
    }
    fs::read(path).map(Some)
}

pub(super) fn cut(text: &str) -> String {
    cut_at(text, MAX_PROMPT_BYTES)
}

fn cut_at(text: &str, bytes: usize) -> String {
    let start = start_of(text, bytes);
    if start.len() == text.len() { text.to_owned() } else { format!("{start}…") }
}
