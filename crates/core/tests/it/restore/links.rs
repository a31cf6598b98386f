//! Links in the way of a restore are never written through.

use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::{ErrorCode, RestoreRequest, Way};
use backtrail_testkit::{Manifest, TestWorkspace};

use super::*;

#[test]
fn a_link_to_the_outside_is_never_written_through() {
    let ws = TestWorkspace::new();
    std::fs::write(ws.outside().join("file"), "outside\n").unwrap();
    std::fs::create_dir(ws.outside().join("directory")).unwrap();
    std::fs::write(ws.outside().join("directory/in"), "outside, too\n").unwrap();
    ws.write("file", "inside\n");
    ws.write("directory/in", "inside, too\n");
    let (old, one) = (ws.manifest(), ws.save());
    let outside = Manifest::of(&ws.outside());
    ws.remove("file");
    ws.symlink(ws.outside().join("file").to_str().unwrap(), "file");
    ws.remove("directory");
    ws.symlink(ws.outside().join("directory").to_str().unwrap(), "directory");
    let new = ws.manifest();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    restore_paths(&ws, &one, &["directory/in"]);
    assert_eq!(ws.read("directory/in").unwrap(), b"inside, too\n");
    assert!(!ws.path("directory").is_symlink());
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
}

#[test]
fn a_parent_that_became_a_link_after_the_plan_is_refused() {
    let ws = TestWorkspace::new();
    ws.write("d/file", "1\n");
    let one = ws.save();
    ws.write("d/file", "2\n");
    let plan = ws.open().plan_restore(&RestoreRequest::whole(one.id)).unwrap();
    std::fs::write(ws.outside().join("file"), "outside\n").unwrap();
    ws.rename("d", "moved");
    ws.symlink(ws.outside().to_str().unwrap(), "d");
    let before = ws.manifest();
    let request = RestoreRequest { plan: Some(plan.hash), ..RestoreRequest::whole(one.id) };
    let error = ws.open().restore(&request, ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlanChanged);
    before.assert_same(&ws.manifest(), "a refused restore");
    assert_eq!(std::fs::read(ws.outside().join("file")).unwrap(), b"outside\n");
}

#[test]
fn a_parent_that_keeps_becoming_a_link_is_never_written_through() {
    let ws = TestWorkspace::new();
    for number in 0..40 {
        ws.write(format!("d/{number}"), format!("old {number}\n"));
    }
    let one = ws.save();
    for number in 0..40 {
        ws.write(format!("d/{number}"), format!("new {number}\n"));
    }
    let two = ws.save();
    for number in 0..40 {
        std::fs::write(ws.outside().join(number.to_string()), "outside\n").unwrap();
    }
    let outside = Manifest::of(&ws.outside());
    let is_done = AtomicBool::new(false);
    let (root, target) = (ws.root(), ws.outside());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_done.load(Ordering::SeqCst) {
                    break;
                }
                if std::fs::rename(root.join("d"), root.join("aside")).is_ok() {
                    drop(std::os::unix::fs::symlink(&target, root.join("d")));
                    std::thread::yield_now();
                    drop(std::fs::remove_file(root.join("d")));
                    // If the restore has created a directory by now, that one stays.
                    if std::fs::rename(root.join("aside"), root.join("d")).is_err() {
                        drop(std::fs::rename(root.join("aside"), root.join(format!("aside-{round}"))));
                    }
                }
            }
        });
        for _ in 0..10 {
            // Any result is allowed, as long as nothing outside is touched.
            drop(ws.open().restore(&RestoreRequest::whole(one.id), ws.now()));
            drop(ws.open().restore(&RestoreRequest::whole(two.id), ws.now()));
        }
        is_done.store(true, Ordering::SeqCst);
    });
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
    ws.open().recover(Way::Forward, ws.now()).unwrap();
    ws.assert_store_is_sound();
}
