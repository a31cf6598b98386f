//! Running tests as an ordinary user: nothing is refused to root.

use std::{
    io::ErrorKind,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A user who owns nothing.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// These tests as a program that anybody may run, for as long as its directory is there: the build directory may be
/// closed to others.
pub(crate) fn program() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    (directory, program)
}

/// Where this is root, the tests of this name run once more as [`NOBODY`], in a process of their own.
pub(crate) fn run_again_as_nobody(tests: &str) {
    if !is_root() {
        return;
    }
    let (_directory, program) = program();
    let mut command = Command::new(program);
    command.arg(tests).current_dir("/").env("HOME", "/nonexistent").gid(NOBODY).uid(NOBODY);
    let output = output_of(&mut command);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}

/// Runs one test of [`program`] in a process of its own, as [`NOBODY`] where this is root, with this variable set.
pub(crate) fn run_alone(program: &Path, test: &str, variable: (&str, &Path)) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).current_dir("/").env(variable.0, variable.1);
    if is_root() {
        command.env("HOME", "/nonexistent").gid(NOBODY).uid(NOBODY);
    }
    let output = output_of(&mut command);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
    if output.status.success() { Ok(()) } else { Err(said) }
}

fn output_of(command: &mut Command) -> Output {
    loop {
        match command.output() {
            // A test beside this one started a process while the program was copied, which has it open for a moment.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.unwrap(),
        }
    }
}
