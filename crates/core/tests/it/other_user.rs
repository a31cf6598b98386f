//! Running tests as an ordinary user: nothing is refused to root.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::Command,
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
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}
