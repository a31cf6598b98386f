//! Worktrees of the user repository for forks, made by the git program.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use backtrail::Error;

use crate::{failure::Failure, settings::hide_git_variables};

/// Makes each directory a worktree at the commit of the repository, without any files. The workspace must be the top
/// of the repository: a worktree always has all of it.
pub(crate) fn add(workspace: &Path, directories: &[PathBuf]) -> Result<(), Failure> {
    let top = git(workspace, &["rev-parse", "--show-cdup"])?;
    if !top.status.success() || !top.stdout.trim_ascii().is_empty() {
        let message = format!("--git needs a git repository whose top is {}", workspace.display());
        return Err(Failure::usage(message, Some("fork without --git")));
    }
    for directory in directories {
        let mut command = command(workspace);
        command.args(["worktree", "add", "--quiet", "--detach", "--no-checkout", "--"]).arg(directory);
        must_succeed(run(command)?, "git worktree add")?;
    }
    Ok(())
}

/// Fills the index of a new worktree from its commit. The files stay as they are.
pub(crate) fn set_index(worktree: &Path) -> Result<(), Failure> {
    must_succeed(git(worktree, &["reset", "--quiet", "--mixed"])?, "git reset")
}

fn git(directory: &Path, words: &[&str]) -> Result<Output, Failure> {
    let mut command = command(directory);
    command.args(words);
    run(command)
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    hide_git_variables(&mut command);
    // A hook of the user would run in a directory that has no files yet.
    command.arg("-C").arg(directory).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    command
}

fn run(mut command: Command) -> Result<Output, Failure> {
    command.output().map_err(|source| {
        let source = match source.kind() {
            io::ErrorKind::NotFound => io::Error::other("it is not installed, or not on PATH"),
            _ => source,
        };
        Error::Io { action: "run", path: "git".into(), source }.into()
    })
}

fn must_succeed(done: Output, what: &str) -> Result<(), Failure> {
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let failure = Failure::from(Error::GitState { reason: format!("{what} failed: {said}") });
    Err(failure.with_hint("fork without --git, or mend the repository first"))
}
