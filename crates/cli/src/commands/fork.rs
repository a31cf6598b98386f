//! `fork` and `forks`: makes workspaces with the files of a checkpoint, and lists them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::{ForkRequest, LeftOut, OptionsOf, json::ForksJson};
use clap::Args;

use crate::{
    cli::{from_one, text},
    failure::Failure,
    git_worktree,
    invocation::{Invocation, Protection},
    output::{forked_sentence, forks_text, not_copied_warning},
};

/// Make a new workspace with the files of a checkpoint, or of the disk
///
/// For attempts side by side: the fork has the same files, a history of its own that starts with the fork point, and
/// remembers this workspace. Directories that checkpoints skip, such as node_modules, are links to those here; other
/// skipped files are not in it.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct ForkArgs {
    /// The checkpoint [default: the files on disk]
    #[arg(value_name = "ID", value_parser = text())]
    id: Option<String>,
    /// The new directory; it must not exist, or be empty
    #[arg(value_name = "DIR", required = true)]
    directory: PathBuf,
    /// Make N forks: DIR-1 to DIR-N
    #[arg(long, value_name = "N", value_parser = from_one)]
    count: Option<u64>,
    /// Copy what checkpoints skip, instead of linking directories
    #[arg(long)]
    with_left_out: bool,
    /// Make each fork a worktree of your git repository, at the same commit
    #[arg(long)]
    git: bool,
}

/// List the forks of this workspace
#[derive(Debug, Args)]
pub(crate) struct ForksArgs {}

pub(crate) fn run(args: &ForkArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::Kept)?;
    let from = args.id.as_ref().map(|id| invocation.checkpoint(&workspace, id)).transpose()?;
    let request = ForkRequest {
        from,
        directories: directories(&invocation.file(&args.directory)?, args.count),
        stores: invocation.stores()?,
        left_out: if args.with_left_out { LeftOut::Copied } else { LeftOut::Linked },
        may_hold_git: false,
    };
    let output = &invocation.output;
    let progress = output.progress(&workspace, "copying");
    let forked = if args.git {
        workspace.check_fork(&request)?;
        git_worktree::add(workspace.root(), &request.directories)?;
        let forked = workspace.fork(&ForkRequest { may_hold_git: true, ..request }, invocation.now.timestamp())?;
        forked.iter().try_for_each(|forked| git_worktree::set_index(&forked.path))?;
        forked
    } else {
        workspace.fork(&request, invocation.now.timestamp())?
    };
    drop(progress);
    for forked in &forked {
        not_copied_warning(forked).iter().for_each(|warning| output.warn(warning));
    }
    if output.is_json() {
        output.json(&ForksJson::from(forked.as_slice()))?;
        return Ok(ExitCode::SUCCESS);
    }
    for forked in &forked {
        output.done(&forked_sentence(forked))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the directories of the forks: the named one, or that many with a number after the name.
fn directories(named: &Path, count: Option<u64>) -> Vec<PathBuf> {
    let Some(count) = count else { return vec![named.to_owned()] };
    let numbered = |number: u64| {
        let mut name: OsString = named.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{number}"));
        named.with_file_name(name)
    };
    (1..=count).map(numbered).collect()
}

pub(crate) fn list(_: &ForksArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let user = invocation.user_settings()?;
    let options = |root: &Path| invocation.options_at(&user, root);
    let forks = workspace.forks(OptionsOf(&options))?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ForksJson::from(forks.as_slice()))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&forks_text(&forks, output.paint))?;
    if forks.is_empty() {
        output.note("this workspace has no forks; make one with: backtrail fork DIR");
    }
    Ok(ExitCode::SUCCESS)
}
