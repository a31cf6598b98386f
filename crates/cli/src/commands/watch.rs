//! `watch`: watches the workspace, so that saves cost what changed.

use std::{
    io::{self, BufRead, BufReader, Read},
    os::{fd::AsFd, unix::net::UnixStream},
    process::{ExitCode, Stdio},
    time::Duration,
};

use backtrail::{AutoOutcome, AutoSaver, Error, WatchEnd, WatchRequest, Watched, Workspace};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{WatchStatusJson, directories_watched, watch_status},
    process::own_command,
};

/// A watcher in the background ends after this long without a change and without a question.
const IDLE_END: Duration = Duration::from_secs(12 * 3600);

/// Watch the workspace, so that save, status and diff look only at what changed
///
/// Runs until Ctrl-C. There is one watcher for each workspace; a second one says that the first is running. A save never
/// depends on a watcher: if the watcher is not certain, everything is scanned.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Run in the background, until --stop, until the workspace is gone, or until nothing happened for 12 hours
    #[arg(long)]
    detach: bool,
    /// Show what the watcher of the workspace is doing
    #[arg(long, conflicts_with_all = ["detach", "stop"])]
    status: bool,
    /// End the watcher of the workspace
    #[arg(long, conflicts_with = "detach")]
    stop: bool,
    /// Set in the process that --detach starts
    #[arg(long, hide = true)]
    in_background: bool,
}

pub(crate) fn run(args: &WatchArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.status {
        return status(invocation);
    }
    if args.stop {
        return stop(invocation);
    }
    if !cfg!(target_os = "linux") {
        let hint = "saves work without it: they look at every file";
        return Err(Failure::usage("watch is available on Linux only", Some(hint)));
    }
    let workspace = invocation.workspace_to_write(Protection::Kept)?;
    if workspace.watcher()?.is_some() {
        return runs_already(&workspace, invocation);
    }
    if args.detach { detach(&workspace, invocation) } else { watch(args, &workspace, invocation) }
}

fn watch(args: &WatchArgs, workspace: &Workspace, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if args.in_background {
        // A session of its own: closing the terminal does not end it. If this fails, it may end with the terminal.
        let _ = rustix::process::setsid();
    }
    let stopped = signals().map_err(|source| Error::Io { action: "handle", path: "signals".into(), source })?;
    let request = WatchRequest {
        idle_end: args.in_background.then_some(IDLE_END),
        ..WatchRequest::new(invocation.now.timestamp())
    };
    let mut told = Ok(());
    let ready = &mut |directories: u64| {
        let directories = directories_watched(directories);
        told = output.done(&format!("watching {} ({directories})", workspace.root().display()));
    };
    let watched = workspace.watch(&request, &NoCheckpoints, stopped.as_fd(), ready)?;
    told?;
    match watched {
        Watched::RunsElsewhere => runs_already(workspace, invocation),
        Watched::Ended(WatchEnd::Gone) => {
            let root = workspace.root().display();
            output.note(&format!("the watcher ended: {root} or its store was moved or removed"));
            Ok(ExitCode::SUCCESS)
        }
        Watched::Ended(WatchEnd::Stopped | WatchEnd::Idle) => Ok(ExitCode::SUCCESS),
    }
}

/// A watcher that takes no checkpoints.
struct NoCheckpoints;

impl AutoSaver for NoCheckpoints {
    fn save(&self) -> AutoOutcome {
        AutoOutcome::Done
    }
}

/// Returns a socket that can be read once a signal asks this process to end.
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}

fn runs_already(workspace: &Workspace, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let pid = workspace.watcher()?.map(|report| report.pid).filter(|pid| *pid > 0);
    let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    invocation.output.done(&format!("a watcher is already running{process}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the watcher as a process of its own, and waits until it is ready.
fn detach(workspace: &Workspace, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let fail = |source| Error::Io { action: "start", path: "backtrail watch".into(), source };
    let mut command = own_command().map_err(fail)?;
    command.arg("--workspace").arg(workspace.root()).arg("--store").arg(workspace.store_directory());
    command.args(["watch", "--in-background"]);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(fail)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(fail)?;
    }
    if line.is_empty() {
        // It ended without a word on stdout.
        let mut problem = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            stderr.read_to_string(&mut problem).map_err(fail)?;
        }
        child.wait().map_err(fail)?;
        let problem = problem.trim().strip_prefix("error: ").unwrap_or(problem.trim()).to_owned();
        return Err(fail(io::Error::other(problem)).into());
    }
    let line = line.trim_end();
    invocation.output.done(&match line.starts_with("watching ") {
        true => format!("{line} in the background, process {}; end it with: backtrail watch --stop", child.id()),
        false => line.to_owned(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn status(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let found = workspace.watcher();
    // A watcher that does not answer holds its place nevertheless.
    let (is_running, report) = match found {
        Ok(report) => (report.is_some(), report),
        Err(_) => (true, None),
    };
    if invocation.output.is_json() {
        invocation.output.json(&WatchStatusJson::new(is_running, report.as_ref()))?;
    } else {
        invocation.output.text(&watch_status(is_running, report.as_ref(), &invocation.now))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn stop(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let sentence = if workspace.stop_watcher()? { "the watcher has ended" } else { "no watcher is running" };
    invocation.output.done(sentence)?;
    Ok(ExitCode::SUCCESS)
}
