//! A workspace with its home that can be reset to a remembered state repeatedly, under the same path.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use backtrail_testkit::{Manifest, git_directory_bytes};

use crate::scenario::Scenario;

/// The top-level directories of a place.
const PARTS: [&str; 4] = ["ws", "home", "outside", "elsewhere"];

pub(crate) struct Place {
    base: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    /// Creates a place, in memory if the system has a memory file system.
    pub(crate) fn new(program: &Path, number: usize) -> Self {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let base = tempfile::Builder::new().prefix(&format!("backtrail-sweep-{number}-")).tempdir_in(above).unwrap();
        for part in PARTS {
            fs::create_dir_all(base.path().join("now").join(part)).unwrap();
        }
        Self { base, program: program.to_owned() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join("now").join(name)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.base.path().join("log")
    }

    /// Returns the command line of a scenario, starting with the program.
    pub(crate) fn command_line(&self, scenario: &Scenario) -> Vec<String> {
        let place = |word: &&str| word.replace("{elsewhere}", &self.path("elsewhere").display().to_string());
        let program = self.program.display().to_string();
        std::iter::once(program).chain(scenario.command.iter().map(place)).collect()
    }

    /// Runs the command of a scenario without a fault.
    pub(crate) fn run_scenario(&self, scenario: &Scenario) -> Output {
        let words = self.command_line(scenario);
        self.run(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>())
    }

    /// Sets the environment of a command. It contains nothing of the user's.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        command.current_dir(self.path("ws")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("BACKTRAIL_HOME", self.path("home/backtrail"));
        command.env("TMPDIR", self.base.path()).env("TZ", "UTC").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        for (name, value) in [("NAME", "Test"), ("EMAIL", "test@example.invalid")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        // A single worker thread, so that every run makes the same calls.
        command.env("RAYON_NUM_THREADS", "1");
    }

    /// Runs the program in the workspace.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null());
        self.set_environment(&mut command);
        command.output().unwrap()
    }

    /// Runs the program and returns its stdout. Panics if it fails.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs git in a directory of the place.
    pub(crate) fn git(&self, directory: &Path, words: &[&str]) -> Output {
        let mut command = Command::new("git");
        self.set_environment(&mut command);
        command.current_dir(directory).args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Returns the store. Returns `None` if there is none yet.
    pub(crate) fn store(&self) -> Option<PathBuf> {
        let stores = fs::read_dir(self.path("home/backtrail/stores")).ok()?;
        stores.filter_map(Result::ok).map(|entry| entry.path()).next()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.path("ws").join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        symlink(target, self.path("ws").join(name)).unwrap();
    }

    pub(crate) fn mkdir(&self, name: &str) {
        fs::create_dir_all(self.path("ws").join(name)).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        remove(&self.path("ws").join(name));
    }

    /// Returns the current tree of the workspace.
    pub(crate) fn manifest(&self) -> Manifest {
        Manifest::of(&self.path("ws"))
    }

    /// Returns every byte of the place, repositories and stores included.
    pub(crate) fn everything(&self) -> Manifest {
        git_directory_bytes(&self.base.path().join("now"))
    }

    /// Returns the position of the user's repository (commit, branch and index) and the files that a crash could leave
    /// in it.
    pub(crate) fn git_state(&self) -> Vec<String> {
        let ask = |words: &[&str]| {
            let answer = self.git(&self.path("ws"), words);
            String::from_utf8_lossy(&answer.stdout).into_owned() + &String::from_utf8_lossy(&answer.stderr)
        };
        let mut state = vec![ask(&["rev-parse", "HEAD"]), ask(&["symbolic-ref", "HEAD"]), ask(&["write-tree"])];
        for directory in ["ws/.git", "ws/.git/refs/heads"] {
            let names = fs::read_dir(self.path(directory)).into_iter().flatten().filter_map(Result::ok);
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            state.extend(names.filter(|name| name.ends_with(".lock") || name.contains("backtrail")));
        }
        state
    }

    /// Returns every byte of the user's repositories.
    pub(crate) fn git_directories(&self) -> Vec<Manifest> {
        ["ws/.git", "ws/nested/.git"]
            .iter()
            .map(|name| self.path(name))
            .filter(|path| path.exists())
            .map(|path| git_directory_bytes(&path))
            .collect()
    }

    /// Empties the place. The workspace stays the same directory, because its store is bound to it.
    pub(crate) fn clear(&self) {
        for part in PARTS {
            for entry in fs::read_dir(self.path(part)).unwrap() {
                remove(&entry.unwrap().path());
            }
        }
    }

    /// Remembers the current state of everything.
    pub(crate) fn remember(&self) {
        let template = self.base.path().join("template");
        if template.exists() {
            remove(&template);
        }
        copy(&self.base.path().join("now"), &template, &mut HashMap::new());
    }

    /// Resets everything to the remembered state.
    pub(crate) fn reset(&self) {
        self.clear();
        let mut linked = HashMap::new();
        for part in PARTS {
            let from = self.base.path().join("template").join(part);
            for entry in fs::read_dir(&from).unwrap() {
                let entry = entry.unwrap();
                copy(&entry.path(), &self.path(part).join(entry.file_name()), &mut linked);
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a tool for tests clears its own temporary tree")]
fn remove(path: &Path) {
    if fs::symlink_metadata(path).unwrap().is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

/// Copies a tree with symlinks, hard links and modes.
fn copy(from: &Path, to: &Path, linked: &mut HashMap<u64, PathBuf>) {
    let metadata = fs::symlink_metadata(from).unwrap();
    if metadata.is_symlink() {
        symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else if metadata.is_dir() {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()), linked);
        }
        fs::set_permissions(to, metadata.permissions()).unwrap();
    } else if let Some(first) = linked.get(&metadata.ino()).filter(|_| metadata.nlink() > 1) {
        fs::hard_link(first, to).unwrap();
    } else {
        fs::copy(from, to).unwrap();
        linked.insert(metadata.ino(), to.to_owned());
    }
}
