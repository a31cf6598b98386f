//! Unreadable paths are reported, and the checkpoint is marked as incomplete.
//!
//! Root can read everything. If the tests run as root, they run again as another user in another process.

use backtrail::{Reason, SaveRequest, Saved};
use backtrail_testkit::TestWorkspace;

use crate::other_user::{is_root, run_again_as_other_user};

#[test]
fn run_as_an_ordinary_user() {
    run_again_as_other_user("unreadable::ordinary::");
}

fn skipped(saved: &Saved) -> Vec<(String, Reason)> {
    saved.skipped.iter().map(|skipped| (skipped.path.to_text().into_owned(), skipped.reason)).collect()
}

mod ordinary {
    use super::*;

    #[test]
    fn an_unreadable_file_makes_the_checkpoint_incomplete() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.write_mode("d/secret", "1", 0o000);
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a"]);
        assert_eq!(skipped(&saved), [("d/secret".to_owned(), Reason::Unreadable)]);
        assert!(!saved.checkpoint.complete);
        ws.chmod("d/secret", 0o600);
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a", "d/secret"]);
        assert!(saved.checkpoint.complete);
        assert_eq!(skipped(&saved), []);
    }

    #[test]
    fn a_file_that_becomes_unreadable_is_not_reported_as_deleted() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.write("b", "1");
        ws.write("d/c", "1");
        ws.save();
        ws.chmod("a", 0o000);
        ws.chmod("d", 0o000);
        assert_eq!(ws.open().status(None).unwrap().changes, []);
        ws.write("b", "2");
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(saved.checkpoint.files_changed, [ws.workspace_path("b")]);
        assert!(!saved.checkpoint.complete);
        assert_eq!(ws.open().show(&saved.checkpoint.id).unwrap().changes.len(), 1);
        ws.chmod("d", 0o755);
    }

    #[test]
    fn directories_that_cannot_be_opened_listed_or_searched_are_reported() {
        if is_root() {
            return;
        }
        for mode in [0o000, 0o100, 0o200, 0o300, 0o400, 0o600] {
            let ws = TestWorkspace::new();
            ws.write("a", "1");
            ws.write("d/x", "1");
            ws.write("d/e/y", "1");
            ws.chmod("d", mode);
            let saved = ws.open().save(&SaveRequest::default(), ws.now());
            ws.chmod("d", 0o755);
            let saved = saved.unwrap_or_else(|error| panic!("{mode:o}: {error}"));
            assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a"], "{mode:o}");
            assert!(!saved.checkpoint.complete, "{mode:o}");
            assert!(!saved.skipped.is_empty(), "{mode:o}");
            assert!(saved.skipped.iter().all(|skipped| skipped.reason == Reason::Unreadable), "{mode:o}");
        }
    }

    #[test]
    fn unreadable_rules_are_not_applied() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a.log", "1");
        ws.write_mode(".gitignore", "*.log\n", 0o000);
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a.log"]);
        assert_eq!(skipped(&saved), [(".gitignore".to_owned(), Reason::Unreadable)]);
    }

    #[test]
    fn a_read_only_workspace_can_be_saved() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write_mode("d/a", "1", 0o444);
        ws.chmod("d", 0o555);
        ws.chmod("", 0o555);
        let saved = ws.open().save(&SaveRequest::default(), ws.now());
        ws.chmod("", 0o755);
        ws.chmod("d", 0o755);
        assert!(saved.unwrap().checkpoint.complete);
    }

    #[test]
    fn an_unreadable_workspace_is_an_error_and_changes_nothing() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.save();
        let workspace = ws.open();
        ws.chmod("", 0o000);
        let saved = workspace.save(&SaveRequest::default(), ws.now());
        let status = workspace.status(None);
        ws.chmod("", 0o755);
        assert_eq!(saved.unwrap_err().code(), backtrail::ErrorCode::Io);
        assert!(status.is_err());
        assert_eq!(workspace.list(&Default::default()).unwrap().len(), 1);
        assert!(!ws.save_with(&SaveRequest::default()).created);
    }

    #[test]
    fn a_read_only_store_becomes_writable_again() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.save();
        ws.write("a", "2");
        let packs = ws.store().join("objects/pack");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o500);
        std::fs::set_permissions(&packs, closed).unwrap();
        assert_eq!(ws.save().files_changed, [ws.workspace_path("a")]);
        ws.assert_store_is_sound();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&packs).unwrap()) & 0o777, 0o700);
    }
}
