//! `diff`: shows the differences between two checkpoints, or between one and the files on disk.

use std::{ffi::OsString, os::unix::ffi::OsStrExt, path::PathBuf, process::ExitCode};

use backtrail::{CheckpointId, Diff, PatchLimits, PathGlob, Scope, Workspace, json::DiffJson};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{name_status, shell_words, shown_patch, stat, uncaptured_warnings},
};

/// Show the differences between two checkpoints, or between a checkpoint and the files on disk
///
/// Without a checkpoint, the one that the workspace stands on is compared with the files on disk. With one checkpoint,
/// that one is compared with the files on disk. FROM..TO is the same as FROM TO. At most 1 MiB of differences is shown
/// for each file, and 10 MiB in total. Binary files are shown with their sizes only. With --full, everything is printed,
/// as `git apply` accepts it.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The older checkpoint, or FROM..TO for both
    #[arg(value_parser = text())]
    from: Option<String>,
    /// The newer checkpoint
    #[arg(value_parser = text())]
    to: Option<String>,
    /// Only these files and directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only paths that this pattern matches, such as "*.md"; can be given several times
    #[arg(long, value_name = "PATTERN")]
    glob: Vec<OsString>,
    /// Show the number of changed lines instead of the lines
    #[arg(long, conflicts_with = "name_status")]
    stat: bool,
    /// Show only the paths and how they changed
    #[arg(long)]
    name_status: bool,
    /// Print everything, including binary files, as `git apply` accepts it
    #[arg(long, conflicts_with_all = ["stat", "name_status"])]
    full: bool,
    /// List the hunks of each file in the JSON answer
    #[arg(long, conflicts_with_all = ["stat", "name_status"])]
    hunks: bool,
}

/// The maximum size of a patch that is shown to the user.
const MAX_SHOWN_BYTES: usize = 10 << 20;
/// The maximum size of one file's part in it.
const MAX_SHOWN_FILE_BYTES: usize = 1 << 20;

/// The limits of a patch that is shown to the user.
pub(super) const SHOWN_LIMITS: PatchLimits<'static> = PatchLimits {
    hide: None,
    max_bytes: Some(MAX_SHOWN_BYTES),
    max_file_bytes: Some(MAX_SHOWN_FILE_BYTES),
    hunks: false,
    context: None,
};

/// The last line of a truncated patch. It looks like the start of a hunk without lines, so that `git apply` rejects the
/// patch.
pub(super) const REST_LEFT_OUT: &str = "@@ -1 +1 @@ the rest is not shown\n";

pub(crate) fn run(args: &DiffArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_scan()?;
    let (from, to) = sides(args, &workspace, invocation)?;
    let scope = invocation.known_scope(&workspace, &args.paths)?;
    let scope = selected(&workspace, (from, to), scope, &args.glob)?;
    let progress = invocation.output.progress(&workspace, "comparing");
    let diff = workspace.diff_within(from, to, &scope, &limits(args, invocation));
    drop(progress);
    let diff = diff?;
    let mut warnings = uncaptured_warnings(&diff.uncaptured);
    warnings.extend(cut_warning(&diff, args));
    show(diff, args, invocation)?;
    warnings.iter().for_each(|warning| invocation.output.warn(warning));
    Ok(ExitCode::SUCCESS)
}

/// Returns the two sides. `None` as the older side means that nothing was saved yet, and as the newer side the files on
/// disk.
fn sides(
    args: &DiffArgs,
    workspace: &Workspace,
    invocation: &Invocation,
) -> Result<(Option<CheckpointId>, Option<CheckpointId>), Failure> {
    let Some(first) = &args.from else { return Ok((workspace.current()?, None)) };
    if let Some(range) = invocation.range(workspace, first, None)? {
        if let Some(surplus) = &args.to {
            let problem = format!("{first:?} names both sides; {surplus:?} is one too many");
            return Err(Failure::usage(
                problem,
                Some("write paths behind two dashes: backtrail diff FROM..TO -- PATH"),
            ));
        }
        return Ok((Some(range.from), Some(range.to)));
    }
    let from = invocation.checkpoint_not_path(workspace, first, "diff --", &[])?;
    let meant = format!("diff {} --", shell_words([first]));
    let to = args.to.as_ref().map(|word| invocation.checkpoint_not_path(workspace, word, &meant, &[]));
    Ok((Some(from), to.transpose()?))
}

/// Returns the part of a scope that the patterns match: the changed paths among those.
fn selected(
    workspace: &Workspace,
    (from, to): (Option<CheckpointId>, Option<CheckpointId>),
    scope: Scope,
    patterns: &[OsString],
) -> Result<Scope, Failure> {
    if patterns.is_empty() {
        return Ok(scope);
    }
    let globs: Vec<PathGlob> = patterns.iter().map(|pattern| PathGlob::new(pattern.as_bytes())).collect();
    let changes = workspace.diff_within(from, to, &scope, &PatchLimits::NO_PATCH)?.changes;
    let paths = changes.into_iter().map(|change| change.path);
    Ok(Scope::Paths(paths.filter(|path| globs.iter().any(|glob| glob.matches(path))).collect()))
}

/// Returns the limits of the patch. Programs get all of it, users a part that they can read.
fn limits(args: &DiffArgs, invocation: &Invocation) -> PatchLimits<'static> {
    if args.stat || args.name_status {
        return PatchLimits::NO_PATCH;
    }
    if args.full || invocation.output.is_json() {
        return PatchLimits { hunks: args.hunks, ..PatchLimits::default() };
    }
    SHOWN_LIMITS
}

/// Returns a warning that names the part that is not shown, and how to see it. Returns `None` if everything is shown.
fn cut_warning(diff: &Diff, args: &DiffArgs) -> Option<String> {
    if args.stat || args.name_status {
        return None;
    }
    let what = match (diff.is_cut, diff.cut_files.as_slice()) {
        (true, _) => "only the first 10 MiB of the differences are shown".to_owned(),
        (false, []) => return None,
        (false, [file]) => format!("the differences of {file} are not shown in full"),
        (false, files) => format!("the differences of {} files are not shown in full", files.len()),
    };
    Some(format!("{what}; see everything with: backtrail diff --full"))
}

fn show(diff: Diff, args: &DiffArgs, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        let answer = DiffJson::from(diff);
        let is_sum = args.stat || args.name_status;
        return Ok(output.json(&if is_sum { answer.without_patch() } else { answer })?);
    }
    if diff.changes.is_empty() {
        let within = if diff.uncaptured.is_empty() { "" } else { " in files that can be saved" };
        output.note(&format!("no differences{within}"));
        return Ok(());
    }
    if args.stat {
        output.paged(&stat(&diff.changes, output.paint))?;
    } else if args.name_status {
        output.paged(&name_status(&diff.changes))?;
    } else {
        show_patch(diff, invocation)?;
    }
    Ok(())
}

fn show_patch(diff: Diff, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    let mut patch = diff.patch;
    if diff.is_cut {
        patch.push_str(REST_LEFT_OUT);
    }
    if output.is_terminal() || output.paint.is_on() {
        output.paged(&shown_patch(&patch, output.paint))?;
    } else {
        // Printed unchanged, so that a program can apply it.
        output.text(&patch)?;
    }
    Ok(())
}
