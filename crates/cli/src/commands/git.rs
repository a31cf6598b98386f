//! `git`: plain git on the store, for reading.
//!
//! What is not known to only read is refused: a command by name, an option that writes a file or runs a program too.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};

use backtrail::Error;
use clap::Args;

use crate::{failure::Failure, invocation::Invocation, settings::hide_git_variables};

/// Run git on the store, for reading
///
/// For instance: backtrail git log --all, backtrail git show ID:path. Commands and options that write something or run other
/// programs are refused.
#[derive(Debug, Args)]
pub(crate) struct GitArgs {
    /// What git is to do
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "ARGS")]
    words: Vec<OsString>,
}

/// A command of git that reads, with options of its own that do more than that.
struct Reader {
    name: &'static str,
    long: &'static [&'static str],
    short: &'static [u8],
    /// Given to it in any case.
    with: &'static [&'static str],
}

const fn reader(name: &'static str) -> Reader {
    Reader { name, long: &[], short: &[], with: &[] }
}

/// A command that shows differences.
const fn differ(name: &'static str) -> Reader {
    Reader { with: &["--no-ext-diff", "--no-textconv"], ..reader(name) }
}

const READERS: &[Reader] = &[
    Reader { long: &["--remote"], short: b"o", ..reader("archive") },
    reader("blame"),
    Reader { long: &["--filters"], ..reader("cat-file") },
    reader("count-objects"),
    reader("describe"),
    differ("diff"),
    differ("diff-tree"),
    reader("for-each-ref"),
    Reader { long: &["--lost-found"], ..reader("fsck") },
    Reader { long: &["--open-files-in-pager"], short: b"O", ..reader("grep") },
    differ("log"),
    reader("ls-tree"),
    reader("name-rev"),
    reader("rev-list"),
    reader("rev-parse"),
    reader("shortlog"),
    differ("show"),
    reader("show-ref"),
    reader("verify-pack"),
];

/// Options that write a file or run a program, whatever the command.
const REFUSED: &[&str] = &["--output", "--ext-diff", "--textconv", "--exec", "--upload-pack", "--no-index", "--help"];

/// Options that only read, although they begin like one that is refused.
const HARMLESS: &[&str] = &["--text"];

pub(crate) fn run(args: &GitArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let (name, rest) = args.words.split_first().ok_or_else(|| refused("nothing"))?;
    let reader = READERS.iter().find(|reader| name == reader.name).ok_or_else(|| refused(&name.to_string_lossy()))?;
    if let Some(word) = rest.iter().find(|word| does_more_than_read(word, reader)) {
        return Err(refused(&format!("{} {}", reader.name, word.to_string_lossy())));
    }
    let workspace = invocation.workspace()?;
    let store = workspace.store_directory();
    if !store.is_dir() {
        return Err(Failure::usage("there is no store yet", Some("take the first checkpoint with: backtrail save")));
    }
    let source = command(store, reader, rest, invocation.output.pager().map(OsString::as_os_str)).exec();
    let source = match source.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is not installed, or not on PATH"),
        _ => source,
    };
    Err(Error::Io { action: "run", path: "git".into(), source }.into())
}

fn refused(words: &str) -> Failure {
    let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
    let hint = format!("the store is for reading here, with: {}", names.join(", "));
    Failure::usage(format!("git {words} is refused: it is not known to only read"), Some(&hint))
}

/// Words behind `--` are judged, too: for git that may have been the value of an option.
fn does_more_than_read(word: &OsStr, reader: &Reader) -> bool {
    let bytes = word.as_bytes();
    let name = bytes.split(|byte| *byte == b'=').next().unwrap_or_default();
    if name == b"--" || HARMLESS.iter().any(|harmless| name == harmless.as_bytes()) {
        return false;
    }
    if name.starts_with(b"--") {
        // git takes the beginning of an option for the whole.
        let mut refused = REFUSED.iter().chain(reader.long).map(|option| option.as_bytes());
        return refused.any(|option| option.starts_with(name) || name.starts_with(option));
    }
    // Letters can stand together behind one dash.
    bytes.starts_with(b"-") && bytes.iter().any(|byte| reader.short.contains(byte))
}

fn command(store: &Path, reader: &Reader, rest: &[OsString], pager: Option<&OsStr>) -> Command {
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
    fn options_that_read_are_not() {
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
