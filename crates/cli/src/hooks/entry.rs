//! The process that an agent starts: reads the payload, has another process do the work, and waits for it for a limited
//! time.
//!
//! Always ends with exit status 0, because any other status may stop a prompt or a tool. A separate process does the
//! work: its errors and crashes can't reach the agent, and work that takes too long continues without the agent.

use std::{
    ffi::OsString,
    io::{IsTerminal, Read, Write},
    process::{Child, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
};

use super::{
    Agent,
    event::{self, HookEvent, Moment},
    late_checkpoint,
    log::{Line, Log, Sort},
    panic_guard,
    session::{ProcessMark, SessionState, Sessions},
    tools,
    worker::{PATIENCE_SECONDS, Worker},
};
use crate::{
    failure::Failure,
    logging::{self, CommandLog},
    output, process,
    settings::Environment,
};

/// The flag that marks a worker process.
const WORKER: &str = "--worker";

/// The maximum size of a payload. The rest is not read.
const MAX_PAYLOAD_BYTES: u64 = 64 << 20;

/// The maximum time that an agent may take to send the payload.
const PATIENCE_FOR_PAYLOAD: Duration = Duration::from_secs(5);

/// Runs `hook` with the arguments that follow it.
pub(crate) fn run(words: &[OsString]) {
    let environment = Environment::of_process();
    let named: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut plain = named.iter().filter(|word| !word.starts_with('-')).cloned();
    let agent_word = plain.next().unwrap_or_default();
    let agent_process = plain.next().and_then(|word| ProcessMark::from_word(&word));
    let log = environment.own_file("log").ok().map(|directory| Log::in_directory(&directory));
    let front = Front { environment, log, agent_word, agent_process };
    if named.first().is_some_and(|word| word == WORKER) { front.work() } else { front.receive() }
}

struct Front {
    environment: Environment,
    log: Option<Log>,
    agent_word: String,
    /// The agent's process, if this is a worker.
    agent_process: Option<ProcessMark>,
}

impl Front {
    /// Runs in the process that the agent waits for.
    fn receive(&self) {
        panic_guard::prepare(&self.agent_word, self.log.clone());
        let agent = self.agent_word.parse::<Agent>();
        let answer = match &agent {
            Err(unknown) => {
                self.problem("", None, &unknown.to_string());
                None
            }
            Ok(agent) => self.pass_on(*agent),
        };
        let is_empty = answer.as_ref().is_none_or(|answer| answer.trim().is_empty());
        if is_empty && agent.is_ok_and(Agent::wants_json) {
            output::answer_hook("{}\n");
        } else if let Some(answer) = answer.filter(|_| !is_empty) {
            output::answer_hook(&answer);
        }
    }

    /// Reads the payload and waits for the worker. Returns the answer for the agent.
    fn pass_on(&self, agent: Agent) -> Option<String> {
        if std::io::stdin().is_terminal() {
            output::talk_of_hook(
                "backtrail hook reads an agent's event on stdin; set up an agent with: backtrail install",
            );
            return None;
        }
        let payload = match payload_of_agent() {
            Ok(payload) => payload,
            Err(error) => {
                self.problem("", None, &format!("the payload can't be read: {error}"));
                return None;
            }
        };
        let event = match event::read(agent, &payload) {
            Ok(event) => event.filter(is_of_interest)?,
            Err(problem) => {
                self.problem(
                    "",
                    None,
                    &format!("the payload can't be understood (size in bytes: {}): {}", payload.len(), problem.0),
                );
                return None;
            }
        };
        let mut worker = match self.start_worker(agent) {
            Ok(worker) => worker,
            Err(error) => {
                let message = format!("no checkpoint was taken: no process can be started: {error}");
                self.report_unprotected(None, &message, &event);
                return None;
            }
        };
        self.wait(&mut worker, payload, &event)
    }

    fn start_worker(&self, agent: Agent) -> std::io::Result<Child> {
        let mut command = process::own_command()?;
        command.args(["hook", WORKER, agent.name()]);
        command.args(ProcessMark::of_agent().map(ProcessMark::to_word));
        // The worker inherits none of our pipes: an agent may wait until all pipes that it gave to its hook are closed.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    /// Sends the payload, and waits for the end of the worker's answer as long as the event allows.
    fn wait(&self, worker: &mut Child, payload: Vec<u8>, event: &HookEvent) -> Option<String> {
        let (sender, receiver) = mpsc::channel();
        let (stdin, stdout, stderr) = (worker.stdin.take(), worker.stdout.take(), worker.stderr.take());
        let talk = move || {
            // A worker that ended early has closed its pipes, and has reported its problem in the log.
            drop(stdin.map(|mut stdin| stdin.write_all(&payload)));
            let (mut answer, mut talk) = (String::new(), String::new());
            drop(stdout.map(|mut stdout| stdout.read_to_string(&mut answer)));
            drop(stderr.map(|mut stderr| stderr.read_to_string(&mut talk)));
            drop(sender.send((answer, talk)));
        };
        // If no thread can be started, the agent waits as long as the work takes.
        let talk = Mutex::new(Some(talk));
        let talk = Arc::new(move || talk.lock().ok()?.take().map(|talk| talk()));
        let same = Arc::clone(&talk);
        if std::thread::Builder::new().spawn(move || same()).is_err() {
            talk();
        }
        let patience = self.environment.hook_patience().unwrap_or(patience(&event.moment));
        if let Ok((answer, talk)) = receiver.recv_timeout(patience) {
            talk.lines().for_each(output::talk_of_hook);
            return match worker.wait() {
                Ok(status) if !status.success() => {
                    let message = format!("no checkpoint was taken: the process for it ended with {status}");
                    self.report_unprotected(Some(worker.id()), &message, event);
                    None
                }
                _ => Some(answer),
            };
        }
        let process = Some(worker.id());
        let message = "the agent continues; not protected yet: the checkpoint is still being taken";
        self.add(Sort::Late, event.moment.word(), Some(event), message, process);
        output::talk_of_hook(&format!("backtrail: {message}"));
        None
    }

    /// Reports the failure of a worker that could not report it itself, for instance because it was killed.
    fn report_unprotected(&self, worker: Option<u32>, message: &str, event: &HookEvent) {
        self.problem(event.moment.word(), Some(event), message);
        output::talk_of_hook(&format!("backtrail: not protected: {message}"));
        let Ok(directory) = self.environment.own_file("sessions") else { return };
        let sessions = Sessions::in_directory(directory);
        let bury = |known: Option<SessionState>| {
            let changed = known.map(|mut state| {
                state.bury_process(worker, message);
                state
            });
            (changed, ())
        };
        drop(sessions.change(&sessions.that_counts(event), bury));
    }

    /// Runs in the worker process.
    fn work(&self) {
        // A session of its own: a signal to the process group of the agent's hooks does not reach it.
        let _ = rustix::process::setsid();
        let (arrived, deadline) = (Timestamp::now(), Instant::now() + Duration::from_secs(PATIENCE_SECONDS));
        let (Ok(agent), Ok(payload)) = (self.agent_word.parse::<Agent>(), read_payload()) else { return };
        let Ok(Some(event)) = event::read(agent, &payload) else { return };
        let sessions = match self.environment.own_file("sessions") {
            Ok(directory) => Sessions::in_directory(directory),
            Err(failure) => return say_unprotected(&failure),
        };
        let worker = Worker {
            environment: &self.environment,
            sessions: &sessions,
            agent_process: self.agent_process,
            own_process: ProcessMark::own(),
            arrived,
            deadline,
            problem: &|message| self.problem(event.moment.word(), Some(&event), message),
        };
        // Only in the file: the front process reads stderr after the answer, and a full pipe would stop this process.
        let command = format!("hook {agent} {}", event.moment.word());
        let log = CommandLog::of_command(command, &self.environment);
        let run = || worker.run(&event, xxhash_rust::xxh3::xxh3_64(&payload), output::answer_hook);
        let done = logging::during(None, log, || run().inspect_err(logging::command_failed));
        match done {
            Err(failure) => {
                self.problem(event.moment.word(), Some(&event), &failure.message());
                say_unprotected(&failure);
            }
            Ok(_) if output::is_hook_heard() => {}
            Ok(has_taken_one) => {
                let is_late = has_taken_one && late_checkpoint::may_be_late(&event.moment);
                let message = if is_late { late_checkpoint::MEANING } else { "done after the agent continued" };
                self.add(Sort::Done, event.moment.word(), Some(&event), message, Some(std::process::id()));
            }
        }
    }

    fn problem(&self, word: &str, event: Option<&HookEvent>, message: &str) {
        self.add(Sort::Problem, word, event, message, None);
    }

    fn add(&self, sort: Sort, word: &str, event: Option<&HookEvent>, message: &str, process: Option<u32>) {
        let Some(log) = &self.log else { return };
        log.add(&Line {
            time: Timestamp::now(),
            sort,
            agent: self.agent_word.chars().take(40).collect(),
            event: word.to_owned(),
            session: event.map(|event| event.session.clone()),
            workspace: event.and_then(|event| event.directory.clone()),
            message: message.to_owned(),
            process,
        });
    }
}

fn say_unprotected(failure: &Failure) {
    output::talk_of_hook(&format!("backtrail: not protected: {}", failure.message()));
}

/// Returns whether the event needs a worker. Most tool calls only read: no process is started for them.
fn is_of_interest(event: &HookEvent) -> bool {
    match &event.moment {
        Moment::BeforeTool(call) | Moment::AfterTool(call) => tools::may_change_files(call),
        _ => true,
    }
}

/// Returns the time that the agent waits. It is longest for checkpoints that must be taken before something changes.
fn patience(moment: &Moment) -> Duration {
    Duration::from_millis(match moment {
        Moment::BeforeTool(_) | Moment::Prompt(_) => 15_000,
        Moment::AfterTool(_) => 10_000,
        Moment::SessionStart { .. } | Moment::TurnEnd | Moment::SubagentEnd | Moment::SubagentStart => 5_000,
        // Agents stop waiting for this hook soon.
        Moment::SessionEnd => 1_000,
    })
}

/// Reads the payload from stdin. Stops waiting for an agent that does not close stdin: the input so far may be
/// complete.
fn payload_of_agent() -> std::io::Result<Vec<u8>> {
    let stdin = std::io::stdin();
    let deadline = Instant::now() + PATIENCE_FOR_PAYLOAD;
    let mut payload = Vec::new();
    let mut part = vec![0; 64 << 10];
    while (payload.len() as u64) < MAX_PAYLOAD_BYTES {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        match rustix::event::poll(&mut [PollFd::new(&stdin, PollFlags::IN)], left.as_ref()) {
            Ok(0) => break,
            Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(&stdin, &mut part) {
            // Stdin was closed from the start, or is at its end.
            Ok(0) | Err(Errno::BADF) => break,
            Ok(length) => payload.extend(&part[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(payload)
}

fn read_payload() -> std::io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    std::io::stdin().lock().take(MAX_PAYLOAD_BYTES).read_to_end(&mut payload)?;
    Ok(payload)
}

/// Returns the arguments of `hook`, or `None` if this is another command. Does not parse the rest of the command line,
/// because an unknown argument must not end in a usage error.
pub(crate) fn words_of_hook(words: &[OsString]) -> Option<&[OsString]> {
    let position = words.iter().skip(1).position(|word| !word.to_string_lossy().starts_with('-'))? + 1;
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    let rest = &words[position + 1..];
    (words[position] == "hook" && !rest.iter().any(is_help)).then_some(rest)
}
