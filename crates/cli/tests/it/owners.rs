//! Ownership and permissions of the program's own files. Neither a run by root, nor an unusual umask, nor session state
//! that can't be written locks the owner out.

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

/// The id of a user who owns nothing.
const OTHER_USER: u32 = 65_534;

/// Runs the program as a user other than root. If the tests do not run as root, this is the user who runs them.
pub(crate) struct Owner {
    _directory: TempDir,
    program: PathBuf,
}

impl Owner {
    /// Makes the user the owner of everything in this place.
    pub(crate) fn of(place: &Place) -> Self {
        let directory = TempDir::new().unwrap();
        let program = directory.path().join("backtrail");
        fs::copy(env!("CARGO_BIN_EXE_backtrail"), &program).unwrap();
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        if is_root() {
            paths_below(&place.path(""))
                .iter()
                .for_each(|path| lchown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap());
        }
        Self { _directory: directory, program }
    }

    /// Runs a script, which must succeed. `$backtrail` is the program. Returns stdout and stderr together.
    pub(crate) fn run(&self, place: &Place, script: &str) -> String {
        let mut command = self.script(place, script);
        if is_root() {
            command.uid(OTHER_USER).gid(OTHER_USER);
        }
        output_of(command)
    }

    fn run_as_root(&self, place: &Place, script: &str) -> String {
        output_of(self.script(place, script))
    }

    fn script(&self, place: &Place, script: &str) -> Command {
        let mut command = place.shell(&format!("exec 2>&1; set -e; {script}"));
        command.env("backtrail", &self.program);
        command
    }
}

fn output_of(mut command: Command) -> String {
    let done = loop {
        match command.output() {
            // Another test started a process while the program was copied. That process has the copy open for a moment.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            done => break done.unwrap(),
        }
    };
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{output}");
    output
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn paths_below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        let below = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        below.for_each(|entry| found.extend(paths_below(&entry.unwrap().path())));
    }
    found
}

/// Returns the shell command that sends a prompt to a hook.
fn prompt_command(place: &Place, text: &str) -> String {
    let payload = json!({
        "session_id": "s", "cwd": place.path("ws"), "hook_event_name": "UserPromptSubmit", "prompt": text,
    });
    format!("printf '%s' '{payload}' | $backtrail hook claude")
}

fn saved_prompts(owner: &Owner, place: &Place) -> Vec<String> {
    let answer: Value = serde_json::from_str(&owner.run(place, "$backtrail --json list --turns")).unwrap();
    answer["checkpoints"].as_array().unwrap().iter().rev().map(|it| it["prompt"].as_str().unwrap().to_owned()).collect()
}

/// Regression: a first hook or installation by root created directories that only root could use. After that no hook,
/// `save` or `install` of the owner worked.
#[test]
fn files_that_root_creates_in_a_home_belong_to_its_owner() {
    if !is_root() {
        return;
    }
    for has_store in [false, true] {
        for first in ["hook", "install"] {
            let place = Place::new();
            place.write("a", "1");
            let owner = Owner::of(&place);
            if has_store {
                owner.run(&place, "$backtrail save one");
            }
            match first {
                "hook" => assert_eq!(owner.run_as_root(&place, &prompt_command(&place, "of root")), ""),
                _ => drop(
                    owner.run_as_root(&place, "for agent in claude codex opencode; do $backtrail install $agent; done"),
                ),
            }
            for path in paths_below(&place.path("")) {
                assert_eq!(path.symlink_metadata().unwrap().uid(), OTHER_USER, "{first}: {}", path.display());
            }
            assert_eq!(owner.run(&place, &prompt_command(&place, "of the owner")), "");
            assert_eq!(saved_prompts(&owner, &place).last().unwrap(), "of the owner");
            owner.run(&place, "$backtrail save two; $backtrail install gemini; $backtrail uninstall gemini");
            let problems = place.path("home/backtrail/log/hooks.jsonl");
            assert!(!problems.exists(), "{}", owner.run(&place, "$backtrail doctor || true"));
            assert!(place.path("home/backtrail/log/backtrail.log").exists());
        }
    }
}

/// Regression: a hook with umask 0777 created a directory that not even its owner could open.
#[test]
fn no_umask_locks_the_owner_out() {
    for umask in ["0777", "0277", "0077"] {
        let place = Place::new();
        place.write("a", "1");
        let owner = Owner::of(&place);
        let words = format!(
            "umask {umask}; {}; echo '[' | $backtrail hook claude; $backtrail install claude",
            prompt_command(&place, "one")
        );
        owner.run(&place, &words);
        owner.run(&place, &format!("umask 0022; {}; $backtrail save two", prompt_command(&place, "two")));
        assert_eq!(saved_prompts(&owner, &place), ["one", "two"]);
        for path in paths_below(&place.path("home")) {
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

/// Regression: nothing was saved if the state of the session could not be written.
#[test]
fn prompts_are_saved_if_the_session_state_cannot_be_written() {
    let place = Place::new();
    place.write("a", "1");
    let owner = Owner::of(&place);
    owner.run(&place, "mkdir $BACKTRAIL_HOME; : > $BACKTRAIL_HOME/sessions");
    for text in ["one", "two"] {
        assert_eq!(owner.run(&place, &prompt_command(&place, text)), "");
    }
    assert_eq!(saved_prompts(&owner, &place), ["one", "two"]);
    let turns: Value = serde_json::from_str(&owner.run(&place, "$backtrail --json list --turns")).unwrap();
    assert_eq!(turns["checkpoints"][0]["turn"], 2);
    assert!(owner.run(&place, "$backtrail doctor || true").contains("remember the session"));
}
