//! Keeps `git check-ignore` running, so that tests can ask it thousands of times.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use backtrail::fuzzing::IgnoreQuestion;

/// A running `git check-ignore`.
pub struct CheckIgnore {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
    asked: usize,
}

#[expect(clippy::unwrap_used, reason = "a test stops if its reference fails")]
#[expect(clippy::new_without_default, reason = "it starts a process")]
#[expect(clippy::missing_panics_doc, reason = "a test stops if its reference fails")]
impl CheckIgnore {
    /// Starts git in an empty repository.
    pub fn new() -> Self {
        let memory = PathBuf::from("/dev/shm");
        let above = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let directory = tempfile::Builder::new().prefix("backtrail-test-").tempdir_in(above).unwrap();
        crate::git(directory.path(), &["init", "-q"]);
        let mut command = crate::git::command(directory.path());
        command.args(["-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout, directory, asked: 0 }
    }

    /// Returns whether git ignores the path. Each question uses a directory of its own, because git caches the files
    /// that it reads.
    pub fn is_ignored(&mut self, question: &IgnoreQuestion) -> bool {
        self.asked += 1;
        let place = format!("{}", self.asked);
        let top = self.directory.path().join(&place);
        let path = top.join(OsStr::from_bytes(&question.path));
        std::fs::create_dir_all(if question.is_directory { &path } else { path.parent().unwrap() }).unwrap();
        if !question.is_directory {
            std::fs::write(&path, "").unwrap();
        }
        std::fs::write(top.join(".gitignore"), &question.rules[0]).unwrap();
        if let Some(first) = question.directories().next() {
            std::fs::write(top.join(OsStr::from_bytes(first)).join(".gitignore"), &question.rules[1]).unwrap();
        }
        self.stdin.write_all(&[place.as_bytes(), b"/", &question.path, b"\0"].concat()).unwrap();
        self.stdin.flush().unwrap();
        // The rule file, the line, the pattern and the path.
        let fields: Vec<Vec<u8>> = (0..4).map(|_| self.field()).collect();
        clear(&top);
        !fields[2].is_empty() && !fields[2].starts_with(b"!")
    }

    fn field(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stdout.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "git check-ignore ended");
        bytes
    }
}

#[expect(clippy::disallowed_methods, reason = "a test clears its own temporary tree")]
#[expect(clippy::unwrap_used, reason = "a test stops if its reference fails")]
fn clear(directory: &std::path::Path) {
    std::fs::remove_dir_all(directory).unwrap();
}

impl Drop for CheckIgnore {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
