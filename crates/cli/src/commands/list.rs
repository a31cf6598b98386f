//! `list`: shows the checkpoints, newest first.

use std::{ffi::OsString, io, os::unix::ffi::OsStrExt, path::PathBuf, process::ExitCode};

use backtrail::{Checkpoint, Kind, ListFilter, PathGlob, Range, Workspace, json::TimelineJson};
use clap::{Args, builder::NonEmptyStringValueParser};

use crate::{
    cli::{kind, text},
    failure::{Failure, hint_for_list},
    invocation::{Invocation, NOTHING_SAVED},
    output::{BinJson, OutputError, Remarks, Timeline, bin_text, plural, shell_path, shell_words, turns},
};

/// List the checkpoints, newest first
///
/// The list includes checkpoints that a restore left behind. @ marks the one that the workspace stands on. With
/// FROM..TO, only the checkpoints on the line after FROM up to and including TO are listed.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only checkpoints after FROM up to TO
    #[arg(value_name = "FROM..TO", value_parser = text())]
    range: Option<String>,
    /// Show at most this many checkpoints
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Only checkpoints of this kind
    #[arg(long, value_parser = kind())]
    kind: Option<Kind>,
    /// Only checkpoints of this session of an agent; also the session of turn:N in FROM..TO
    #[arg(long, value_name = "ID", value_parser = text())]
    session: Option<String>,
    /// Only checkpoints in which this file, or something in this directory, changed
    #[arg(long)]
    path: Option<PathBuf>,
    /// Only checkpoints in which a path changed that this pattern matches, such as "*.md"; can be given several times
    #[arg(long, value_name = "PATTERN")]
    glob: Vec<OsString>,
    /// Only checkpoints with this text in message, name, prompt or command; a text without capital letters matches any
    /// case
    #[arg(long, value_name = "TEXT", value_parser = text(), allow_hyphen_values = true)]
    grep: Option<String>,
    /// Only checkpoints that added exactly this text to a file, or removed it
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new(), allow_hyphen_values = true)]
    contents: Option<String>,
    /// Only checkpoints since then: a duration such as 20m, or a time such as 13:45, "yesterday 12:31" or
    /// 2026-11-15T14:30
    #[arg(long, value_name = "TIME", value_parser = text())]
    since: Option<String>,
    /// Only checkpoints up to then, given as for --since
    #[arg(long, value_name = "TIME", value_parser = text())]
    until: Option<String>,
    /// List the prompts, one line each
    #[arg(long)]
    turns: bool,
    /// With --turns: also list the steps of each prompt
    #[arg(long, requires = "turns")]
    steps: bool,
    /// Also show the safety checkpoints that restores took
    #[arg(long)]
    all: bool,
    /// Leave out safety checkpoints, which --json lists otherwise
    #[arg(long, conflicts_with = "all")]
    no_safety: bool,
    /// With --json: leave out the lists of changed and dirty files
    #[arg(long)]
    brief: bool,
    /// List the deleted checkpoints that `backtrail undo` can still bring back, instead
    #[arg(long, exclusive = true)]
    deleted: bool,
}

pub(crate) fn run(args: &ListArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.brief && !invocation.output.is_json() {
        return Err(Failure::usage(
            "--brief is only for programs: it shortens --json",
            Some("write: list --json --brief"),
        ));
    }
    let workspace = invocation.workspace()?;
    if args.deleted {
        return list_deleted(&workspace, invocation);
    }
    let filter = filter(args, &workspace, invocation)?;
    let output = &invocation.output;
    if output.is_json() {
        let answer = TimelineJson::from(workspace.list(&filter)?.as_slice());
        if args.brief {
            output.json(&answer.brief().map_err(io::Error::from).map_err(OutputError::from)?)?;
        } else {
            output.json(&answer)?;
        }
    } else if args.turns {
        show_turns(&workspace, filter, args.steps, invocation)?;
    } else {
        let found = workspace.list(&filter)?;
        let hidden = note_on_hidden(args, &workspace, filter)?;
        show_timeline(&workspace, &found, hidden, invocation)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list_deleted(workspace: &Workspace, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let deleted = workspace.deleted()?;
    let output = &invocation.output;
    let stay = workspace.settings().retention.deleted;
    if output.is_json() {
        output.json(&BinJson::new(&deleted, stay))?;
    } else if deleted.is_empty() {
        output.note("no deleted checkpoint can be brought back");
    } else {
        output.text(&bin_text(&deleted, stay, &invocation.now, output.paint))?;
        output.note("the last deletion is taken back with: backtrail undo");
    }
    Ok(ExitCode::SUCCESS)
}

fn filter(args: &ListArgs, workspace: &Workspace, invocation: &Invocation) -> Result<ListFilter, Failure> {
    let is_for_people = !invocation.output.is_json();
    Ok(ListFilter {
        limit: args.limit,
        kind: args.kind,
        session: args.session.clone(),
        path: args.path.as_ref().map(|path| invocation.known_path(workspace, path)).transpose()?,
        globs: args.glob.iter().map(|pattern| PathGlob::new(pattern.as_bytes())).collect(),
        contents: args.contents.clone(),
        grep: args.grep.clone(),
        since: args.since.as_ref().map(|text| invocation.moment(text)).transpose()?,
        until: args.until.as_ref().map(|text| invocation.moment_at_end(text)).transpose()?,
        turns: args.turns,
        hide_safety: args.no_safety || is_for_people && !args.all && args.kind != Some(Kind::Safety),
        range: args.range.as_ref().map(|word| range(word, args, workspace, invocation)).transpose()?,
        before_sequence: None,
        brief: is_for_people || args.brief,
    })
}

fn range(word: &str, args: &ListArgs, workspace: &Workspace, invocation: &Invocation) -> Result<Range, Failure> {
    let found = invocation.range(workspace, word, args.session.as_deref())?;
    found.ok_or_else(|| {
        let quoted = shell_words([word]);
        let hint = match invocation.checkpoint(workspace, word) {
            Ok(_) => format!("those after it: backtrail list {quoted}..@"),
            Err(_) => hint_for_list(&quoted),
        };
        Failure::usage(format!("{word:?} is not a range"), Some(&hint))
    })
}

fn show_timeline(
    workspace: &Workspace,
    checkpoints: &[Checkpoint],
    hidden: Option<String>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let output = &invocation.output;
    if checkpoints.is_empty() {
        say_empty(workspace, invocation)?;
        hidden.iter().for_each(|note| output.note(note));
        return Ok(());
    }
    let remarks = Remarks { notes: hidden.into_iter().collect(), ..Remarks::default() };
    Ok(output.paged_if_long(&timeline(workspace, invocation)?.draw(checkpoints), &remarks)?)
}

/// Returns a note about hidden safety checkpoints that match as well. Only for searches by path or text: then the user
/// may be looking for lost work.
fn note_on_hidden(args: &ListArgs, workspace: &Workspace, filter: ListFilter) -> Result<Option<String>, Failure> {
    let is_search = filter.path.is_some() || filter.grep.is_some() || filter.contents.is_some();
    if !filter.hide_safety || args.no_safety || !is_search {
        return Ok(None);
    }
    let safety = ListFilter { hide_safety: false, kind: Some(Kind::Safety), limit: None, ..filter };
    let count = if args.kind.is_some() { 0 } else { workspace.list(&safety)?.len() };
    Ok((count > 0).then(|| {
        let path = args.path.as_ref().map(|path| format!(" --path {}", shell_path(path))).unwrap_or_default();
        let grep = args.grep.as_ref().map(|text| format!(" --grep {}", shell_words([text]))).unwrap_or_default();
        let contents =
            args.contents.as_ref().map(|text| format!(" --contents {}", shell_words([text]))).unwrap_or_default();
        let fit = if count == 1 { "matches" } else { "match" };
        let found = plural(count, "safety checkpoint");
        format!("{found} {fit}, too; show with: backtrail list --all{path}{grep}{contents}")
    }))
}

/// Shows the prompts, with their steps if those are wanted. The filter only selects prompts, because each is shown with
/// all its steps.
fn show_turns(
    workspace: &Workspace,
    filter: ListFilter,
    with_steps: bool,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let prompts = workspace.list(&filter)?;
    if prompts.is_empty() {
        let every = ListFilter { turns: true, ..ListFilter::default() };
        if workspace.current()?.is_some() && workspace.list(&every)?.is_empty() {
            let hint = "an agent's hooks take them, see: backtrail install --list";
            invocation.output.note(&format!("no prompt has a checkpoint yet; {hint}"));
            return Ok(());
        }
        return say_empty(workspace, invocation);
    }
    let timeline = timeline(workspace, invocation)?;
    if !with_steps {
        return Ok(invocation.output.paged_if_long(&timeline.draw_turns(&turns(&prompts)), &Remarks::default())?);
    }
    let around =
        ListFilter { session: filter.session, hide_safety: filter.hide_safety, brief: true, ..ListFilter::default() };
    let is_wanted = |checkpoint: &Checkpoint| {
        checkpoint.kind != Kind::Turn || prompts.iter().any(|prompt| prompt.id == checkpoint.id)
    };
    let checkpoints: Vec<_> = workspace.list(&around)?.into_iter().filter(is_wanted).collect();
    Ok(invocation.output.paged_if_long(&timeline.draw_turns(&turns(&checkpoints)), &Remarks::default())?)
}

fn say_empty(workspace: &Workspace, invocation: &Invocation) -> Result<(), Failure> {
    let sentence = match workspace.current()? {
        Some(_) => "no checkpoint matches; list all with: backtrail list",
        None => NOTHING_SAVED,
    };
    invocation.output.note(sentence);
    Ok(())
}

/// Returns the parameters for drawing a timeline of this workspace.
pub(crate) fn timeline<'a>(workspace: &Workspace, invocation: &'a Invocation) -> Result<Timeline<'a>, Failure> {
    Ok(Timeline {
        current: workspace.current()?,
        now: &invocation.now,
        width: invocation.output.width(),
        paint: invocation.output.paint,
    })
}
