//! Restores of paths that an ordinary user may not read or write.

use std::os::unix::fs::PermissionsExt;

use backtrail::{CheckpointId, ErrorCode, Recovery, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{Manifest, TestWorkspace, crash};

use super::*;
use crate::other_user::{is_root, run_again_as_other_user};

#[test]
fn run_as_an_ordinary_user() {
    run_again_as_other_user("restore::ordinary::refused::");
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
        assert_eq!(
            ws.read("closed").unwrap(),
            b"edited\n",
            "the checkpoint does not hold a file that it could not read"
        );
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
        assert_eq!(left, ["a", "new"], "unreadable files stay and are reported");
        assert_eq!(ws.read("b").unwrap(), b"1\n");
        ws.chmod("a", 0o644);
        ws.chmod("new", 0o644);
        assert_eq!((ws.read("a").unwrap(), ws.read("new").unwrap()), (b"2\n".to_vec(), b"2\n".to_vec()));
    }

    #[test]
    fn a_read_only_directory_is_changed_and_read_only_again() {
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

    /// Saves a read-only workspace with read-only directories, then removes one of them, adds one and edits the others.
    /// Returns the checkpoint, and the trees before and after the changes.
    fn prepare_read_only_directories(ws: &TestWorkspace) -> (CheckpointId, [Manifest; 2]) {
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

    /// Returns the tree. Checks that the root itself is still read-only.
    fn tree(ws: &TestWorkspace) -> Manifest {
        let mode = std::fs::metadata(ws.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o555, "the root");
        ws.manifest()
    }

    fn make_everything_writable(ws: &TestWorkspace) {
        let all = ["", "comes", "comes/in", "goes", "goes/mod", "goes/mod/x", "stays", "stays/below"];
        all.iter().filter(|path| ws.exists(path)).for_each(|path| ws.chmod(path, 0o755));
    }

    #[test]
    fn read_only_directories_are_removed_and_restored_with_their_contents() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        let (one, [old, new]) = prepare_read_only_directories(&ws);
        let restored = ws.open().restore(&RestoreRequest::whole(one), ws.now());
        let after = tree(&ws);
        let undone = restored.map(|_| ws.open().undo(ws.now()).map(|_| tree(&ws)));
        let redone = ws.open().redo(ws.now()).map(|_| tree(&ws));
        make_everything_writable(&ws);
        new.assert_same(&undone.unwrap().unwrap(), "undone");
        old.assert_same(&after, "restored");
        old.assert_same(&redone.unwrap(), "redone");
    }

    #[test]
    fn a_restore_of_read_only_directories_recovers_from_a_kill_at_every_point() {
        if is_root() {
            return;
        }
        let driver = crash::Driver { child_test: "crash::child" };
        let ws = TestWorkspace::new();
        prepare_read_only_directories(&ws);
        let points = driver.points(&ws.base(), "restore one");
        make_everything_writable(&ws);
        for point in 1..=points.len() {
            for way in [Way::Forward, Way::Back] {
                let what = format!("killed before {point}: {}, then {way:?}", points[point - 1]);
                let ws = TestWorkspace::new();
                let (_, [old, new]) = prepare_read_only_directories(&ws);
                assert_eq!(
                    driver.run(&ws.base(), "restore one", point, crash::Fault::Kill),
                    crash::Ended::Killed,
                    "{what}"
                );
                let recovered = ws.open().recover(way, ws.now());
                let after = tree(&ws);
                make_everything_writable(&ws);
                match recovered.unwrap_or_else(|error| panic!("{what}: {error}")).outcome {
                    Recovery::Finished => old.assert_same(&after, &what),
                    Recovery::TakenBack => new.assert_same(&after, &what),
                    // The restore had not begun, or only its cleanup was missing.
                    Recovery::Nothing if new.differences(&after).is_empty() => {}
                    Recovery::Nothing => old.assert_same(&after, &what),
                    Recovery::SetAside => panic!("{what}: set aside"),
                }
            }
        }
    }

    #[test]
    fn a_failed_restore_of_a_read_only_workspace_changes_nothing() {
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
