//! `prune`: applies the retention policy now and reclaims space.

use std::process::ExitCode;

use backtrail::Error;
use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{PruneJson, bytes, kept_text, loss_lines, plural, verdicts_text},
    process_pins::let_go_of_abandoned,
};

/// Delete the checkpoints that need not be kept, and reclaim space
///
/// The number to keep of each kind is set under [retention] in your own settings file; backtrail.toml can only raise
/// it. Never deleted: manual, feature and pinned checkpoints, the one that the workspace stands on, and for 7 days
/// safety checkpoints with contents that no other checkpoint has.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Show what would be deleted and kept, with the reasons, but delete nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: also list each checkpoint that would be kept
    #[arg(long, short, requires = "dry_run")]
    verbose: bool,
}

pub(crate) fn run(args: &PruneArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.dry_run { preview(args.verbose, invocation) } else { prune(invocation) }
}

fn preview(verbose: bool, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let plan = workspace.plan_prune(invocation.now.timestamp())?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&PruneJson::from(&plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = plan.verdicts.iter().filter(|verdict| verbose || !verdict.keep);
    let named = named.map(|verdict| Ok((verdict, workspace.get(&verdict.id)?))).collect::<Result<Vec<_>, Error>>()?;
    output.text(&verdicts_text(&named, output.width(), output.paint))?;
    if !verbose {
        output.text(&kept_text(&plan.verdicts, output.width(), output.paint))?;
    }
    let gone = plan.verdicts.iter().filter(|verdict| !verdict.keep).count();
    let kept = plan.verdicts.len() - gone;
    let each = if verbose || kept == 0 { "" } else { "; list them with --verbose" };
    loss_lines(&plan.losses).iter().for_each(|line| output.warn(&format!("would be lost: {line}")));
    plan.not_applied.iter().for_each(|limit| output.warn(&limit.to_string()));
    output.note(&format!("would delete {gone} and keep {kept}; the store uses {}{each}", bytes(plan.bytes)));
    Ok(ExitCode::SUCCESS)
}

fn prune(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::Waived)?;
    let_go_of_abandoned(&workspace, invocation);
    let progress = invocation.output.progress(&workspace, "pruning");
    let pruned = workspace.prune(invocation.now.timestamp());
    drop(progress);
    let pruned = pruned?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&PruneJson::from(&pruned))?;
    } else {
        output.done(&format!(
            "deleted {}, kept {}; the store uses {} now, {} before",
            plural(pruned.deleted.len(), "checkpoint"),
            pruned.kept,
            bytes(pruned.bytes_after),
            bytes(pruned.bytes_before)
        ))?;
        pruned.not_applied.iter().for_each(|limit| output.warn(&limit.to_string()));
    }
    Ok(ExitCode::SUCCESS)
}
