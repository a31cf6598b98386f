//! What the system refuses to an ordinary user.

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use backtrail::{ErrorCode, RestoreRequest};
use backtrail_testkit::TestWorkspace;

use super::*;

/// Nothing is refused to root: there the others run once more as another user, in a process of their own.
#[test]
fn run_as_an_ordinary_user() {
    const NOBODY: u32 = 65_534;
    if !is_root() {
        return;
    }
    // The build directory may be closed to others.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.arg("restore::ordinary::refused::").current_dir("/").env("HOME", "/nonexistent").gid(NOBODY).uid(NOBODY);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}

mod refused {
    use super::*;

    #[test]
    fn an_incomplete_checkpoint_removes_nothing_unless_exact() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write_mode("closed", "1\n", 0o000);
        let one = ws.save();
        assert!(!one.complete);
        ws.chmod("closed", 0o600);
        ws.write("closed", "edited\n");
        ws.write("a", "2\n");
        ws.write("new/file", "2\n");
        ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        assert_eq!(ws.read("a").unwrap(), b"1\n");
        assert_eq!(ws.read("new/file").unwrap(), b"2\n");
        let exact = RestoreRequest { exact: true, ..RestoreRequest::whole(one.id) };
        ws.open().restore(&exact, ws.now()).unwrap();
        assert!(!ws.exists("new"));
        assert_eq!(ws.read("closed").unwrap(), b"edited\n", "what it could not read it says nothing about");
    }

    #[test]
    fn an_unreadable_file_is_not_touched() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write("b", "1\n");
        let one = ws.save();
        ws.write("b", "2\n");
        ws.write("a", "2\n");
        ws.write_mode("new", "2\n", 0o000);
        ws.chmod("a", 0o000);
        let request = RestoreRequest::whole(one.id);
        assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
        assert_eq!(ws.read("b").unwrap(), b"2\n");
        let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
        let left: Vec<_> = outcome.conflicts.iter().map(|conflict| conflict.path.to_text()).collect();
        assert_eq!(left, ["a", "new"], "what can't be read stays, and is told");
        assert_eq!(ws.read("b").unwrap(), b"1\n");
        ws.chmod("a", 0o644);
        ws.chmod("new", 0o644);
        assert_eq!((ws.read("a").unwrap(), ws.read("new").unwrap()), (b"2\n".to_vec(), b"2\n".to_vec()));
    }

    #[test]
    fn a_directory_that_its_owner_closed_is_opened_and_closed_again() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("d/e/a", "1\n");
        ws.write("d/gone", "1\n");
        ws.chmod("d/e", 0o555);
        ws.chmod("d", 0o555);
        let (old, one) = (ws.manifest(), ws.save());
        ws.chmod("d", 0o755);
        ws.chmod("d/e", 0o755);
        ws.write("d/e/a", "2\n");
        ws.write("d/e/new", "2\n");
        ws.remove("d/gone");
        ws.chmod("d/e", 0o555);
        ws.chmod("d", 0o555);
        let new = ws.manifest();
        restore(&ws, &one);
        old.assert_same(&ws.manifest(), "restored");
        undo(&ws);
        new.assert_same(&ws.manifest(), "undone");
        ws.chmod("d", 0o755);
        ws.chmod("d/e", 0o755);
    }

    #[test]
    fn a_workspace_that_can_t_be_written_changes_nothing() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write("d/b", "1\n");
        let one = ws.save();
        ws.write("a", "2\n");
        ws.write("d/b", "2\n");
        ws.chmod("", 0o555);
        let before = ws.manifest();
        let restored = ws.open().restore(&RestoreRequest::whole(one.id), ws.now());
        let after = ws.manifest();
        ws.chmod("", 0o755);
        match restored {
            Ok(_) => assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec())),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::Io, "{error}");
                before.assert_same(&after, "a refused restore");
                assert!(!ws.store().join("backtrail/journal").exists());
            }
        }
        restore(&ws, &one);
        assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec()));
    }
}
