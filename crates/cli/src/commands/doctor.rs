//! `doctor`: explains the set-up. Only reads, and also works before the first checkpoint.

use std::{fs, path::Path, process::ExitCode};

use backtrail::{
    Error, Reason, Skipped, Workspace,
    settings::{WORKSPACE_FILE, WithoutEffect},
};
use clap::Args;

use crate::{
    commands::install::read_receipts,
    failure::Failure,
    file_system::FileSystem,
    hooks::{Agent, Checkup, Log, Sessions},
    invocation::{Invocation, Survey, is_skipped},
    output::{
        Check, DoctorJson, bytes, checks_text, json_line, plural, report_text, set_bytes, settings_text, title,
        visible, watcher_line, when,
    },
    report::Report,
};

/// The maximum number of paths that are named for one reason.
const MAX_NAMED: usize = 5;

/// The maximum number of unprotected paths that are named.
const MAX_UNPROTECTED: usize = 20;

/// Explain the setup: where the store is, what is skipped and why, what is wrong
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print what to attach to a bug report: versions, settings, and what happened, without contents, messages and paths
    #[arg(long)]
    report: bool,
}

pub(crate) fn run(args: &DoctorArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.report {
        return report(invocation);
    }
    let survey = invocation.survey()?;
    let checks = checks(&survey, invocation);
    let output = &invocation.output;
    if output.is_json() {
        output.json(&DoctorJson::from(checks.as_slice()))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&checks_text(&checks, output.line_width(), output.paint))?;
    let worth_a_look = checks.iter().filter(|check| !check.ok).count();
    if worth_a_look > 0 {
        output.note(&format!("{} marked LOOK", plural(worth_a_look, "line")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the report for a bug report. No field should hold the home directory; it is replaced in any case.
fn report(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let (output, environment) = (&invocation.output, invocation.environment());
    let report = Report::of(invocation, |survey| checks(survey, invocation));
    let text = if output.is_json() { json_line(&report)? } else { report_text(&report) };
    output.text(&environment.without_home(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn checks(survey: &Survey, invocation: &Invocation) -> Vec<Check> {
    let workspace = &survey.workspace;
    let places = [("workspace files", workspace.root()), ("store files", workspace.store_directory())];
    let mut checks = vec![place(survey, invocation), store(workspace)];
    checks.extend(places.map(|(name, path)| file_system(name, path)));
    checks.push(settings(survey, invocation));
    checks.extend(without_effect(workspace, invocation));
    // Reading all of a protected directory takes long, and the user does not mean it as a workspace before it has a
    // checkpoint.
    if survey.protected.is_none() || workspace.has_store().unwrap_or(true) {
        checks.extend(files(workspace, invocation));
    }
    checks.push(git(workspace));
    checks.push(found("restore", interrupted(workspace)));
    checks.extend(watcher(workspace));
    checks.extend(agents(workspace, invocation));
    checks
}

/// Returns the check of the watcher. Returns `None` if none is running.
fn watcher(workspace: &Workspace) -> Option<Check> {
    let report = workspace.watcher().transpose()?;
    Some(found("watcher", report.map(|report| (report.problem.is_none(), watcher_line(&report)))))
}

/// Returns the checks of which files are captured, protected and skipped.
fn files(workspace: &Workspace, invocation: &Invocation) -> [Check; 3] {
    let progress = invocation.output.progress(workspace, "looking");
    let left_out = workspace.left_out();
    let entries = workspace.progress().entries();
    let changes = captured(workspace, entries, invocation);
    let unprotected = workspace.unprotected();
    drop(progress);
    let max_file_bytes = workspace.settings().scan.max_file_bytes;
    let left_out = left_out.map(|left_out| (is_readable(&left_out), by_reason(&left_out, max_file_bytes)));
    let unprotected = unprotected.map(|unprotected| (unprotected.is_empty(), unprotected_text(&unprotected)));
    [found("captured", changes), found("protected", unprotected), found("left out", left_out)]
}

/// Returns the paths that earlier checkpoints held and that can't be captured now, one per line.
fn unprotected_text(unprotected: &[Skipped]) -> String {
    if unprotected.is_empty() {
        return "all files of the last checkpoint that are on disk".to_owned();
    }
    let line = |skipped: &Skipped| {
        format!("not protected: {} ({})", visible(skipped.path.as_bytes()), skipped.reason.as_str())
    };
    let more = unprotected.len().saturating_sub(MAX_UNPROTECTED);
    let rest = (more > 0).then(|| format!("and {more} more"));
    unprotected.iter().take(MAX_UNPROTECTED).map(line).chain(rest).collect::<Vec<_>>().join("\n")
}

/// Returns the check for a result. An error is a check that failed.
fn found(name: &'static str, outcome: Result<(bool, String), Error>) -> Check {
    match outcome {
        Ok((ok, detail)) => Check { name, ok, detail },
        Err(error) => Check { name, ok: false, detail: error.to_string() },
    }
}

fn place(survey: &Survey, invocation: &Invocation) -> Check {
    let (location, workspace) = (&survey.location, &survey.workspace);
    let mut problems = Vec::new();
    if let Some(repository) = &location.nearer_repository {
        problems.push(format!(
            "{} has its own .git; to separate it from this workspace, use -w . there",
            repository.display()
        ));
    }
    if let Some(refusal) = &survey.protected {
        problems.push(format!("{refusal}: a checkpoint of it needs --force"));
    }
    if let Err(refusal @ Error::FolderOfProjects { .. }) = workspace.refuse_folder_of_projects() {
        problems.push(format!("not protected: {refusal}"));
    }
    let here = invocation.environment().current_directory().ok();
    if let Some(here) = here.filter(|here| is_skipped(workspace, here)) {
        problems.push(format!("not protected: {} is skipped, so no checkpoint captures it", here.display()));
    }
    problems.extend(location.former.as_ref().map(|former| former.notice(&location.root)));
    let mut lines = vec![location.root.display().to_string()];
    if let Ok(Some(by)) = workspace.known_by() {
        lines.push(format!("recognized by {by}: its file system has no other stable mark of a directory"));
    }
    let ok = problems.is_empty();
    lines.extend(problems);
    Check { name: "workspace", ok, detail: lines.join("\n") }
}

fn store(workspace: &Workspace) -> Check {
    let directory = workspace.store_directory().display();
    let look = || -> Result<(bool, String), Error> {
        let writable = workspace.check_store();
        let state = if workspace.has_store()? {
            let count = plural(workspace.list(&backtrail::ListFilter::default())?.len(), "checkpoint");
            let size = bytes(workspace.store_bytes()?);
            format!("{count}, {size}; check them with: backtrail verify")
        } else {
            "does not exist yet: the first save creates it".to_owned()
        };
        Ok(match writable {
            Ok(()) => (true, format!("{directory}\n{state}")),
            Err(problem) => (false, format!("{directory}\n{state}\nno checkpoint can be taken: {problem}")),
        })
    };
    found("store", look())
}

/// Checks the file system of a path: its type, its free space, and whether locks work.
fn file_system(name: &'static str, path: &Path) -> Check {
    let look = || -> Result<(bool, String), Error> {
        let found = FileSystem::of(path)?;
        let locks = match found.locks {
            Ok(()) => "locks work".to_owned(),
            Err(error) => format!("locks are not supported ({error}): keep the store on a local disk with --store DIR"),
        };
        Ok((found.locks.is_ok(), format!("{}, {} free, {locks}", found.name, bytes(found.free_bytes))))
    };
    found(name, look())
}

fn settings(survey: &Survey, invocation: &Invocation) -> Check {
    let workspace = &survey.workspace;
    let own = workspace.root().join(WORKSPACE_FILE);
    let files = [("the workspace's file", Some(own.as_path())), ("the user's file", invocation.user_settings_file())];
    let mut lines: Vec<String> = survey.problems.iter().map(Failure::message).collect();
    for (whose, path) in files {
        let Some(path) = path else { continue };
        let state = match fs::read_link(path) {
            Ok(target) => format!(" (a symbolic link to {})", target.display()),
            Err(_) if path.exists() => String::new(),
            Err(_) => " (does not exist)".to_owned(),
        };
        lines.push(format!("{whose}: {}{state}", path.display()));
    }
    lines.push(settings_text(&survey.defaults, &survey.user, workspace.settings()));
    Check { name: "settings", ok: survey.problems.is_empty(), detail: lines.join("\n") }
}

/// Names the keys of the workspace's own file that have no effect, because they would keep less than the user's
/// settings. Returns `None` if there are none.
fn without_effect(workspace: &Workspace, invocation: &Invocation) -> Option<Check> {
    let keys = &workspace.settings().without_effect;
    let file = workspace.root().join(WORKSPACE_FILE);
    let line = |found: &WithoutEffect| {
        let WithoutEffect { key, value, in_force } = found;
        format!("{}: {key} = {value} has no effect; the value in use is {in_force}", file.display())
    };
    let mut lines: Vec<String> = keys.iter().map(line).collect();
    let own = invocation.user_settings_file().map(|file| format!(": {}", file.display())).unwrap_or_default();
    lines.push(format!(
        "the file of a workspace can only raise limits; to keep fewer checkpoints, use your own settings file{own}"
    ));
    (!keys.is_empty()).then(|| Check { name: "no effect", ok: false, detail: lines.join("\n") })
}

fn captured(workspace: &Workspace, entries: u64, invocation: &Invocation) -> Result<(bool, String), Error> {
    let status = workspace.status(None)?;
    let changes = plural(status.changes.len(), "change");
    let since = match &status.checkpoint {
        Some(checkpoint) => {
            format!("{changes} since {} ({})", title(checkpoint), when(checkpoint.time, &invocation.now))
        }
        None => format!("nothing saved yet: {} to save", plural(status.changes.len(), "path")),
    };
    Ok((true, format!("entries read: {entries}; {since}")))
}

fn is_readable(left_out: &[Skipped]) -> bool {
    !left_out.iter().any(|skipped| skipped.reason.breaks_completeness())
}

/// Lists the skipped paths, one line per reason.
fn by_reason(left_out: &[Skipped], max_file_bytes: u64) -> String {
    let mut reasons: Vec<Reason> = Vec::new();
    for skipped in left_out.iter().filter(|skipped| skipped.reason != Reason::Own) {
        if !reasons.contains(&skipped.reason) {
            reasons.push(skipped.reason);
        }
    }
    let line = |reason: &Reason| {
        let paths: Vec<String> = left_out
            .iter()
            .filter(|skipped| skipped.reason == *reason)
            .map(|skipped| visible(skipped.path.as_bytes()))
            .collect();
        let named = paths[..paths.len().min(MAX_NAMED)].join(", ");
        let more = paths.len().saturating_sub(MAX_NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let limit = match reason {
            Reason::TooLarge => format!(" (max_file_bytes is {})", set_bytes(max_file_bytes)),
            _ => String::new(),
        };
        format!("{}{limit}: {named}{rest}", reason.as_str())
    };
    if reasons.is_empty() { "nothing".into() } else { reasons.iter().map(line).collect::<Vec<_>>().join("\n") }
}

/// Describes the user's repository, as far as it can be read from its files.
fn git(workspace: &Workspace) -> Check {
    let detail = match workspace.git_position() {
        None => "the workspace is not in a git repository".to_owned(),
        Some(position) => {
            let top = position.top.display();
            let head = match (position.branch, position.commit) {
                (Some(branch), _) => format!(", on branch {branch}"),
                (None, Some(_)) => ", on no branch".to_owned(),
                (None, None) => String::new(),
            };
            format!("{top}{head}; it is changed only by restore --git")
        }
    };
    Check { name: "git", ok: true, detail }
}

/// Checks the agents whose hooks are installed. Returns `None` if this program has no directory for its own files.
fn agents(workspace: &Workspace, invocation: &Invocation) -> Option<Check> {
    let own = |name| invocation.environment().own_file(name).ok();
    let receipts = read_receipts(&own("installed.json")?).unwrap_or_default();
    let files = |agent| receipts.paths(agent).filter(|path| path.exists()).map(Path::to_owned).collect::<Vec<_>>();
    let installed = Agent::ALL.into_iter().map(|agent| (agent, files(agent))).filter(|(_, files)| !files.is_empty());
    let checkup = Checkup {
        root: workspace.root(),
        installed: installed.collect(),
        sessions: Sessions::in_directory(own("sessions")?),
        log: Log::in_directory(&own("log")?),
        now: &invocation.now,
    };
    let (ok, detail) = checkup.look();
    Some(Check { name: "agents", ok, detail })
}

fn interrupted(workspace: &Workspace) -> Result<(bool, String), Error> {
    Ok(if workspace.has_interrupted_restore()? {
        let finish = "finish it with: backtrail recover, or take it back with: backtrail recover --abort";
        (false, format!("a restore was interrupted; {finish}"))
    } else {
        (true, "no restore was interrupted".into())
    })
}
