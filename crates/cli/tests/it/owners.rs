//! Whose the program's own files are: root, an odd umask or a memory that can't be kept stand in nobody's way.

use std::{
    fs,
    io::ErrorKind,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, lchown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::place::Place;

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// How a user other than root runs the program; without root there is only whoever runs the tests.
pub(crate) struct Owner {
    _directory: TempDir,
    program: PathBuf,
}

impl Owner {
    /// Everything in this place becomes theirs.
    pub(crate) fn of(place: &Place) -> Self {
        let directory = TempDir::new().unwrap();
        let program = directory.path().join("backtrail");
        fs::copy(env!("CARGO_BIN_EXE_backtrail"), &program).unwrap();
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        if is_root() {
            everything_below(&place.path("")).iter().for_each(|path| lchown(path, Some(NOBODY), Some(NOBODY)).unwrap());
        }
        Self { _directory: directory, program }
    }

    /// Runs a script in which `$backtrail` is the program; gives what it said on both channels. It must end well.
    pub(crate) fn runs(&self, place: &Place, script: &str) -> String {
        let mut command = self.script(place, script);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        said(command)
    }

    fn root_runs(&self, place: &Place, script: &str) -> String {
        said(self.script(place, script))
    }

    fn script(&self, place: &Place, script: &str) -> Command {
        let mut command = place.shell(&format!("exec 2>&1; set -e; {script}"));
        command.env("backtrail", &self.program);
        command
    }
}

fn said(mut command: Command) -> String {
    let done = loop {
        match command.output() {
            // A test beside this one started a process while the program was copied, which has it open for a moment.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            done => break done.unwrap(),
        }
    };
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}");
    said
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn everything_below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        let below = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        below.for_each(|entry| found.extend(everything_below(&entry.unwrap().path())));
    }
    found
}

/// The words that tell a hook of a prompt.
fn prompt(place: &Place, text: &str) -> String {
    let payload = json!({
        "session_id": "s", "cwd": place.path("ws"), "hook_event_name": "UserPromptSubmit", "prompt": text,
    });
    format!("printf '%s' '{payload}' | $backtrail hook claude")
}

fn prompts_saved(owner: &Owner, place: &Place) -> Vec<String> {
    let answer: Value = serde_json::from_str(&owner.runs(place, "$backtrail --json list --turns")).unwrap();
    answer["checkpoints"].as_array().unwrap().iter().rev().map(|it| it["prompt"].as_str().unwrap().to_owned()).collect()
}

/// Root's first hook or installation made directories that nobody else could use: from then on no hook, `save` or
/// `install` of the owner's worked.
#[test]
fn what_root_makes_in_somebodys_home_is_theirs() {
    if !is_root() {
        return;
    }
    for has_store in [false, true] {
        for first in ["hook", "install"] {
            let place = Place::new();
            place.write("a", "1");
            let owner = Owner::of(&place);
            if has_store {
                owner.runs(&place, "$backtrail save one");
            }
            match first {
                "hook" => assert_eq!(owner.root_runs(&place, &prompt(&place, "of root")), ""),
                _ => drop(
                    owner.root_runs(&place, "for agent in claude codex opencode; do $backtrail install $agent; done"),
                ),
            }
            for path in everything_below(&place.path("")) {
                assert_eq!(path.symlink_metadata().unwrap().uid(), NOBODY, "{first}: {}", path.display());
            }
            assert_eq!(owner.runs(&place, &prompt(&place, "of the owner")), "");
            assert_eq!(prompts_saved(&owner, &place).last().unwrap(), "of the owner");
            owner.runs(&place, "$backtrail save two; $backtrail install gemini; $backtrail uninstall gemini");
            let problems = place.path("home/backtrail/log/hooks.jsonl");
            assert!(!problems.exists(), "{}", owner.runs(&place, "$backtrail doctor || true"));
            assert!(place.path("home/backtrail/log/backtrail.log").exists());
        }
    }
}

/// One hook under umask 0777 left a home that not even its owner could open.
#[test]
fn no_umask_closes_the_programs_own_files_to_their_owner() {
    for umask in ["0777", "0277", "0077"] {
        let place = Place::new();
        place.write("a", "1");
        let owner = Owner::of(&place);
        let words = format!(
            "umask {umask}; {}; echo '[' | $backtrail hook claude; $backtrail install claude",
            prompt(&place, "one")
        );
        owner.runs(&place, &words);
        owner.runs(&place, &format!("umask 0022; {}; $backtrail save two", prompt(&place, "two")));
        assert_eq!(prompts_saved(&owner, &place), ["one", "two"]);
        for path in everything_below(&place.path("home")) {
            let found = path.symlink_metadata().unwrap();
            let wanted = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(found.mode() & wanted, wanted, "{umask}: {}", path.display());
            let is_private = path.starts_with(place.path("home/backtrail/sessions"))
                || path.starts_with(place.path("home/backtrail/log"));
            assert!(!is_private || found.mode() & 0o077 == 0, "{umask}: {}", path.display());
        }
        assert!(place.path("home/backtrail/log/hooks.jsonl").exists() && place.path("home/.claude").exists());
    }
}

/// Nothing was saved where the session could not be remembered.
#[test]
fn a_session_that_cannot_be_remembered_costs_only_the_memory() {
    let place = Place::new();
    place.write("a", "1");
    let owner = Owner::of(&place);
    owner.runs(&place, "mkdir $BACKTRAIL_HOME; : > $BACKTRAIL_HOME/sessions");
    for text in ["one", "two"] {
        assert_eq!(owner.runs(&place, &prompt(&place, text)), "");
    }
    assert_eq!(prompts_saved(&owner, &place), ["one", "two"]);
    let turns: Value = serde_json::from_str(&owner.runs(&place, "$backtrail --json list --turns")).unwrap();
    assert_eq!(turns["checkpoints"][0]["turn"], 2);
    assert!(owner.runs(&place, "$backtrail doctor || true").contains("remember the session"));
}
