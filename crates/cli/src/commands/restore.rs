//! `restore`: makes the workspace, or some paths, equal to a checkpoint.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{
    Change, CheckpointId, ChosenChanges, Direction, Dropped, Error, ErrorCode, HunkChoice, Only, Reason,
    RestoreOutcome, RestoreRequest, TakenBack, Workspace, json::RestoreJson,
};
use clap::{Args, ValueEnum};

use crate::{
    cli::text,
    failure::Failure,
    hooks::{
        Sessions,
        conversation::{self, Fork},
    },
    hunk_picker,
    invocation::Invocation,
    output::{
        Restore, WithConversation, also_notes, conversation_text, lacking_warnings, plan_text, restored_text,
        restored_warnings, shell_path, title, way_back,
    },
    picker,
    question::can_be_asked,
};

/// Make the workspace, or only some paths, equal to a checkpoint
///
/// A safety checkpoint is taken first, so nothing is lost, and `backtrail undo` takes the restore back. Paths that the
/// checkpoint skipped, and paths that are not captured, are never changed. Without an ID, on a terminal, you choose
/// from a list.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    id: Option<String>,
    /// Only these files and directories
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show what would happen, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Restore everything, only files, or only the agent's own state files
    #[arg(long, value_enum, default_value_t = OnlyWord::All)]
    only: OnlyWord,
    /// Also remove files that an incomplete checkpoint does not have
    #[arg(long)]
    exact: bool,
    /// Skip paths that have something in the way, instead of refusing
    #[arg(long)]
    skip_conflicts: bool,
    /// Also restore HEAD and the branch of your git repository, and reset the index to that commit
    #[arg(long, conflicts_with = "paths")]
    git: bool,
    /// Also restore the agent's conversation, as a new session
    #[arg(long)]
    conversation: bool,
    /// Restore only if the plan is still the one that --dry-run showed
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    #[command(flatten)]
    hunks: HunkArgs,
}

/// The options that choose hunks.
#[derive(Debug, Args)]
pub(crate) struct HunkArgs {
    /// With --dry-run: also list the hunks, with their ids
    #[arg(long, requires = "dry_run")]
    hunks: bool,
    /// Only this hunk, by its id; can be given several times
    #[arg(long, value_name = "H", value_parser = text(), conflicts_with = "hunks")]
    hunk: Vec<String>,
    /// Ask about each hunk, on a terminal
    #[arg(short, long, conflicts_with_all = ["hunks", "hunk"])]
    pub(crate) patch: bool,
}

impl HunkArgs {
    /// Returns the choice that the options make. For `-p`, the hunks are listed first.
    pub(crate) fn choice(&self, invocation: &Invocation) -> Result<HunkChoice, Failure> {
        if self.patch && !can_be_asked(invocation) {
            let hint = "list the hunks with --dry-run --hunks, then give each one that you want with --hunk";
            return Err(Failure::usage("-p needs a terminal to ask on; use --hunk without one", Some(hint)));
        }
        Ok(match (self.hunks || self.patch, self.hunk.is_empty()) {
            (_, false) => HunkChoice::Only(ChosenChanges { hunks: self.hunk.clone(), paths: Vec::new() }),
            (true, true) => HunkChoice::Listed,
            (false, true) => HunkChoice::All,
        })
    }

    /// Asks the user about each of these changes. Returns `None` if the user chose nothing.
    pub(crate) fn ask(
        &self,
        changes: &[Change],
        doing: &str,
        invocation: &Invocation,
    ) -> Result<Option<HunkChoice>, Failure> {
        let chosen = hunk_picker::choose(changes, doing, invocation)?;
        if chosen == ChosenChanges::default() {
            invocation.output.done("nothing was chosen, and nothing was changed")?;
            return Ok(None);
        }
        Ok(Some(HunkChoice::Only(chosen)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnlyWord {
    All,
    Files,
    State,
}

impl From<OnlyWord> for Only {
    fn from(word: OnlyWord) -> Self {
        match word {
            OnlyWord::All => Self::All,
            OnlyWord::Files => Self::Files,
            OnlyWord::State => Self::State,
        }
    }
}

pub(crate) fn run(args: &RestoreArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let hunks = args.hunks.choice(invocation)?;
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let target = match &args.id {
        Some(word) => invocation.checkpoint_not_path(&workspace, word, "restore @", &args.paths)?,
        None if args.hunks.patch => invocation.checkpoint(&workspace, "@")?,
        None => match picker::choose(&workspace, invocation)? {
            Some(target) => target,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    let mut request = RestoreRequest {
        target,
        scope: invocation.scope(&workspace, &args.paths)?,
        only: args.only.into(),
        exact: args.exact,
        skip_conflicts: args.skip_conflicts,
        git: args.git,
        plan: args.plan.clone(),
        hunks,
        also: Vec::new(),
    };
    let is_pointless = !workspace.concerns_something(&request)?;
    let fork = args.conversation.then(|| conversation(&workspace, &target, invocation)).transpose()?;
    let explained = |failure: Failure| match failure {
        Failure::Operation(error) => explain(error, &workspace, &args.paths, invocation),
        other => other,
    };
    if args.dry_run && is_pointless && fork.is_none() && !invocation.output.is_json() {
        workspace.plan_restore(&request).map_err(|error| explained(error.into()))?;
        invocation.output.text(&format!("{}\n", nothing_concerned(args)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        return preview(&workspace, &request, fork.as_ref(), invocation).map_err(explained);
    }
    if args.hunks.patch {
        let plan = workspace.plan_restore(&request).map_err(|error| explained(error.into()))?;
        match args.hunks.ask(&plan.changes, "restore", invocation)? {
            Some(chosen) => request.hunks = chosen,
            None => return Ok(ExitCode::SUCCESS),
        }
    }
    let lacking = lacking(&workspace, &request)?;
    let done = restore_with(&workspace, &request, fork.as_ref(), invocation).map_err(explained)?;
    if is_pointless && fork.is_none() && !invocation.output.is_json() {
        invocation.output.done(nothing_concerned(args))?;
        return Ok(ExitCode::SUCCESS);
    }
    tell_with(&workspace, &done, &lacking, Direction::Forward, fork.as_ref(), invocation)
}

/// Returns the reason why a request concerns no path.
fn nothing_concerned(args: &RestoreArgs) -> &'static str {
    match (args.only, args.paths.is_empty()) {
        (OnlyWord::State, true) => "nothing to do: there are no state files",
        (OnlyWord::State, false) => "nothing to do: none of the named paths is a state file",
        _ => "nothing to do: the checkpoint covers none of the named paths",
    }
}

/// Plans how to bring back the conversation that belongs to a checkpoint.
pub(crate) fn conversation(
    workspace: &Workspace,
    target: &CheckpointId,
    invocation: &Invocation,
) -> Result<Fork, Failure> {
    let sessions = Sessions::in_directory(invocation.environment().own_file("sessions")?);
    conversation::plan(workspace, target, &sessions)
}

/// Converts an error into a failure. Adds a hint if a path can't be restored.
fn explain(error: Error, workspace: &Workspace, named: &[PathBuf], invocation: &Invocation) -> Failure {
    let Error::LeftOutPath { path, reason, .. } = &error else {
        return named.iter().fold(error.into(), |failure, named| invocation.explain_path(workspace, failure, named));
    };
    let is_it = |named: &&PathBuf| invocation.path(workspace, named).is_ok_and(|found| found == *path);
    let word = named.iter().find(is_it).map_or_else(|| path.to_string(), |named| shell_path(named));
    let hint = match reason {
        Reason::Git => "git's own files are never captured; restore HEAD, branch and index with --git".to_owned(),
        _ if workspace.history(path).is_ok() => {
            format!("other checkpoints have it; see which with: backtrail history {word}")
        }
        Reason::Ignored | Reason::Rebuildable => {
            // Only the hint depends on this: a rule that can't be found is not named.
            let rule = workspace.ignored_by(path).ok().flatten();
            let rule = rule.map(|rule| format!("the pattern {} in {} excludes it; ", rule.pattern, rule.source));
            let rule = rule.unwrap_or_default();
            format!("{rule}no checkpoint has it; capture it from now on with: backtrail save --include {word}")
        }
        _ => "no checkpoint has it; see what is skipped with: backtrail doctor".to_owned(),
    };
    Failure::Hinted { error, hint }
}

pub(crate) fn preview(
    workspace: &Workspace,
    request: &RestoreRequest,
    fork: Option<&Fork>,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let plan = workspace.plan_restore(request)?;
    let lacking = lacking(workspace, request)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&WithConversation::new(RestoreJson::from(&plan).without(&lacking), fork))?;
    } else {
        output.text(&plan_text(&plan, &lacking, &workspace.get(&request.target)?, output.paint))?;
        if let Some(path) = fork.and_then(Fork::copy).map(|copy| &copy.path) {
            output.note(&format!(
                "the conversation would be restored as a new session, below {}",
                path.parent().unwrap_or(path).display()
            ));
        }
        output.note(&format!("apply exactly this plan with: --plan {}", plan.hash));
    }
    also_notes(&plan.also).iter().for_each(|note| output.note(note));
    lacking_warnings(&lacking).iter().for_each(|warning| output.warn(warning));
    Ok(ExitCode::SUCCESS)
}

/// Returns the paths of the request that its checkpoint could not hold, and that stay as they are.
pub(crate) fn lacking(workspace: &Workspace, request: &RestoreRequest) -> Result<Vec<Dropped>, Failure> {
    let mut lacking = workspace.unprotected_at(&request.target)?;
    lacking.retain(|dropped| request.scope.contains(&dropped.path));
    Ok(lacking)
}

/// Restores the workspace, together with the conversation if the user asked for it.
///
/// The conversation is written first: if that fails, no file has changed.
pub(crate) fn restore_with(
    workspace: &Workspace,
    request: &RestoreRequest,
    fork: Option<&Fork>,
    invocation: &Invocation,
) -> Result<RestoreOutcome, Failure> {
    let written = fork.map(|fork| Written::write(fork, invocation)).transpose()?;
    let progress = invocation.output.progress(workspace, "restoring");
    let done = workspace.restore(request, invocation.now.timestamp());
    drop(progress);
    if let (Err(error), Some(written)) = (&done, written) {
        written.take_back_after(error);
    }
    Ok(done?)
}

/// A conversation that has been written.
struct Written<'f> {
    fork: &'f Fork,
    invocation: &'f Invocation,
}

impl<'f> Written<'f> {
    fn write(fork: &'f Fork, invocation: &'f Invocation) -> Result<Self, Failure> {
        let written = Self { fork, invocation };
        let Some(copy) = fork.copy() else { return Ok(written) };
        let is_new = copy.files().all(|(path, _)| path.symlink_metadata().is_err());
        copy.write().map_err(|failure| {
            if is_new {
                written.remove();
            }
            failure.with_hint("nothing was restored; to restore only the files, leave out --conversation")
        })?;
        Ok(written)
    }

    /// Removes the conversation after a failed restore. If the files may have been restored anyway, or will be by
    /// recovery, the conversation belongs to them and stays.
    fn take_back_after(&self, error: &Error) {
        let is_certain = match error.code() {
            ErrorCode::Io | ErrorCode::NoSpace | ErrorCode::Internal | ErrorCode::StoreDamaged => false,
            _ => !matches!(error, Error::Unfinished { .. }),
        };
        if is_certain {
            self.remove();
        } else if self.fork.copy().is_some() {
            self.invocation.output.note(conversation_text(self.fork).trim_end());
        }
    }

    fn remove(&self) {
        for (path, _) in self.fork.copy().iter().flat_map(|copy| copy.files()) {
            match std::fs::remove_file(path) {
                // If there is no file, it was never created: its directory is missing, or is not a directory.
                Err(error) if path.symlink_metadata().is_ok() => {
                    let warning = format!("the conversation can't be removed from {}: {error}", path.display());
                    self.invocation.output.warn(&warning);
                }
                _ => {}
            }
        }
    }
}

/// Returns the title of the operation that is taken back. A deleted checkpoint has only its id.
pub(crate) fn named(workspace: &Workspace, taken_back: &TakenBack) -> Restore {
    let TakenBack { target, time, is_revert, is_adoption, ref deleted, .. } = *taken_back;
    let target = workspace.get(&target).map_or_else(|_| target.short(), |checkpoint| title(&checkpoint));
    Restore { target, time, is_revert, is_adoption, deleted: deleted.len() }
}

/// Reports the result of a restore, undo or redo.
pub(crate) fn tell(
    workspace: &Workspace,
    done: &RestoreOutcome,
    direction: Direction,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    tell_with(workspace, done, &[], direction, None, invocation)
}

/// Reports the result of a restore, and how to continue the conversation that came back with it.
pub(crate) fn tell_with(
    workspace: &Workspace,
    done: &RestoreOutcome,
    lacking: &[Dropped],
    direction: Direction,
    fork: Option<&Fork>,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&WithConversation::new(RestoreJson::from(done).without(lacking), fork))?;
    } else {
        let taken_back = done.taken_back.as_ref().map(|taken_back| named(workspace, taken_back).said(&invocation.now));
        output.done(&restored_text(done, lacking, direction, &done.checkpoint, taken_back, output.paint))?;
        if let Some(fork) = fork {
            output.text(&conversation_text(fork))?;
        }
        also_notes(&done.also).iter().for_each(|note| output.note(note));
        if !done.changes.is_empty() || !done.undeleted.is_empty() || !done.deleted.is_empty() {
            output.note(way_back(direction));
        }
    }
    restored_warnings(done).iter().chain(&lacking_warnings(lacking)).for_each(|warning| output.warn(warning));
    Ok(ExitCode::SUCCESS)
}
