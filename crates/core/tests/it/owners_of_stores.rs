//! Ownership of a store that root used: it still belongs to its previous owner. These tests need root.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt, lchown},
    path::Path,
};

use backtrail::{ErrorCode, ListFilter, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::other_user::{self, OTHER_USER, is_root};

const PLACE: &str = "BACKTRAIL_TEST_STORE_OF_OTHER_USER";
const DRIVER: Driver = Driver { child_test: "crash::child" };

fn chown_to_other_user(place: &Path) {
    lchown(place, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    if place.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| chown_to_other_user(&entry.unwrap().path()));
    }
}

fn assert_owned_by_other_user(place: &Path) {
    let found = place.symlink_metadata().unwrap();
    assert_eq!((found.uid(), found.gid()), (OTHER_USER, OTHER_USER), "{}", place.display());
    if found.is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| assert_owned_by_other_user(&entry.unwrap().path()));
    }
}

/// The operations of the owner after root used the store. Does nothing unless the variable is set.
#[test]
fn child_of_owner() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    workspace.recover(Way::Forward, ws.now()).unwrap();
    let all = workspace.list(&ListFilter::default()).unwrap();
    assert!(workspace.verify().unwrap().damaged.is_empty());
    ws.write("a", ws.now().to_string());
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    for found in &all {
        workspace.restore(&RestoreRequest::whole(found.id), ws.now()).unwrap();
    }
    workspace.undo(ws.now()).unwrap();
}

fn run_child_of_owner(ws: &TestWorkspace, program: &Path) {
    other_user::run_alone(program, "owners_of_stores::child_of_owner", (PLACE, &ws.base()))
        .unwrap_or_else(|output| panic!("{output}"));
}

fn use_as_root(ws: &TestWorkspace) {
    let workspace = ws.open();
    ws.write("a", ws.now().to_string());
    let saved = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    workspace.pin(&saved.checkpoint.id, ws.now()).unwrap();
    let all = workspace.list(&ListFilter::default()).unwrap();
    workspace.restore(&RestoreRequest::whole(all.last().unwrap().id), ws.now()).unwrap();
    workspace.prune(ws.now()).unwrap();
}

/// Checks that the store belongs to its owner after root used it, and that the owner can continue with it.
fn assert_stays_with_its_owner(ws: &TestWorkspace) {
    chown_to_other_user(&ws.base());
    use_as_root(ws);
    assert_owned_by_other_user(&ws.stores());
    let (_directory, program) = other_user::program();
    run_child_of_owner(ws, &program);
}

#[test]
fn a_store_that_root_used_still_belongs_to_its_owner() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("d/b", "1");
    ws.save();
    assert_stays_with_its_owner(&ws);
}

#[test]
fn a_store_that_root_creates_for_another_users_workspace_belongs_to_that_user() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    assert_stays_with_its_owner(&ws);
}

/// A store of root's own workspace belongs to root, even if it is in another user's home.
#[test]
fn a_store_of_roots_workspace_belongs_to_root() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    std::fs::create_dir_all(ws.stores()).unwrap();
    chown_to_other_user(&ws.stores());
    use_as_root(&ws);
    let store = ws.store().metadata().unwrap();
    assert_eq!((store.uid(), store.mode() & 0o777), (0, 0o700));
    assert_eq!(ws.store().join("backtrail/format").metadata().unwrap().uid(), 0);
}

/// At whatever point root is killed, the owner can continue.
#[test]
fn a_killed_restore_of_root_is_finished_by_the_owner() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    let step = if backtrail_testkit::is_long() { 1 } else { 5 };
    for point in (1..).step_by(step) {
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.write("d/b", "1");
        ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        ws.write("a", "2");
        ws.remove("d");
        chown_to_other_user(&ws.base());
        let ended = DRIVER.run(&ws.base(), "restore one", point, Fault::Kill);
        run_child_of_owner(&ws, &program);
        if ended == Ended::Done {
            break;
        }
    }
}

/// Regression: a pack without read permission was reported as missing.
#[test]
fn a_pack_without_read_permission_is_not_reported_as_missing() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    for suffix in ["pack", "idx", ""] {
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.save();
        chown_to_other_user(&ws.base());
        let packs = ws.store().join("objects/pack");
        let mut closed: Vec<_> = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path()).collect();
        closed.retain(|path| path.extension().is_some_and(|found| found == suffix));
        if suffix.is_empty() {
            closed.push(packs);
        }
        for path in &closed {
            lchown(path, Some(0), Some(0)).unwrap();
            let mode = if path.is_dir() { 0o700 } else { 0o600 };
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let result =
            other_user::run_alone(&program, "owners_of_stores::child_without_read_permission", (PLACE, &ws.base()));
        result.unwrap_or_else(|output| panic!("{suffix}: {output}"));
    }
}

/// A user who may not write or create the store gets an error before they rely on it.
#[test]
fn a_store_without_write_permission_is_reported() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    for is_made in [true, false] {
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        if is_made {
            ws.save();
            let opened = std::process::Command::new("chmod").args(["-R", "go+rX"]).arg(ws.stores()).status();
            assert!(opened.unwrap().success());
        }
        std::fs::set_permissions(ws.base(), PermissionsExt::from_mode(0o755)).unwrap();
        chown_to_other_user(&ws.root());
        ws.open().check_store().unwrap();
        let result =
            other_user::run_alone(&program, "owners_of_stores::child_without_write_permission", (PLACE, &ws.base()));
        result.unwrap_or_else(|output| panic!("{output}"));
        chown_to_other_user(&ws.base());
        if is_made {
            std::fs::set_permissions(ws.store(), PermissionsExt::from_mode(0o500)).unwrap();
        }
        let result =
            other_user::run_alone(&program, "owners_of_stores::child_with_write_permission", (PLACE, &ws.base()));
        result.unwrap_or_else(|output| panic!("{output}"));
    }
}

/// The operations of a user who may not write the store. Does nothing unless the variable is set.
#[test]
fn child_without_write_permission() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    for error in [
        workspace.check_store().unwrap_err(),
        workspace.save(&SaveRequest::default(), ws.now()).unwrap_err(),
        workspace.check_store().unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::Io, "{error}");
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
}

/// The operations of a user who may write the store, or owns it and can change its permissions. Does nothing unless
/// the variable is set.
#[test]
fn child_with_write_permission() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    workspace.check_store().unwrap();
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
}

/// The operations of a user who may not read the whole store. Does nothing unless the variable is set.
#[test]
fn child_without_read_permission() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    let id = workspace.list(&ListFilter::default()).unwrap()[0].id;
    ws.write("a", "2");
    let results = [
        workspace.restore(&RestoreRequest::whole(id), ws.now()).map(drop),
        workspace.save(&SaveRequest::default(), ws.now()).map(drop),
        workspace.show(&id).map(drop),
        workspace.export(&id, &ws.base().join("exported")).map(drop),
        workspace.verify().map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io, "{error}");
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
}
