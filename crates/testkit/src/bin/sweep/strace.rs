//! Runs the program under strace: once to record its calls, then with a fault at one of them.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use crate::{
    fault::{self, Fault, Point},
    place::Place,
    scenario::Scenario,
};

/// A system call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) thread: String,
    pub(crate) name: String,
    /// Set if the call was made before the program's own code runs.
    pub(crate) is_of_loader: bool,
    /// Set if the call opens a file for writing.
    pub(crate) is_for_writing: bool,
    /// The number of bytes that the call wrote.
    pub(crate) written: Option<u64>,
}

/// The result of a run with a fault.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) was_injected: bool,
    /// The exit code. `None` if the program was killed.
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// Returns the reason why strace can't be used here. Returns `None` if it can.
pub(crate) fn unusable_reason() -> Option<String> {
    let tried = Command::new("strace").args(["-f", "--seccomp-bpf", "-o", "/dev/null", "true"]).output();
    match tried {
        Err(_) => Some("strace is not installed".into()),
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("strace can't trace: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn command(place: &Place, options: &[&str], scenario: &Scenario) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "0", "-o"]).arg(place.log()).args(options);
    if let Some(always) = scenario.always {
        command.args(["-e", always]);
    }
    command.args(place.command_line(scenario));
    place.set_environment(&mut command);
    command.stdin(Stdio::null());
    command
}

/// Returns the calls of a run without a fault.
///
/// # Panics
///
/// Panics if the run fails: then there is nothing to sweep.
pub(crate) fn baseline(place: &Place, scenario: &Scenario) -> Vec<Call> {
    let trace = format!("trace={},sigaltstack,poll", fault::watched());
    let output = command(place, &["-e", &trace], scenario).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(scenario.exit), "{} fails without any fault: {message}", scenario.name);
    calls(&String::from_utf8_lossy(&std::fs::read(place.log()).unwrap()))
}

fn calls(text: &str) -> Vec<Call> {
    let mut found = Vec::new();
    let mut has_started = false;
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let Some((name, arguments)) = rest.split_once('(') else { continue };
        if rest.starts_with("<...") || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        // These calls belong to the start-up code of Rust or git, which runs after the dynamic loader has finished.
        has_started |= name == "sigaltstack" || name == "poll" || rest.contains("/dev/null");
        if name == "sigaltstack" || name == "poll" {
            continue;
        }
        let written = arguments.rsplit_once(" = ").and_then(|(_, result)| result.trim().parse().ok());
        let written = written.filter(|written| *written > 0);
        let is_for_writing = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| arguments.contains(flag));
        let (thread, name) = (thread.to_owned(), name.to_owned());
        found.push(Call { thread, name, is_of_loader: !has_started, is_for_writing, written });
    }
    if !has_started {
        found.iter_mut().for_each(|call| call.is_of_loader = false);
    }
    found
}

/// Runs a scenario with a fault.
pub(crate) fn inject(place: &Place, scenario: &Scenario, point: &Point) -> Done {
    let also = if scenario.always.is_some() { ",renameat2" } else { "" };
    let trace = format!("trace={}{also}", point.call);
    let injection = point.injection();
    let mut options = vec!["-e", &trace, "-e", &injection];
    if point.fault != Fault::Kill {
        // Faster, but an injected signal gets lost with this option.
        options.push("--seccomp-bpf");
    }
    let output = command(place, &options, scenario).output().unwrap();
    let log = std::fs::read(place.log()).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let was_killed = output.status.signal() == Some(9);
    Done {
        was_injected: was_killed || log.lines().any(|line| is_injected(line, &point.call)),
        code: if was_killed { None } else { output.status.code() },
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn is_injected(line: &str, call: &str) -> bool {
    line.contains("killed by SIGKILL") || (line.contains("INJECTED") && line.contains(&format!(" {call}")))
}
