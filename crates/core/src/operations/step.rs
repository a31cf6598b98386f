//! Counts the steps of an agent, and takes a checkpoint before a step if one is due.

use jiff::Timestamp;
use tracing::Span;

use crate::{
    clock::Clock,
    error::Result,
    model::{Checkpoint, Kind, Node, Origin, Reason, Scope, WorkspacePath},
    operations::save::{SaveRequest, Saved, Unchanged},
    scan::Scan,
    spans::{Outcome, operation, write_span},
    store::{RunningCall, Timeline, Writer},
    workspace::{Workspace, held::HeldPaths},
};

/// The caller's description of a step that is about to happen.
#[derive(Debug, Clone, Default)]
pub struct StepRequest {
    /// The agent and prompt that the step belongs to, and the tool that is about to run. Each session has its own count
    /// of steps.
    pub origin: Origin,
    /// The message of the checkpoint, if one is taken. By default it is made of the changed paths.
    pub message: Option<String>,
    /// Free-form metadata.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// Further metadata that is not known before: this function is called once the files were read.
    pub metadata_once_read: Option<fn() -> serde_json::Map<String, serde_json::Value>>,
    /// Set if this may be a duplicate of the previous step. It is not counted then.
    pub may_be_duplicate: bool,
    /// The agent's id of the tool call that the step is. From [`Workspace::step`] to [`Workspace::step_done`], the call
    /// counts as running. Without an id, `step_done` ends all calls of the session.
    pub call: Option<String>,
    /// Paths that the step is going to change. Their contents are captured first, even if a rule skips them, and stay
    /// captured from then on. The paths need not exist.
    pub paths: Vec<WorkspacePath>,
}

/// The outcome of [`Workspace::step`].
#[derive(Debug, Clone)]
pub struct Stepped {
    /// The number of the step in its session, from 1.
    pub step: u64,
    /// The checkpoint that was taken. `None` if none was due, or nothing had changed.
    pub saved: Option<Saved>,
}

impl Stepped {
    /// Returns the checkpoint that was taken.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.saved.as_ref().map(|saved| &saved.checkpoint)
    }
}

impl Workspace {
    /// Counts a step that is about to happen. Takes a `step` checkpoint if one is due by the settings, and always if a
    /// path is named that the checkpoint under the workspace does not hold.
    pub fn step(&self, request: &StepRequest, clock: impl Clock) -> Result<Stepped> {
        let store = self.store_directory();
        let span = write_span!(store, "step", step, created, checkpoint, kind, changes, skipped, dropped, bytes);
        let stepped = operation(&span, || self.step_now(request, &clock))?;
        Outcome::on(&span).number("step", stepped.step);
        note_saved(&span, stepped.saved.as_ref());
        Ok(stepped)
    }

    fn step_now(&self, request: &StepRequest, clock: &impl Clock) -> Result<Stepped> {
        let (writer, now) = self.writer_at(clock)?;
        let timeline = writer.timeline()?;
        let session = request.origin.session.as_deref();
        let at_least = last_step(&timeline, session);
        let step = match request.may_be_duplicate {
            true => writer.counted_steps(session, at_least)?,
            false => writer.count_step(session, at_least, request.running_call(now))?,
        };
        let settings = &self.settings().checkpoints;
        if !settings.auto {
            return Ok(Stepped { step, saved: None });
        }
        let uncaptured = self.uncaptured(&writer, &timeline, &request.paths)?;
        if !uncaptured.is_any && !step.is_multiple_of(settings.every_n_steps) {
            return Ok(Stepped { step, saved: None });
        }
        let save = request.to_save(step, uncaptured.left_out);
        let saved = self.save_locked(&writer, &save, Unchanged::NoCheckpoint, now)?;
        Ok(Stepped { step, saved: Some(saved).filter(|saved| saved.created) })
    }

    /// Takes a `step` checkpoint of what a step changed, if the settings ask for one at every step. Counts nothing: the
    /// step was counted before it happened.
    pub fn step_done(&self, request: &StepRequest, clock: impl Clock) -> Result<Option<Saved>> {
        let settings = &self.settings().checkpoints;
        if !settings.auto || settings.every_n_steps > 1 {
            return Ok(None);
        }
        let store = self.store_directory();
        let span = write_span!(store, "step_done", created, checkpoint, kind, changes, skipped, dropped, bytes);
        let saved = operation(&span, || self.step_done_now(request, &clock))?;
        note_saved(&span, saved.as_ref());
        Ok(saved)
    }

    fn step_done_now(&self, request: &StepRequest, clock: &impl Clock) -> Result<Option<Saved>> {
        let (writer, now) = self.writer_at(clock)?;
        writer.end_calls(request.origin.session.as_deref(), request.call.as_deref())?;
        let timeline = writer.timeline()?;
        let left_out = self.uncaptured(&writer, &timeline, &request.paths)?.left_out;
        let number = last_step(&timeline, request.origin.session.as_deref());
        let mut save = request.to_save(number, left_out);
        save.origin.step = Some(number).filter(|number| *number > 0);
        let saved = self.save_locked(&writer, &save, Unchanged::NoCheckpoint, now)?;
        Ok(Some(saved).filter(|saved| saved.created))
    }

    /// Returns which of these paths hold something that the checkpoint under the workspace does not hold.
    fn uncaptured(&self, writer: &Writer, timeline: &Timeline, paths: &[WorkspacePath]) -> Result<Uncaptured> {
        let present: Vec<WorkspacePath> = paths.iter().filter(|path| self.is_on_disk(path)).cloned().collect();
        if present.is_empty() {
            return Ok(Uncaptured::default());
        }
        let scan = self.scan_for_reading(Some(writer.store()), &Scope::of_paths(present.clone()))?;
        let standing = timeline.current().map(|entry| writer.store().snapshot(&entry.id)).transpose()?;
        let held = standing.map(|snapshot| HeldPaths::of(writer.store(), snapshot));
        let is_held = |path: &WorkspacePath| held.as_ref().is_some_and(|held| held.contains(path.as_bytes()));
        let left_out: Vec<WorkspacePath> =
            present.iter().filter(|path| is_left_out_by_rule(&scan, path)).cloned().collect();
        let mut is_any = !left_out.is_empty();
        scan.root.walk(&mut |path, node| is_any |= node.is_captured() && !is_held(path));
        Ok(Uncaptured { is_any, left_out })
    }
}

/// Contents at a step's paths that no checkpoint holds yet.
#[derive(Debug, Default)]
struct Uncaptured {
    is_any: bool,
    /// Paths that a save captures only on request.
    left_out: Vec<WorkspacePath>,
}

impl StepRequest {
    fn running_call(&self, now: Timestamp) -> Option<RunningCall> {
        let (turn, paths) = (self.origin.turn, self.paths.clone());
        self.call.clone().map(|id| RunningCall { id, turn, began: now.as_millisecond(), paths })
    }

    fn to_save(&self, step: u64, include: Vec<WorkspacePath>) -> SaveRequest {
        SaveRequest {
            kind: Some(Kind::Step),
            message: self.message.clone(),
            metadata: self.metadata.clone(),
            metadata_once_read: self.metadata_once_read,
            include,
            named: self.paths.clone(),
            origin: Origin { step: Some(step), ..self.origin.clone() },
            ..SaveRequest::default()
        }
    }
}

fn note_saved(span: &Span, saved: Option<&Saved>) {
    match saved {
        Some(saved) => saved.note(span),
        None => drop(Outcome::on(span).flag("created", false)),
    }
}

/// Returns the number of the last step of a session that has a checkpoint: numbers only grow. The count continues from
/// there if its file is lost.
fn last_step(timeline: &Timeline, session: Option<&str>) -> u64 {
    let count = timeline.count_of(Kind::Step).count as usize;
    let steps = timeline.entries().iter().rev().filter(|entry| entry.kind == Kind::Step).take(count);
    let records = steps.filter_map(|entry| entry.record());
    let mut of_session = records.filter(|record| record.origin.session.as_deref() == session);
    of_session.find_map(|record| record.origin.step).unwrap_or(0)
}

/// Returns whether a rule skips this path, or a directory above it.
fn is_left_out_by_rule(scan: &Scan, path: &WorkspacePath) -> bool {
    let by_rule = |node: &Node| matches!(node, Node::Skipped(Reason::Ignored | Reason::Rebuildable, _));
    let mut here = path.ancestors().chain([path.clone()]);
    here.any(|path| scan.root.find(&path).is_some_and(by_rule))
}
