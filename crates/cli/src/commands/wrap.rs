//! `wrap`: runs an agent that has no hooks, with a checkpoint before it, at each quiet moment, and after it.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use backtrail::{Change, CheckpointId, Kind, ListFilter, Origin, SaveRequest, Workspace};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    child::{self, Ended, HeldSignals, Limit},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{WrappedJson, shell_words},
};

/// The event in the metadata of checkpoints that are taken while the agent runs.
pub(crate) const WRAPPED: &str = "wrapped";

/// The variable that tells the program its session, for `backtrail hook generic`.
const SESSION_VARIABLE: &str = "BACKTRAIL_SESSION";

/// The time between two looks at the workspace. A moment is quiet if nothing changed between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Run an agent that has no hooks, with checkpoints at its quiet moments
///
/// The agent gets the terminal as it is, and its input is not recorded. A checkpoint is taken before the agent starts,
/// whenever it changed files and then paused, and after it has ended. All of them belong to one session, whose id the
/// agent finds in BACKTRAIL_SESSION; it can report prompts with `backtrail hook generic`.
///
/// Who made a change is not known: `backtrail revert --session` takes back everything that happened meanwhile.
///
/// The exit status is the agent's own: 127 if it can't be started, 128+N if signal N ended it.
#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
    /// The agent with its arguments
    #[arg(value_name = "AGENT", last = true, required = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &WrapArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::unless(args.force))?;
    let signals = HeldSignals::hold()?;
    let stretch = Stretch::begin(&workspace, args)?;
    let session = &stretch.session;
    invocation
        .output
        .note(&format!("session {session}; take all of it back with: backtrail revert --session {session}"));
    let ended = stretch.attend(args, &signals);
    if !matches!(ended, Ended::Exited(_)) {
        let program = args.words[0].to_string_lossy();
        invocation.output.warn(&format!("{program} {}", ended.describe()));
    }
    let (taken, problem) = stretch.finish();
    if let Some(problem) = &problem {
        invocation.output.warn(&format!("not protected: {}", problem.message()));
    }
    if invocation.output.is_json() {
        // The agent's output may end without a line break.
        invocation.output.text("\n")?;
        let checkpoints = taken.iter().map(ToString::to_string).collect();
        let answer = WrappedJson { session: stretch.session.clone(), checkpoints, exit_code: ended.exit_code() };
        invocation.output.json(&answer)?;
    }
    Ok(ExitCode::from(ended.exit_code()))
}

/// The time during which the agent runs.
struct Stretch<'w> {
    workspace: &'w Workspace,
    session: String,
    /// The name of the program.
    agent: String,
    taken: Mutex<Taken>,
}

/// The checkpoints so far.
#[derive(Default)]
struct Taken {
    ids: Vec<CheckpointId>,
    /// The last reason why there was no checkpoint. A later checkpoint has everything that an earlier one lacks.
    problem: Option<Failure>,
}

impl<'w> Stretch<'w> {
    /// Takes the checkpoint before the agent starts.
    fn begin(workspace: &'w Workspace, args: &WrapArgs) -> Result<Self, Failure> {
        let program = Path::new(&args.words[0]);
        let agent = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let session = format!("wrap-{}", Uuid::now_v7());
        let stretch = Self { workspace, session, agent, taken: Mutex::default() };
        let words: Vec<_> = args.words.iter().map(|word| word.to_string_lossy()).collect();
        let command = shell_words(words.iter().map(|word| &**word));
        let request = SaveRequest {
            message: Some(format!("before: {command}")),
            kind: Some(Kind::Session),
            allow_empty: true,
            origin: Origin { author: Some(backtrail::Author::Other), ..stretch.origin() },
            ..SaveRequest::default()
        };
        let saved = workspace.save(&request, Timestamp::now)?;
        stretch.note(Ok(Some(saved.checkpoint.id)));
        Ok(stretch)
    }

    fn origin(&self) -> Origin {
        Origin { session: Some(self.session.clone()), agent: Some(self.agent.clone()), ..Origin::default() }
    }

    /// Runs the agent, and takes checkpoints at its quiet moments.
    fn attend(&self, args: &WrapArgs, signals: &HeldSignals) -> Ended {
        let over = Over::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut moments = QuietMoments::default();
                while moments.wait(self.workspace, &over) {
                    self.save();
                }
            });
            let mut command = Command::new(&args.words[0]);
            command.args(&args.words[1..]).env(SESSION_VARIABLE, &self.session);
            let ended = child::run(&mut command, Limit::after(None), signals);
            over.set();
            ended
        })
    }

    /// Takes the last checkpoint. Returns all of them, and the reason if the last one is missing.
    fn finish(&self) -> (Vec<CheckpointId>, Option<Failure>) {
        self.save();
        let taken = std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        (taken.ids, taken.problem)
    }

    /// Takes a checkpoint if something changed.
    fn save(&self) {
        let save = || -> Result<Option<CheckpointId>, Failure> {
            let (turn, prompt) = self.last_prompt()?;
            let mut metadata = Map::new();
            metadata.insert("event".into(), Value::from(WRAPPED));
            let request = SaveRequest {
                kind: Some(Kind::Step),
                if_changed: true,
                metadata,
                origin: Origin { turn, prompt, ..self.origin() },
                ..SaveRequest::default()
            };
            let saved = self.workspace.save(&request, Timestamp::now)?;
            Ok(saved.created.then_some(saved.checkpoint.id))
        };
        self.note(save());
    }

    /// Returns the last prompt that the agent reported.
    fn last_prompt(&self) -> Result<(Option<u64>, Option<String>), Failure> {
        let session = Some(self.session.clone());
        let filter = ListFilter { session, limit: Some(1), turns: true, ..ListFilter::default() };
        let newest = self.workspace.list(&filter)?.into_iter().next();
        Ok(newest.map_or((None, None), |turn| (turn.origin.turn, turn.origin.prompt)))
    }

    fn note(&self, saved: Result<Option<CheckpointId>, Failure>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match saved {
            Ok(id) => {
                taken.ids.extend(id);
                taken.problem = None;
            }
            Err(failure) => taken.problem = Some(failure),
        }
    }
}

/// Tells a thread that the agent has ended.
#[derive(Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    fn set(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for some time. Returns whether the agent has ended.
    fn wait(&self, time: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Finds moments at which unsaved changes have come to rest.
#[derive(Default)]
struct QuietMoments {
    /// The unsaved changes at the last look.
    seen: Vec<Change>,
}

impl QuietMoments {
    /// Waits for the next quiet moment. Returns `false` if the agent has ended.
    fn wait(&mut self, workspace: &Workspace, over: &Over) -> bool {
        while !over.wait(PAUSE) {
            // A workspace that can't be read is looked at again, and the last checkpoint reports the problem.
            let present = workspace.status(None).map(|status| status.changes).unwrap_or_default();
            let is_quiet = !present.is_empty() && present == self.seen;
            self.seen = present;
            if is_quiet {
                return true;
            }
        }
        false
    }
}
