//! `git`: runs git on the store, read-only.
//!
//! Refuses commands that are not known to only read, and options that write a file or run a program.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use backtrail::{Error, ListFilter, Workspace};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, NOTHING_SAVED},
    settings::hide_git_variables,
};

/// Run git on the store, for reading
///
/// For example: backtrail git log, backtrail git show @:path, backtrail git diff @~1 @. Without a revision, log lists
/// all checkpoints. @ and @~N have the same meaning as in other commands, alone or before a colon. Commands and options
/// that write something or run other programs are refused. So are those that compare a commit with its parent, such as
/// blame, log -S and show --stat: in git's view, checkpoints are not linked to the ones before them.
#[derive(Debug, Args)]
pub(crate) struct GitArgs {
    /// The git command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "ARGS")]
    words: Vec<OsString>,
}

/// A git command that only reads, with the options of this command that do more than that.
struct ReadingCommand {
    name: &'static str,
    long: &'static [&'static str],
    short: &'static [u8],
    /// Arguments that are always passed.
    with: &'static [&'static str],
    /// The revisions that it starts from if the user names none.
    default: Option<Default>,
}

/// The revisions that a command starts from by default.
#[derive(Debug, Clone, Copy)]
enum Default {
    /// Every checkpoint.
    All,
    /// The checkpoint that the workspace stands on.
    Current,
}

const fn reader(name: &'static str) -> ReadingCommand {
    ReadingCommand { name, long: &[], short: &[], with: &[], default: None }
}

/// Returns a command that shows differences.
const fn differ(name: &'static str) -> ReadingCommand {
    ReadingCommand { with: &["--no-ext-diff", "--no-textconv"], ..reader(name) }
}

const READERS: &[ReadingCommand] = &[
    ReadingCommand { long: &["--remote"], short: b"o", ..reader("archive") },
    ReadingCommand { long: &["--filters"], ..reader("cat-file") },
    reader("count-objects"),
    reader("describe"),
    differ("diff"),
    differ("diff-tree"),
    reader("for-each-ref"),
    ReadingCommand { long: &["--lost-found"], ..reader("fsck") },
    ReadingCommand { long: &["--open-files-in-pager"], short: b"O", ..reader("grep") },
    ReadingCommand { default: Some(Default::All), ..differ("log") },
    reader("ls-tree"),
    reader("name-rev"),
    ReadingCommand { default: Some(Default::All), ..reader("rev-list") },
    reader("rev-parse"),
    ReadingCommand { default: Some(Default::All), ..reader("shortlog") },
    ReadingCommand { default: Some(Default::Current), ..differ("show") },
    reader("show-ref"),
    reader("verify-pack"),
];

/// Commands and options of git that follow the parents of commits, with the command that gives the right answer here.
/// The parent of a checkpoint's commit is not the checkpoint before it, so git would compare it with nothing.
const BY_PARENT: &[(&[&str], &[&str], &str)] = &[
    (&["blame", "annotate"], &[], "for the checkpoint of each line: backtrail blame PATH"),
    (&["bisect"], &[], "to find the first bad checkpoint: backtrail bisect -- COMMAND"),
    (&["log", "rev-list", "shortlog"], &["-S", "-G"], "for a text in contents: backtrail list --contents TEXT"),
    (&["log", "rev-list"], &["-L", "--follow"], "for the versions of a file: backtrail history PATH"),
    (
        &["log", "show"],
        &[
            "-p",
            "-u",
            "--patch",
            "--stat",
            "--shortstat",
            "--numstat",
            "--name-only",
            "--name-status",
            "--raw",
            "--summary",
            "--dirstat",
            "--compact-summary",
            "--diff-filter",
        ],
        "for the changes of a checkpoint: backtrail show ID --patch; between two: backtrail git diff ID ID",
    ),
];

/// Returns the command to use instead, if git would give a misleading answer. Words behind `--` are paths.
fn instead_of_parents(name: &OsStr, words: &[OsString]) -> Option<&'static str> {
    let name = name.to_str()?;
    let options = || words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let is_given = |option: &str| {
        let is_short = option.len() == 2 && option != "-p" && option != "-u";
        options().any(|word| {
            word == option || word.starts_with(&format!("{option}=")) || is_short && word.starts_with(option)
        })
    };
    let mut fitting = BY_PARENT.iter().filter(|(names, _, _)| names.contains(&name));
    fitting
        .find(|(_, options, _)| options.is_empty() || options.iter().any(|option| is_given(option)))
        .map(|(_, _, hint)| *hint)
}

/// Returns whether `git show` would show the difference of a commit to its parent.
fn shows_a_commit(name: &OsStr, words: &[OsString]) -> bool {
    let has_object = words.iter().any(|word| word.as_bytes().contains(&b':') && !word.as_bytes().starts_with(b"-"));
    let is_message_only = words.iter().any(|word| word == "-s" || word == "--no-patch");
    name == "show" && !has_object && !is_message_only
}

/// Options that write a file or run a program. They are refused for every command.
const REFUSED: &[&str] = &["--output", "--ext-diff", "--textconv", "--exec", "--upload-pack", "--no-index", "--help"];

/// Options that only read, although they start like a refused one.
const HARMLESS: &[&str] = &["--text"];

pub(crate) fn run(args: &GitArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let (name, rest) = args.words.split_first().ok_or_else(|| refused("nothing"))?;
    if let Some(hint) = instead_of_parents(name, rest) {
        return Err(misleading(name, hint));
    }
    if shows_a_commit(name, rest) {
        let hint =
            "for the changes of a checkpoint: backtrail show ID --patch; for its message: backtrail git show -s ID";
        return Err(misleading(name, hint));
    }
    let reader = READERS.iter().find(|reader| name == reader.name).ok_or_else(|| refused(&name.to_string_lossy()))?;
    if let Some(word) = rest.iter().find(|word| does_more_than_read(word, reader)) {
        return Err(refused(&format!("{} {}", reader.name, word.to_string_lossy())));
    }
    let workspace = invocation.workspace()?;
    let store = workspace.store_directory();
    if !store.is_dir() {
        return Err(Failure::usage("there is no store yet", Some("take the first checkpoint with: backtrail save")));
    }
    let rest = rest.iter().map(|word| with_own_address(word, &workspace, invocation)).collect::<Result<Vec<_>, _>>()?;
    let Some(mut words) = default_revisions(store, reader, &rest, &workspace)? else {
        invocation.output.note(NOTHING_SAVED);
        return Ok(ExitCode::SUCCESS);
    };
    words.extend(rest);
    let source = command(store, reader, &words, invocation.output.pager().map(OsString::as_os_str)).exec();
    let source = match source.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is not installed, or not on PATH"),
        _ => source,
    };
    Err(Error::Io { action: "run", path: "git".into(), source }.into())
}

/// Replaces an address of this program at the start of a word, such as `@~2` in `@~2:path`, with the checkpoint's id.
/// To git, `@` means the current branch, and a store has none.
fn with_own_address(word: &OsStr, workspace: &Workspace, invocation: &Invocation) -> Result<OsString, Failure> {
    let bytes = word.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
    let Some(address) = own_address(&bytes[..end]) else { return Ok(word.to_owned()) };
    let mut replaced = OsString::from(invocation.checkpoint(workspace, address)?.to_string());
    replaced.push(OsStr::from_bytes(&bytes[end..]));
    Ok(replaced)
}

fn own_address(bytes: &[u8]) -> Option<&str> {
    let address = std::str::from_utf8(bytes).ok()?;
    let steps = address.strip_prefix('@')?;
    let is_steps = |steps: &str| steps.bytes().all(|byte| byte.is_ascii_digit());
    (steps.is_empty() || steps.strip_prefix('~').is_some_and(is_steps)).then_some(address)
}

/// Returns the revisions to add if the user named none. Git would use the current branch, and a store has none. Returns
/// `None` if there is no checkpoint.
fn default_revisions(
    store: &Path,
    reader: &ReadingCommand,
    words: &[OsString],
    workspace: &Workspace,
) -> Result<Option<Vec<OsString>>, Failure> {
    let Some(default) = reader.default else { return Ok(Some(Vec::new())) };
    if names_revision(store, words) {
        return Ok(Some(Vec::new()));
    }
    let Some(current) = workspace.current()? else { return Ok(None) };
    Ok(Some(match default {
        Default::All => {
            let ids = workspace.list(&ListFilter::default())?.into_iter().map(|checkpoint| checkpoint.id.to_string());
            // Without `--no-walk`, git would also list the commits that hold a checkpoint's state. `--graph` can't be
            // combined with it.
            let has_graph = words.iter().any(|word| word.as_bytes().starts_with(b"--graph"));
            // Keeps the order of the timeline: git's times have whole seconds, and an agent's steps can be faster.
            let order = (!has_graph).then(|| "--no-walk=unsorted".to_owned());
            order.into_iter().chain(ids).map(OsString::from).collect()
        }
        Default::Current => vec![current.to_string().into()],
    }))
}

/// Returns whether one of the words is a revision. Asks git itself, because revisions have too many forms.
fn names_revision(store: &Path, words: &[OsString]) -> bool {
    let judge = ReadingCommand { with: &["--revs-only", "--no-flags"], ..reader("rev-parse") };
    let mut command = command(store, &judge, words, None);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    // If git can't be run, the command itself reports it.
    command.output().is_ok_and(|answer| !answer.stdout.is_empty())
}

/// Returns the failure for a command that would give a misleading answer.
fn misleading(name: &OsStr, hint: &str) -> Failure {
    let name = name.to_string_lossy();
    let problem =
        format!("git {name} is refused here: in git's view, checkpoints are not linked to the ones before them");
    Failure::usage(problem, Some(hint))
}

fn refused(words: &str) -> Failure {
    let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
    let hint = format!("these commands are allowed: {}", names.join(", "));
    Failure::usage(format!("git {words} is refused: only commands that read the store are allowed"), Some(&hint))
}

/// Returns whether a word is an option that does more than read. Words after `--` are checked as well, because git may
/// take that `--` for the value of an option.
fn does_more_than_read(word: &OsStr, reader: &ReadingCommand) -> bool {
    let bytes = word.as_bytes();
    let name = bytes.split(|byte| *byte == b'=').next().unwrap_or_default();
    if name == b"--" || HARMLESS.iter().any(|harmless| name == harmless.as_bytes()) {
        return false;
    }
    if name.starts_with(b"--") {
        // git accepts abbreviated options.
        let mut refused = REFUSED.iter().chain(reader.long).map(|option| option.as_bytes());
        return refused.any(|option| option.starts_with(name) || name.starts_with(option));
    }
    // Several short options can share one dash.
    bytes.starts_with(b"-") && bytes.iter().any(|byte| reader.short.contains(byte))
}

fn command(store: &Path, reader: &ReadingCommand, rest: &[OsString], pager: Option<&OsStr>) -> Command {
    let mut command = Command::new("git");
    hide_git_variables(&mut command);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", pager.unwrap_or(OsStr::new("cat")));
    command.arg("--git-dir").arg(store).arg("--bare");
    for setting in ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null"] {
        command.args(["-c", setting]);
    }
    if pager.is_none() {
        command.arg("--no-pager");
    }
    command.arg(reader.name).args(reader.with).args(rest);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(words: &[&str]) -> bool {
        let reader = READERS.iter().find(|reader| reader.name == words[0]).unwrap();
        words[1..].iter().any(|word| does_more_than_read(OsStr::new(word), reader))
    }

    #[test]
    fn options_that_write_or_run_are_refused() {
        for words in [
            ["log", "--output=x"],
            ["log", "--outp"],
            ["diff", "--no-index"],
            ["diff", "--ext-diff"],
            ["show", "--textconv"],
            ["cat-file", "--filters"],
            ["archive", "-ox"],
            ["archive", "-vo"],
            ["archive", "--remote=x"],
            ["archive", "--exec=x"],
            ["grep", "-Ox"],
            ["grep", "-nO"],
            ["grep", "--open=x"],
            ["fsck", "--lost-found"],
            ["log", "--help"],
        ] {
            assert!(is_refused(&words), "{words:?}");
        }
        assert!(is_refused(&["grep", "-e", "--", "--open-files-in-pager=x"]));
    }

    #[test]
    fn options_that_only_read_are_allowed() {
        for words in [
            ["log", "--oneline"],
            ["log", "--remotes"],
            ["log", "-O"],
            ["diff", "--text"],
            ["diff", "--"],
            ["grep", "-o"],
            ["rev-list", "--filter=blob:none"],
            ["rev-list", "--exclude=x"],
            ["log", "--format=%H --output"],
        ] {
            assert!(!is_refused(&words), "{words:?}");
        }
    }
}
