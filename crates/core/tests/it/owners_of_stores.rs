//! Whom a store belongs to that root used: to whom it belonged before. Only root can try.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt, lchown},
    path::Path,
};

use backtrail::{ErrorCode, ListFilter, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::other_user::{self, NOBODY, is_root};

const PLACE: &str = "BACKTRAIL_TEST_STORE_OF_NOBODY";
const DRIVER: Driver = Driver { child_test: "crash::child" };

fn give_away(place: &Path) {
    lchown(place, Some(NOBODY), Some(NOBODY)).unwrap();
    if place.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

fn assert_given(place: &Path) {
    let found = place.symlink_metadata().unwrap();
    assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{}", place.display());
    if found.is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| assert_given(&entry.unwrap().path()));
    }
}

/// What the owner does after root was there; by itself it does nothing.
#[test]
fn owner() {
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

fn owner_goes_on(ws: &TestWorkspace, program: &Path) {
    other_user::run_alone(program, "owners_of_stores::owner", (PLACE, &ws.base()))
        .unwrap_or_else(|said| panic!("{said}"));
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

/// Whatever root does in it, the store is the owner's, who goes on with it.
fn assert_stays_its_owners(ws: &TestWorkspace) {
    give_away(&ws.base());
    use_as_root(ws);
    assert_given(&ws.stores());
    let (_directory, program) = other_user::program();
    owner_goes_on(ws, &program);
}

#[test]
fn a_store_that_root_used_is_still_its_owners() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("d/b", "1");
    ws.save();
    assert_stays_its_owners(&ws);
}

#[test]
fn a_store_that_root_makes_in_somebodys_home_is_theirs() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    assert_stays_its_owners(&ws);
}

/// What root saves of its own stays its own, in whomever's home the store lies.
#[test]
fn a_store_of_roots_workspace_is_roots() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    std::fs::create_dir_all(ws.stores()).unwrap();
    give_away(&ws.stores());
    use_as_root(&ws);
    let store = ws.store().metadata().unwrap();
    assert_eq!((store.uid(), store.mode() & 0o777), (0, 0o700));
    assert_eq!(ws.store().join("backtrail/format").metadata().unwrap().uid(), 0);
}

/// Killed anywhere, root leaves nothing that the owner can't go on from.
#[test]
fn a_restore_of_roots_that_was_killed_is_finished_by_the_owner() {
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
        give_away(&ws.base());
        let ended = DRIVER.run(&ws.base(), "restore one", point, Fault::Kill);
        owner_goes_on(&ws, &program);
        if ended == Ended::Done {
            break;
        }
    }
}

/// A pack that may not be read was told as one that is gone.
#[test]
fn what_may_not_be_read_is_not_called_missing() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    for suffix in ["pack", "idx", ""] {
        let ws = TestWorkspace::new();
        ws.write("a", "1");
        ws.save();
        give_away(&ws.base());
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
        let told = other_user::run_alone(&program, "owners_of_stores::shut_out", (PLACE, &ws.base()));
        told.unwrap_or_else(|said| panic!("{suffix}: {said}"));
    }
}

/// Whoever may not write the store, or make it, hears of it before they rely on it.
#[test]
fn a_store_that_may_not_be_written_is_told() {
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
        give_away(&ws.root());
        ws.open().check_store().unwrap();
        let told = other_user::run_alone(&program, "owners_of_stores::not_a_writer", (PLACE, &ws.base()));
        told.unwrap_or_else(|said| panic!("{said}"));
        give_away(&ws.base());
        if is_made {
            std::fs::set_permissions(ws.store(), PermissionsExt::from_mode(0o500)).unwrap();
        }
        let told = other_user::run_alone(&program, "owners_of_stores::writer", (PLACE, &ws.base()));
        told.unwrap_or_else(|said| panic!("{said}"));
    }
}

/// What somebody meets who may not write the store; by itself it does nothing.
#[test]
fn not_a_writer() {
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

/// What somebody meets who may write the store, once they open it up; by itself it does nothing.
#[test]
fn writer() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    workspace.check_store().unwrap();
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
}

/// What somebody meets who may not read all of the store; by itself it does nothing.
#[test]
fn shut_out() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let ws = TestWorkspace::attach(Path::new(&place));
    let workspace = ws.open();
    let id = workspace.list(&ListFilter::default()).unwrap()[0].id;
    ws.write("a", "2");
    let told = [
        workspace.restore(&RestoreRequest::whole(id), ws.now()).map(drop),
        workspace.save(&SaveRequest::default(), ws.now()).map(drop),
        workspace.show(&id).map(drop),
        workspace.export(&id, &ws.base().join("exported")).map(drop),
        workspace.verify().map(drop),
    ];
    for told in told {
        let error = told.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io, "{error}");
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
}
