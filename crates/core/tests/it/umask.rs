//! A umask that removes permissions even from the owner: new files and directories have the right permissions
//! nonetheless.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use backtrail::{ListFilter, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::TestWorkspace;
use rustix::fs::Mode;

use crate::other_user;

const CHILD: &str = "BACKTRAIL_TEST_UMASK";
const MASKS: [u32; 6] = [0o777, 0o377, 0o277, 0o177, 0o077, 0o000];

fn with_umask<T>(mask: u32, act: impl FnOnce() -> T) -> T {
    let before = rustix::process::umask(Mode::from_raw_mode(mask));
    let done = act();
    rustix::process::umask(before);
    done
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

fn everything_below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        let below = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        below.for_each(|entry| found.extend(everything_below(&entry.unwrap().path())));
    }
    found
}

fn assert_private(ws: &TestWorkspace, mask: u32) {
    for path in everything_below(&ws.stores()) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), wanted, "{} under the umask {mask:04o}", path.display());
    }
}

fn use_workspace(ws: &TestWorkspace) {
    let workspace = ws.open();
    let first = workspace.list(&ListFilter::default()).unwrap().pop().unwrap();
    ws.remove("d");
    ws.write("a", ws.now().to_string());
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    workspace.restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(ws.read("d/e/b").unwrap(), b"b");
    assert_eq!([mode(&ws.path("a")), mode(&ws.path("d")), mode(&ws.path("d/e"))], [0o644, 0o755, 0o755]);
}

fn prepared() -> TestWorkspace {
    let ws = TestWorkspace::new();
    ws.write_mode("a", "a", 0o644);
    ws.write("d/e/b", "b");
    for name in ["d", "d/e"] {
        ws.chmod(name, 0o755);
    }
    ws
}

/// Regression: under umask 0777, a restore left a directory that no later command could open, and a first save left
/// half a store.
#[test]
fn the_store_and_restored_files_have_the_right_permissions_under_any_umask() {
    let (_directory, program) = other_user::program();
    other_user::run_alone(&program, "umask::child_with_its_own_umask", (CHILD, Path::new("1")))
        .unwrap_or_else(|output| panic!("{output}"));
}

/// Returns at once unless the variable is set. Runs in another process, because all threads share the umask.
#[test]
fn child_with_its_own_umask() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for mask in MASKS {
        let ws = with_umask(0o022, prepared);
        with_umask(mask, || {
            ws.open().save(&SaveRequest::default(), ws.now()).unwrap_or_else(|error| panic!("{mask:04o}: {error}"));
        });
        assert_private(&ws, mask);
        with_umask(0o022, || use_workspace(&ws));
        ws.remove("d");
        with_umask(mask, || {
            let first = ws.open().list(&ListFilter::default()).unwrap().pop().unwrap();
            ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
            let target = ws.outside().join("new/exported");
            ws.open().export(&first.id, &target).unwrap();
            assert_eq!([mode(&target.join("d")), mode(&target.join("d/e/b"))], [0o755, mode(&ws.path("d/e/b"))]);
        });
        assert_private(&ws, mask);
        assert_eq!([mode(&ws.path("d")), mode(&ws.path("d/e"))], [0o755, 0o755]);
        with_umask(0o022, || use_workspace(&ws));
    }
    check_that_closed_stores_are_opened_again();
}

fn check_that_closed_stores_are_opened_again() {
    let places =
        ["backtrail/stage", "backtrail", "objects", "objects/pack", "refs", "refs/checkpoints", "", "backtrail/lock"];
    for place in places {
        let ws = with_umask(0o022, prepared);
        ws.save();
        with_umask(0o022, || use_workspace(&ws));
        let store = ws.store();
        std::fs::set_permissions(store.join(place), PermissionsExt::from_mode(0o000)).unwrap();
        ws.open().save(&SaveRequest::default(), ws.now()).unwrap_or_else(|error| panic!("{place}: {error}"));
        with_umask(0o022, || use_workspace(&ws));
        ws.open().recover(Way::Back, ws.now()).unwrap();
        assert_private(&ws, 0o022);
    }
    // Every file and every directory at once, as if they had been created under umask 0777.
    let ws = with_umask(0o022, prepared);
    ws.save();
    for path in everything_below(&ws.store()).iter().rev() {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
    }
    ws.open().save(&SaveRequest::default(), ws.now()).unwrap();
    with_umask(0o022, || use_workspace(&ws));
    // A store that consists only of its closed directory.
    let ws = with_umask(0o022, prepared);
    let store = ws.open().store_directory().to_owned();
    std::fs::create_dir_all(&store).unwrap();
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o000)).unwrap();
    ws.open().save(&SaveRequest::default(), ws.now()).unwrap();
}
