//! Runs the real git program, isolated from the user's configuration.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

/// Runs git in a directory and returns its output. The caller checks the exit code.
///
/// # Panics
///
/// Panics if git can't be started.
pub fn git_output(directory: &Path, arguments: &[&str]) -> Output {
    command(directory).args(arguments).output().unwrap_or_else(|error| panic!("can't run git: {error}"))
}

/// Runs git in a directory and returns its stdout.
///
/// # Panics
///
/// Panics if git fails.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = git_output(directory, arguments);
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs git in a directory with this stdin, and returns its output. The caller checks the exit code.
///
/// # Panics
///
/// Panics if git can't be run.
pub fn git_output_with(directory: &Path, arguments: &[&str], input: Vec<u8>) -> Output {
    let mut child = command(directory)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("can't run git: {error}"));
    let mut stdin = child.stdin.take().unwrap_or_else(|| panic!("git has no stdin"));
    // Written by another thread while this one reads: otherwise both pipes may fill up. Git may end before it has read
    // all input.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("git did not end: {error}"));
    drop(writer.join());
    output
}

/// Runs git in a directory with this stdin, and returns its stdout.
#[track_caller]
pub(crate) fn git_with_input(directory: &Path, arguments: &[&str], input: Vec<u8>) -> Vec<u8> {
    let output = git_output_with(directory, arguments, input);
    assert!(output.status.success(), "git {arguments:?}");
    output.stdout
}

/// Returns the id that git gives a file with these bytes.
///
/// # Panics
///
/// Panics if git can't be run.
pub fn blob_id(bytes: &[u8]) -> String {
    let mut child = command(Path::new("/"))
        .args(["hash-object", "--stdin", "--no-filters"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("can't run git: {error}"));
    let mut input = child.stdin.take().unwrap_or_else(|| panic!("git has no stdin"));
    input.write_all(bytes).unwrap_or_else(|error| panic!("can't write to git: {error}"));
    drop(input);
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("git did not end: {error}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in [("NAME", "Test"), ("EMAIL", "test@example.invalid")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    // The repository of a test must not start background work.
    command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "init.defaultBranch=main"]);
    command
}
