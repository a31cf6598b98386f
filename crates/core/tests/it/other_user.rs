//! Runs tests as an ordinary user, because root passes every permission check.

use std::{
    io::ErrorKind,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The user id and the group id of a user without files.
pub(crate) const OTHER_USER: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Copies the test binary into a temporary directory and returns both. Any user may run the copy, but not always the
/// original: the build directory may be closed to other users.
pub(crate) fn program() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    (directory, program)
}

/// Runs the tests of this name again as [`OTHER_USER`], in another process. Does nothing unless this process is root.
pub(crate) fn run_again_as_other_user(tests: &str) {
    if !is_root() {
        return;
    }
    let (_directory, program) = program();
    let mut command = Command::new(program);
    command.arg(tests).current_dir("/").env("HOME", "/nonexistent").gid(OTHER_USER).uid(OTHER_USER);
    let output = output_of(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("running 0 tests"), "{text}");
}

/// Runs one test of [`program`] in another process with this environment variable. Runs it as [`OTHER_USER`] if this
/// process is root. Returns the output as an error if the test fails.
pub(crate) fn run_alone(program: &Path, test: &str, variable: (&str, &Path)) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).current_dir("/").env(variable.0, variable.1);
    if is_root() {
        command.env("HOME", "/nonexistent").gid(OTHER_USER).uid(OTHER_USER);
    }
    let output = output_of(&mut command);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("running 0 tests"), "{text}");
    if output.status.success() { Ok(()) } else { Err(text) }
}

fn output_of(command: &mut Command) -> Output {
    loop {
        match command.output() {
            // A parallel test started a process while the program was copied. That process has the copy open for
            // writing for a moment.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.unwrap(),
        }
    }
}
