//! Forks that are killed, or fail, at every point.

use super::*;
use crate::forks::{forks, request};

fn prepare(ws: &TestWorkspace) {
    make_every_kind_of_change(ws);
    ws.write("package.json", "{}");
    ws.write("node_modules/lib", "1\n");
}

#[test]
fn a_fork_exists_or_is_recognisably_unfinished_after_a_kill_at_every_point() {
    let probe = TestWorkspace::new();
    prepare(&probe);
    let points = DRIVER.points(&probe.base(), "fork");
    println!("fork: {} points", points.len());
    let tree = without_links(&probe.outside().join("fork"));
    let next = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let point = next.fetch_add(1, Ordering::SeqCst);
                    if point > points.len() {
                        break;
                    }
                    for fault in [Fault::Kill, Fault::Error(if point.is_multiple_of(2) { EIO } else { ENOSPC })] {
                        let what = format!("fork, {fault:?} at point {point} ({})", points[point - 1]);
                        check_interrupted(point, fault, &tree, &what);
                    }
                }
            });
        }
    });
}

/// Returns the tree of a fork without its links, which lead into workspaces with different paths.
fn without_links(place: &Path) -> Manifest {
    let mut tree = Manifest::of(place);
    for link in ["ignored", "node_modules"] {
        assert!(place.join(link).is_symlink(), "{link}");
        tree.0.remove(link.as_bytes());
    }
    tree
}

fn check_interrupted(point: usize, fault: Fault, tree: &Manifest, what: &str) {
    let ws = TestWorkspace::new();
    prepare(&ws);
    let old = ws.manifest();
    let git_before = git_directories(&ws);
    let ended = DRIVER.run(&ws.base(), "fork", point, fault);
    let place = ws.outside().join("fork");
    let listed = forks(&ws);
    match listed.as_slice() {
        [fork] => {
            tree.assert_same(&without_links(&place), &format!("{what}: the fork"));
            assert_eq!(fork.changes.map(|changes| changes.files), Some(0), "{what}");
            let request = SaveRequest { if_changed: true, ..SaveRequest::default() };
            let saved = ws.open_at(&place).save(&request, ws.now());
            assert!(saved.is_ok_and(|saved| !saved.created), "{what}: the fork can't be used");
            assert_eq!(ws.open_at(&place).verify().unwrap().damaged, [], "{what}");
        }
        [] => {
            assert_ne!(ended, Ended::Done, "{what}: the fork was reported as made");
            check_unfinished(&ws, &place, what);
        }
        more => panic!("{what}: {more:?}"),
    }
    check_after_fault(&ws, &[old], &git_before, what);
}

/// An unfinished fork has its mark, or its store refuses to be written; after the directory is removed, the fork can be
/// repeated.
#[expect(clippy::disallowed_methods, reason = "the test removes its own fork")]
fn check_unfinished(ws: &TestWorkspace, place: &Path, what: &str) {
    let names = std::fs::read_dir(place).map(|found| found.count()).unwrap_or(0);
    if names > 0 {
        let is_marked = place.join(".backtrail-fork").exists();
        let is_refused = || ws.open_at(place).save(&SaveRequest::default(), ws.now()).is_err();
        assert!(is_marked || is_refused(), "{what}: files are there, and nothing says that it is unfinished");
        assert!(ws.open().fork(&request(ws, "fork"), ws.now()).is_err(), "{what}: a half-made fork was overwritten");
        std::fs::remove_dir_all(place).unwrap();
    }
    ws.open().fork(&request(ws, "fork"), ws.now()).unwrap_or_else(|error| panic!("{what}: again: {error}"));
    assert_eq!(forks(ws).len(), 1, "{what}");
    let stores = std::fs::read_dir(ws.stores()).unwrap().count();
    assert_eq!(stores, 2, "{what}: the store of the unfinished fork is left");
    std::fs::remove_dir_all(place).unwrap();
}

/// The scan found the old bytes, and another process writes right before the file is cloned.
#[test]
fn a_fork_has_the_bytes_of_the_fork_point_if_a_file_changes_meanwhile() {
    let ws = TestWorkspace::new();
    ws.write("a", "old\n");
    save_as(&ws, "one");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let ended = DRIVER.run(&ws.base(), "fork-intruded a", usize::MAX, Fault::Kill);
    assert_eq!(ended, Ended::Done);
    assert_eq!(ws.read("a").unwrap(), LATE_WRITE.as_bytes());
    assert_eq!(std::fs::read(ws.outside().join("fork/a")).unwrap(), b"old\n");
}

#[test]
fn an_adoption_is_old_or_new_after_a_kill_at_every_point() {
    let prepare = |ws: &TestWorkspace| {
        ws.write("both", "1\n2\n3\n4\n5\n");
        ws.write("gone", "g\n");
        ws.write("nested/x", "2\n");
        ws.git_init();
        backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
        save_as(ws, "one");
        let place = ws.open().fork(&request(ws, "fork"), ws.now()).unwrap().remove(0).path;
        std::fs::write(place.join("both"), "fork\n2\n3\n4\n5\n").unwrap();
        std::fs::write(place.join("new"), "n\n").unwrap();
        std::fs::remove_file(place.join("gone")).unwrap();
        ws.write("both", "1\n2\n3\n4\nhere\n");
    };
    sweep("adopt", &TestWorkspace::new, &prepare, "adopt");
}
