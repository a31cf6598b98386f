//! A hermetic place to run the program in, with its own workspace, home and environment.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary directory with a workspace `ws` and a home `home` in it.
pub(crate) struct Place {
    root: TempDir,
    variables: Vec<(String, String)>,
}

/// The exit status and the output of a run.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    root: String,
}

/// An option of `env` that resets signals to their defaults, as on a terminal. The process that runs the tests may
/// ignore them, for example under nohup or in the background of a script.
pub(crate) const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT,TERM";

/// Shell code for the command of [`Place::run_while_locked`]: signals that it runs, and waits until the workspace is
/// locked.
pub(crate) const WAIT_FOR_THE_LOCK: &str = ": > ready; while test ! -e go; do sleep 0.05; done";

impl Place {
    pub(crate) fn new() -> Self {
        let root = TempDir::with_prefix("backtrail-cli-").unwrap();
        fs::create_dir(root.path().join("ws")).unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        let home = root.path().join("home").display().to_string();
        let variables = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", home.clone()),
            ("TMPDIR", root.path().display().to_string()),
            ("BACKTRAIL_HOME", format!("{home}/backtrail")),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("TZ", "UTC".into()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { root, variables }
    }

    /// Returns a place with one checkpoint "first" that holds `a.txt` and `dir/b.txt`.
    pub(crate) fn saved() -> Self {
        let place = Self::new();
        place.write("a.txt", "one\ntwo\n");
        place.write("dir/b.txt", "b\n");
        place.ok(["save", "first"]);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// Writes the user's own settings file.
    pub(crate) fn user_settings(&self, text: &str) {
        let directory = self.path("home/.config/backtrail");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("config.toml"), text).unwrap();
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path("ws").join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path("ws").join(name)).unwrap();
    }

    pub(crate) fn command(&self, directory: &Path, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
        command.args(words);
        self.isolate(command, directory)
    }

    /// Returns a command for the program with default signals.
    pub(crate) fn command_with_default_signals(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new("env");
        command.args([DEFAULT_SIGNALS, env!("CARGO_BIN_EXE_backtrail")]).args(words);
        self.isolate(command, &self.path("ws"))
    }

    fn isolate(&self, mut command: Command, directory: &Path) -> Command {
        command.current_dir(directory).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs stock git in the workspace, with its own user and default branch. Returns its stdout.
    pub(crate) fn git(&self, words: &[&str]) -> String {
        let settings = ["-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"];
        let mut command = Command::new("git");
        command.args(settings).args(words).current_dir(self.path("ws")).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let done = command.output().unwrap();
        assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Returns a command that runs a script with bash in the workspace.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", script]).current_dir(self.path("ws")).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program in the workspace.
    pub(crate) fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        self.run_in(&self.path("ws"), words)
    }

    pub(crate) fn run_in(&self, directory: &Path, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        self.run_from(self.command(directory, words).output().unwrap())
    }

    /// Runs the program, which must succeed. Returns its stdout.
    pub(crate) fn ok(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let run = self.run(words);
        assert_eq!(run.code, 0, "{}", run.shown());
        run.text()
    }

    /// Runs the program with `--json`, which must succeed. Returns its answer.
    pub(crate) fn json<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Value {
        let run = self.run(["--json"].into_iter().chain(words));
        assert_eq!(run.code, 0, "{}", run.shown());
        run.json()
    }

    /// Returns the store of the workspace.
    pub(crate) fn store(&self) -> PathBuf {
        fs::read_dir(self.path("home/backtrail/stores")).unwrap().next().unwrap().unwrap().path()
    }

    /// Locks the workspace, as another process would, until the result is dropped.
    pub(crate) fn hold_lock(&self) -> fs::File {
        let lock = fs::File::open(self.store().join("backtrail/lock")).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        lock
    }

    /// Runs the program with a command that contains [`WAIT_FOR_THE_LOCK`], and locks the workspace from that point on.
    pub(crate) fn run_while_locked(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        let mut command = self.command(&self.path("ws"), words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while !self.path("ws/ready").exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "the command did not get ready");
            std::thread::sleep(Duration::from_millis(10));
        }
        let held = self.hold_lock();
        self.write("go", "");
        let done = child.wait_with_output().unwrap();
        drop(held);
        self.run_from(done)
    }

    pub(crate) fn run_from(&self, done: Output) -> Run {
        Run {
            code: done.status.code().expect("not killed by a signal"),
            stdout: done.stdout,
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
            root: self.path("").display().to_string().trim_end_matches('/').to_owned(),
        }
    }

    /// Returns the id of the checkpoint with this address.
    pub(crate) fn id(&self, word: &str) -> String {
        self.json(["show", word])["checkpoint"]["id"].as_str().unwrap().to_owned()
    }
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }

    /// Returns the exit status, and the code and the message of the error object.
    pub(crate) fn error(&self) -> (i32, String, String) {
        let answer = self.json();
        let error = answer["error"].as_object().unwrap_or_else(|| panic!("no error in {answer}"));
        assert_eq!(error.keys().collect::<Vec<_>>(), ["code", "message", "hint"]);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        (self.code, error["code"].as_str().unwrap().into(), error["message"].as_str().unwrap().into())
    }

    /// Returns stdout, stderr and exit status as one text. Parts that differ from run to run are replaced.
    pub(crate) fn shown(&self) -> String {
        let stdout = String::from_utf8_lossy(&self.stdout);
        let stderr = if self.stderr.is_empty() { String::new() } else { format!("--- stderr\n{}", self.stderr) };
        normalized(&format!("{stdout}{stderr}--- exit {}\n", self.code), &self.root)
    }
}

/// Replaces directories, ids and times, so that the text is the same in every run.
pub(crate) fn normalized(text: &str, root: &str) -> String {
    let text = text.replace(root, "[ROOT]");
    let mut out = String::new();
    for word in split_words(&text) {
        let is_hex = word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        out.push_str(match word.len() {
            40 if is_hex => "[ID40]",
            16 if is_hex => "[HASH]",
            8 if is_hex => "[ID]",
            _ => word,
        });
    }
    without_times(&out)
}

fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut was_word = false;
    for (position, c) in text.char_indices() {
        let is_word = c.is_ascii_alphanumeric();
        if position > 0 && !(is_word && was_word) {
            words.push(&text[start..position]);
            start = position;
        }
        was_word = is_word;
    }
    words.push(&text[start..]);
    words
}

/// Replaces `just now` and `7 s ago` with `[WHEN]`, and the spaces after them with one space.
fn without_times(text: &str) -> String {
    let mut text = text.replace("just now", "[WHEN]");
    while let Some(end) = text.find(" s ago").or_else(|| text.find(" min ago")) {
        let start = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let length = text[end..].find("ago").unwrap() + 3;
        text.replace_range(start..end + length, "[WHEN]");
    }
    while text.contains("[WHEN]  ") {
        text = text.replace("[WHEN]  ", "[WHEN] ");
    }
    text
}

/// Replaces `today 14:58:07` with `[CLOCK]`.
pub(crate) fn without_clock_times(text: &str) -> String {
    let mut out = text.to_owned();
    for day in ["today ", "yesterday "] {
        while let Some(start) = out.find(day) {
            out.replace_range(start..start + day.len() + "14:58:07".len(), "[CLOCK]");
        }
    }
    out
}

/// Returns bytes, which need not be UTF-8, as a name.
pub(crate) fn raw(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Compares stdout, stderr and exit status of a run with the expected text.
macro_rules! assert_shown {
    ($run:expr, $expected:expr) => {
        snapbox::assert_data_eq!($run.shown(), snapbox::IntoData::raw($expected))
    };
}
pub(crate) use assert_shown;
