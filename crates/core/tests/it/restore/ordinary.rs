//! What the system refuses to an ordinary user.

use std::os::unix::fs::PermissionsExt;

use backtrail::{CheckpointId, ErrorCode, Recovery, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{Manifest, TestWorkspace, crash};

use super::*;
use crate::other_user::{is_root, run_again_as_nobody};

#[test]
fn run_as_an_ordinary_user() {
    run_again_as_nobody("restore::ordinary::refused::");
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

    /// Closed directories that go, come and stay, in a closed workspace.
    fn closed_directories(ws: &TestWorkspace) -> (CheckpointId, [Manifest; 2]) {
        ws.write("comes/in/m.go", "1\n");
        ws.write("stays/edited", "1\n");
        ws.write("stays/below/deep", "1\n");
        ws.write("a", "1\n");
        let close = |all: &[&str]| all.iter().for_each(|path| ws.chmod(path, 0o555));
        let open = |all: &[&str]| all.iter().rev().for_each(|path| ws.chmod(path, 0o755));
        let first = ["comes/in", "comes", "stays/below", "stays", ""];
        close(&first);
        let old = tree(ws);
        let one = ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        open(&first);
        ws.remove("comes");
        ws.write("goes/mod/x/m.go", "2\n");
        ws.write("stays/edited", "2\n");
        ws.write("stays/below/deep", "2\n");
        ws.write("a", "2\n");
        close(&["goes/mod/x", "goes/mod", "goes", "stays/below", "stays", ""]);
        (one.checkpoint.id, [old, tree(ws)])
    }

    /// The tree; the root itself must be as closed as it was.
    fn tree(ws: &TestWorkspace) -> Manifest {
        let mode = std::fs::metadata(ws.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o555, "the root");
        ws.manifest()
    }

    fn open_everything(ws: &TestWorkspace) {
        let all = ["", "comes", "comes/in", "goes", "goes/mod", "goes/mod/x", "stays", "stays/below"];
        all.iter().filter(|path| ws.exists(path)).for_each(|path| ws.chmod(path, 0o755));
    }

    #[test]
    fn closed_directories_go_and_come_with_what_is_in_them() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        let (one, [old, new]) = closed_directories(&ws);
        let restored = ws.open().restore(&RestoreRequest::whole(one), ws.now());
        let after = tree(&ws);
        let undone = restored.map(|_| ws.open().undo(ws.now()).map(|_| tree(&ws)));
        let redone = ws.open().redo(ws.now()).map(|_| tree(&ws));
        open_everything(&ws);
        new.assert_same(&undone.unwrap().unwrap(), "undone");
        old.assert_same(&after, "restored");
        old.assert_same(&redone.unwrap(), "redone");
    }

    #[test]
    fn closed_directories_wherever_a_restore_is_interrupted() {
        if is_root() {
            return;
        }
        let driver = crash::Driver { child_test: "crash::child" };
        let ws = TestWorkspace::new();
        closed_directories(&ws);
        let points = driver.points(&ws.base(), "restore one");
        open_everything(&ws);
        for point in 1..=points.len() {
            for way in [Way::Forward, Way::Back] {
                let what = format!("killed before {point}: {}, then {way:?}", points[point - 1]);
                let ws = TestWorkspace::new();
                let (_, [old, new]) = closed_directories(&ws);
                assert_eq!(
                    driver.run(&ws.base(), "restore one", point, crash::Fault::Kill),
                    crash::Ended::Killed,
                    "{what}"
                );
                let recovered = ws.open().recover(way, ws.now());
                let after = tree(&ws);
                open_everything(&ws);
                match recovered.unwrap_or_else(|error| panic!("{what}: {error}")).outcome {
                    Recovery::Finished => old.assert_same(&after, &what),
                    Recovery::TakenBack => new.assert_same(&after, &what),
                    // Not begun, or done but for the cleaning up.
                    Recovery::Nothing if new.differences(&after).is_empty() => {}
                    Recovery::Nothing => old.assert_same(&after, &what),
                    Recovery::SetAside => panic!("{what}: set aside"),
                }
            }
        }
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
