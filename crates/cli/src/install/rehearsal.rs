//! Tests an installed command: sends it a sample payload in a scratch workspace, and checks the result.

use std::{
    io::{self, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use backtrail::{Error, Kind, ListFilter, app_files};
use clap::Parser;
use tempfile::TempDir;

use crate::{
    cli::Cli,
    failure::Failure,
    hooks::{Agent, sample},
    invocation::Invocation,
    settings::Environment,
};

/// The result of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rehearsal {
    /// The command line, as the agent runs it.
    pub(crate) line: String,
    /// The run time.
    pub(crate) took: Duration,
    /// The reason why no checkpoint was taken. `None` if one was taken.
    pub(crate) problem: Option<String>,
}

/// Runs the command line with a sample prompt.
pub(crate) fn rehearse(agent: Agent, line: &str, invocation: &Invocation) -> Result<Rehearsal, Failure> {
    let temporary = std::env::temp_dir();
    let failed = |source: io::Error| Error::Io { action: "test the hook in", path: std::env::temp_dir(), source };
    let scratch = temporary.canonicalize().and_then(|place| TempDir::with_prefix_in("backtrail-install-", place));
    let scratch = scratch.map_err(failed)?;
    let project = scratch.path().join("project");
    // The umask may have removed the owner's permissions from the scratch directory.
    let made = app_files::make_private_directories(scratch.path())
        .and_then(|()| app_files::make_private_directories(&project))
        .and_then(|()| app_files::create_new(&project.join("file"), 0o600)?.write_all(b"a sample\n"));
    made.map_err(failed)?;
    let environment = Environment::scratch(scratch.path(), project.clone());

    let started = Instant::now();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(&project);
    environment.hand_over(&mut command);
    command.envs(invocation.environment().programs().map(|programs| ("PATH", programs)));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let payload = sample::prompt(agent, &project).to_string();
    if let Some(mut stdin) = child.stdin.take() {
        // A missing command reads nothing. Its output is checked below.
        drop(stdin.write_all(payload.as_bytes()));
    }
    let done = child.wait_with_output().map_err(failed)?;
    let took = started.elapsed();

    let here = Cli::try_parse_from(["backtrail", "-w", "."]).map_err(|error| Error::Internal(error.to_string()))?;
    let there = invocation.elsewhere(here.options, environment).workspace()?;
    let filter = ListFilter { kind: Some(Kind::Turn), session: Some(sample::SESSION.into()), ..ListFilter::default() };
    let has_checkpoint = !there.list(&filter)?.is_empty();
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().next().unwrap_or("it printed nothing").to_owned();
    let problem = match done.status.code() {
        Some(0) if has_checkpoint => None,
        Some(0) => Some(format!("it took no checkpoint ({said})")),
        Some(code) => Some(format!("it exited with {code} ({said})")),
        None => Some(format!("it was killed ({said})")),
    };
    let place = scratch.path().to_owned();
    scratch.close().map_err(|source| Error::Io { action: "remove", path: place, source })?;
    Ok(Rehearsal { line: line.to_owned(), took, problem })
}
