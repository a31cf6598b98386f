//! Operations that are killed or fail at every step that changes something: the tree is the old one or the new one, no
//! byte is lost, and the next command works.

mod bin;
mod fork;
mod git;
mod meddling;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use backtrail::{
    Checkpoint, Kind, ListFilter, Only, Recovery, RestoreRequest, RevertRequest, RevertTarget, SaveRequest, Scope,
    StepRequest, Way,
};
use backtrail_testkit::{
    Found, Manifest, TestWorkspace,
    crash::{self, Driver, Ended, Fault},
    git_directory_bytes,
};

const DRIVER: Driver = Driver { child_test: "crash::child" };
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Runs an operation in a child process of the driver. Does nothing as a test of its own.
#[test]
fn child() {
    crash::child(|place, operation| {
        let ws = TestWorkspace::attach(place);
        let workspace = ws.open();
        let now = ws.now();
        let by_name = |name: &str| {
            let all = workspace.list(&ListFilter::default()).map_err(|error| error.to_string())?;
            all.into_iter().find(|found| found.name.as_deref() == Some(name)).ok_or_else(|| format!("no {name}"))
        };
        let words: Vec<&str> = operation.split(' ').collect();
        match words.as_slice() {
            ["forget"] => backtrail::forget(&ws.store(), None, std::time::Duration::ZERO),
            ["save"] => workspace.save(&SaveRequest::default(), now).map(drop),
            ["thread"] => {
                let request = SaveRequest { kind: Some(Kind::Thread), ..SaveRequest::default() };
                workspace.save(&request, now).map(drop)
            }
            ["intruded", step, path, name] => {
                let (step, path) = (if *step == "exchange" { "exchange" } else { "move into place" }, ws.path(path));
                backtrail::disk::crash_points::intrude(step, move || std::fs::write(path, LATE_WRITE).unwrap());
                workspace.restore(&RestoreRequest::whole(by_name(name)?.id), now).map(drop)
            }
            ["intruded-abort", path] => {
                let path = ws.path(path);
                backtrail::disk::crash_points::intrude("exchange", move || {
                    std::fs::write(path, SECOND_LATE_WRITE).unwrap()
                });
                let reported = workspace.recover(Way::Back, now).map_err(|error| error.to_string())?.conflicts;
                let kept: BTreeSet<_> =
                    reported.iter().map(|conflict| (conflict.path.to_text(), conflict.kept)).collect();
                assert!(kept.len() == 2 && kept.iter().all(|(_, kept)| kept.is_some()), "{reported:?}");
                Ok(())
            }
            ["displaced", path, name] => {
                let path = ws.path(path);
                backtrail::disk::crash_points::intrude("move into place", move || {
                    std::fs::remove_file(&path).unwrap();
                    std::fs::create_dir(&path).unwrap();
                    std::fs::write(path.join("inside"), LATE_WRITE).unwrap();
                });
                workspace.restore(&RestoreRequest::whole(by_name(name)?.id), now).map(drop)
            }
            ["fixed", grows, fixed, name] => {
                let attributes = [("+a", ws.path(grows)), ("+i", ws.path(fixed))];
                backtrail::disk::crash_points::intrude("exchange", move || {
                    for (attribute, path) in &attributes {
                        assert!(crate::refused::succeeds("chattr", &[attribute], path));
                    }
                });
                workspace.restore(&RestoreRequest::whole(by_name(name)?.id), now).map(drop)
            }
            ["swapped", directory, name] => {
                let (directory, aside, link) = (ws.path(directory), ws.path("aside"), ws.outside());
                backtrail::disk::crash_points::intrude("exchange", move || {
                    std::fs::rename(&directory, aside).unwrap();
                    std::os::unix::fs::symlink(link, &directory).unwrap();
                });
                workspace.restore(&RestoreRequest::whole(by_name(name)?.id), now).map(drop)
            }
            ["restore-with-git", name] => {
                let request = RestoreRequest { git: true, ..RestoreRequest::whole(by_name(name)?.id) };
                workspace.restore(&request, now).map(drop)
            }
            ["git-locked", reference, name] => {
                let lock = ws.path(format!(".git/{reference}.lock"));
                backtrail::disk::crash_points::intrude("write git file", move || std::fs::write(lock, "").unwrap());
                let request = RestoreRequest { git: true, ..RestoreRequest::whole(by_name(name)?.id) };
                let done = workspace.restore(&request, now).map_err(|error| error.to_string())?;
                let head = backtrail_testkit::git(&ws.root(), &["rev-parse", "HEAD"]);
                let stands = done.git.and_then(|git| git.commit).unwrap_or_default();
                assert_eq!(stands, String::from_utf8_lossy(&head).trim());
                assert!(done.conflicts.iter().any(|one| one.path.to_text().ends_with(reference)));
                Ok(())
            }
            ["restore", name] => workspace.restore(&RestoreRequest::whole(by_name(name)?.id), now).map(drop),
            ["restore", name, paths @ ..] => {
                let scope = Scope::of_paths(paths.iter().map(|path| ws.workspace_path(path)).collect());
                let request = RestoreRequest { scope, only: Only::All, ..RestoreRequest::whole(by_name(name)?.id) };
                workspace.restore(&request, now).map(drop)
            }
            ["revert", name] => {
                let request = RevertRequest::whole(RevertTarget::Checkpoint(by_name(name)?.id));
                workspace.revert(&request, now).map(drop)
            }
            ["fork"] => workspace.fork(&crate::forks::request(&ws, "fork"), now).map(drop),
            ["adopt"] => crate::adopt::adopt(&ws, &crate::adopt::adoption(&ws)).map(drop),
            ["fork-intruded", path] => {
                let path = ws.path(path);
                backtrail::disk::crash_points::intrude("clone file", move || std::fs::write(path, LATE_WRITE).unwrap());
                workspace.fork(&crate::forks::request(&ws, "fork"), now).map(drop)
            }
            ["step"] => workspace.step(&StepRequest::default(), now).map(drop),
            ["delete", names @ ..] => {
                let ids = names.iter().map(|name| Ok(by_name(name)?.id)).collect::<Result<Vec<_>, String>>()?;
                workspace.delete(&ids, false, now).map(drop)
            }
            ["empty-bin"] => {
                let binned = workspace.deleted().map_err(|error| error.to_string())?;
                let ids: Vec<_> = binned.iter().map(|deleted| deleted.checkpoint.id).collect();
                workspace.delete_for_good(&ids, false, now).map(drop)
            }
            ["prune"] => workspace.prune(now).map(drop),
            ["undo"] => workspace.undo(now).map(drop),
            ["redo"] => workspace.redo(now).map(drop),
            ["recover"] => workspace.recover(Way::Forward, now).map(drop),
            ["abort"] => workspace.recover(Way::Back, now).map(drop),
            other => panic!("unknown operation {other:?}"),
        }
        .map_err(|error| error.to_string())
    });
}

/// Creates every kind of entry and saves it as `one`, makes every kind of change and saves it as `two`, then makes
/// unsaved edits.
fn make_every_kind_of_change(ws: &TestWorkspace) {
    ws.write(".gitignore", "*.o\nignored/\n.env\n");
    ws.write(".env", "SECRET=1\n");
    ws.write("ignored/x", "never captured\n");
    ws.write("same", "same\n");
    ws.write("edited", "one\n");
    ws.write("deleted", "comes back\n");
    ws.write_mode("mode", "m\n", 0o644);
    ws.write_mode("secret", "s\n", 0o600);
    ws.write("file-to-dir", "was a file\n");
    ws.write("dir-to-file/a/b", "was in a directory\n");
    ws.symlink("same", "link");
    ws.symlink("edited", "link-to-file");
    ws.write("file-to-link", "was a file, too\n");
    ws.mkdir("empty/inner");
    ws.write("linked", "hard\n");
    std::fs::hard_link(ws.path("linked"), ws.path("linked-too")).unwrap();
    ws.write("nested/file", "in a nested repository\n");
    ws.git_init();
    backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
    save_as(ws, "one");

    ws.write("edited", "two\n");
    ws.remove("deleted");
    ws.chmod("mode", 0o755);
    ws.remove("file-to-dir");
    ws.write("file-to-dir/inside/deep", "new inside\n");
    ws.remove("dir-to-file");
    ws.write("dir-to-file", "now a file\n");
    ws.remove("link");
    ws.symlink("edited", "link");
    ws.remove("link-to-file");
    ws.write("link-to-file", "now a file\n");
    ws.remove("file-to-link");
    ws.symlink("same", "file-to-link");
    ws.remove("empty");
    ws.mkdir("other-empty");
    ws.write("linked", "edited through one name\n");
    ws.write("nested/file", "edited\n");
    ws.write("nested/new", "new in nested\n");
    ws.write("added/deep/file", "added\n");
    save_as(ws, "two");

    ws.write("edited", "unsaved work\n");
    ws.write("unsaved", "only on disk\n");
    ws.write(".env", "SECRET=unsaved\n");
}

/// Makes every kind of change that a revert takes back and saves it as `two`, then makes unsaved edits: in the lines
/// around a change, in the permission bits beside one, and at other paths.
fn make_changes_to_revert(ws: &TestWorkspace) {
    let text = |line: &str, last: &str| format!("1\n{line}\n3\n4\n5\n6\n7\n8\n{last}\n");
    ws.write("text", text("2", "9"));
    ws.write("deleted/deep", "comes back\n");
    ws.write_mode("mode", "m\n", 0o644);
    ws.write("file-to-dir", "was a file\n");
    ws.write("dir-to-file/a/b", "was in a directory\n");
    ws.symlink("text", "link");
    ws.mkdir("empty/inner");
    ws.write("nested/file", "in a nested repository\n");
    ws.git_init();
    backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
    save_as(ws, "one");
    ws.write("text", text("agent", "9"));
    ws.remove("deleted");
    ws.chmod("mode", 0o755);
    ws.remove("file-to-dir");
    ws.write("file-to-dir/inside/deep", "new inside\n");
    ws.remove("dir-to-file");
    ws.write("dir-to-file", "now a file\n");
    ws.remove("link");
    ws.symlink("mode", "link");
    ws.remove("empty");
    ws.mkdir("other-empty");
    ws.write("nested/new", "new in nested\n");
    save_as(ws, "two");
    ws.write("text", text("agent", "mine"));
    ws.write("mode", "edited\n");
    ws.write("unsaved", "only on disk\n");
}

#[test]
fn revert_is_old_or_new_after_a_kill_at_every_point() {
    sweep("revert", &TestWorkspace::new, &make_changes_to_revert, "revert two");
}

#[test]
fn undo_and_redo_of_a_revert_are_old_or_new_after_a_kill_at_every_point() {
    let reverted = |ws: &TestWorkspace| {
        make_changes_to_revert(ws);
        let two = ws.open().resolve("two", &jiff::Zoned::now()).unwrap();
        ws.open().revert(&RevertRequest::whole(RevertTarget::Checkpoint(two)), ws.now()).unwrap();
    };
    sweep("undo of a revert", &TestWorkspace::new, &reverted, "undo");
    let undone = |ws: &TestWorkspace| {
        reverted(ws);
        ws.open().undo(ws.now()).unwrap().unwrap();
    };
    sweep("redo of a revert", &TestWorkspace::new, &undone, "redo");
}

fn save_as(ws: &TestWorkspace, name: &str) -> Checkpoint {
    let request = SaveRequest { name: Some(name.into()), ..SaveRequest::default() };
    ws.save_with(&request).checkpoint
}

/// Returns the git directories in the workspace, byte for byte.
fn git_directories(ws: &TestWorkspace) -> [Manifest; 2] {
    [git_directory_bytes(&ws.path(".git")), git_directory_bytes(&ws.path("nested/.git"))]
}

/// Checks everything that must be true after a fault, however far the operation came. The tree must be one of `trees`,
/// which starts with the oldest.
fn check_after_fault(ws: &TestWorkspace, trees: &[Manifest], git_before: &[Manifest; 2], what: &str) {
    let before_recovery = contents(&ws.manifest());
    let recovered =
        ws.open().recover(Way::Forward, ws.now()).unwrap_or_else(|error| panic!("{what}: recover: {error}"));
    let tree = ws.manifest();
    let differences: Vec<_> = trees.iter().map(|other| other.differences(&tree)).collect();
    assert!(
        differences.iter().any(Vec::is_empty),
        "{what}: {recovered:?}, but the tree is neither old nor new:\n{differences:#?}"
    );
    let held = object_ids_in_store(ws);
    let mut wanted = before_recovery;
    wanted.extend(contents(&trees[0]));
    for (bytes, path) in wanted {
        let is_kept = tree.holds(&bytes) || held.contains(&backtrail_testkit::blob_id(&bytes));
        assert!(is_kept, "{what}: the bytes of {path} are lost");
    }
    for (before, after) in git_before.iter().zip(git_directories(ws)) {
        before.assert_same(&after, &format!("{what}: a .git directory"));
    }
    if ws.store().join("backtrail/format").exists() {
        assert_no_leftovers(ws, what);
    }
    ws.write("after", "the next command works\n");
    let saved = ws.open().save(&SaveRequest::default(), ws.now());
    assert!(saved.is_ok_and(|saved| saved.created), "{what}: the next save failed or saved nothing");
    assert_no_leftovers(ws, what);
    ws.assert_store_is_sound();
}

fn contents(tree: &Manifest) -> BTreeMap<Vec<u8>, String> {
    let files = tree.0.iter().filter_map(|(path, found)| match found {
        Found::File(_, bytes) => Some((bytes.clone(), String::from_utf8_lossy(path).into_owned())),
        _ => None,
    });
    files.filter(|(_, path)| !path.contains(".backtrail-")).collect()
}

fn object_ids_in_store(ws: &TestWorkspace) -> String {
    if !ws.store().join("HEAD").exists() {
        return String::new();
    }
    String::from_utf8_lossy(&ws.store_git(&["rev-list", "--objects", "--all"])).into_owned()
}

/// Checks that a command that writes left no temporary file, staging area, journal or pin of a deleted checkpoint.
fn assert_no_leftovers(ws: &TestWorkspace, what: &str) {
    let mut pending: Vec<_> = [ws.store(), ws.root()].into_iter().filter(|place| place.exists()).collect();
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.starts_with(".backtrail-"), "{what}: left behind: {}", path.display());
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            }
        }
    }
    assert!(!ws.store().join("backtrail/journal").exists(), "{what}: the journal is left");
    let stage = ws.store().join("backtrail/stage");
    let staged = std::fs::read_dir(&stage).map(|entries| entries.count()).unwrap_or(0);
    assert_eq!(staged, 0, "{what}: the staging directory is not empty");
    for pin in std::fs::read_dir(ws.store().join("refs/pinned")).into_iter().flatten() {
        let id = pin.unwrap().file_name();
        let checkpoint = ws.store().join("refs/checkpoints").join(&id);
        assert!(checkpoint.exists(), "{what}: {id:?} is gone, but its pin is left");
    }
}

/// Runs `operation` with a fault at each of its points, each time in a fresh workspace after `prepare`.
fn sweep(
    name: &str,
    make: &(dyn Fn() -> TestWorkspace + Sync),
    prepare: &(dyn Fn(&TestWorkspace) + Sync),
    operation: &str,
) {
    sweep_from(1, name, make, prepare, operation);
}

/// Like [`sweep`], but starts at the point `first`.
fn sweep_from(
    first: usize,
    name: &str,
    make: &(dyn Fn() -> TestWorkspace + Sync),
    prepare: &(dyn Fn(&TestWorkspace) + Sync),
    operation: &str,
) {
    let ws = make();
    prepare(&ws);
    let old = ws.manifest();
    let points = DRIVER.points(&ws.base(), operation);
    let trees = [old, ws.manifest()];
    let kinds: std::collections::BTreeSet<_> = points.iter().collect();
    println!("{name}: {} points of {} kinds", points.len(), kinds.len());
    let next = AtomicUsize::new(first);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let point = next.fetch_add(1, Ordering::SeqCst);
                    if point > points.len() {
                        break;
                    }
                    for fault in [Fault::Kill, Fault::Error(if point.is_multiple_of(2) { EIO } else { ENOSPC })] {
                        let what = format!("{name}, {fault:?} at point {point} ({})", points[point - 1]);
                        let ws = make();
                        prepare(&ws);
                        let git_before = git_directories(&ws);
                        let ended = DRIVER.run(&ws.base(), operation, point, fault);
                        match fault {
                            Fault::Kill => assert_eq!(ended, Ended::Killed, "{what}"),
                            Fault::Error(_) => assert_ne!(ended, Ended::Killed, "{what}"),
                        }
                        check_after_fault(&ws, &trees, &git_before, &what);
                    }
                }
            });
        }
    });
}

/// Bytes that another process writes into a file right before the restore removes it.
const LATE_WRITE: &str = "written at the worst moment\n";
const SECOND_LATE_WRITE: &str = "and again\n";

/// If the store is on another file system, the staging area is in the workspace.
#[test]
fn a_restore_that_fails_before_it_begins_leaves_no_staging_area() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let prepared = || {
        let ws = TestWorkspace::with_stores_below(memory);
        ws.write("file", "one\n");
        save_as(&ws, "one");
        ws.write("file", "two\n");
        ws
    };
    let areas = |ws: &TestWorkspace| {
        let names = std::fs::read_dir(ws.root()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".backtrail-")).collect::<Vec<_>>()
    };
    let points = DRIVER.points(&prepared().base(), "restore one");
    let (mut tried, mut found_area) = (0, false);
    for (number, name) in points.iter().enumerate() {
        // Only points before the first write. A fault while the staging area is removed does not fail the restore.
        if name == "exchange" {
            break;
        }
        let ws = prepared();
        if DRIVER.run(&ws.base(), "restore one", number + 1, Fault::Error(ENOSPC)) == Ended::Failed {
            assert_eq!(areas(&ws), [] as [&str; 0], "no space at {}: {name}", number + 1);
            assert_eq!(ws.read("file").unwrap(), b"two\n");
            tried += 1;
        }
        // A directory that another process puts into a staging area stays, and later commands work.
        let ws = prepared();
        DRIVER.run(&ws.base(), "restore one", number + 1, Fault::Kill);
        if let Some(area) = areas(&ws).first() {
            found_area = true;
            let inside = ws.root().join(area).join("theirs");
            std::fs::create_dir(&inside).unwrap();
            std::fs::write(inside.join("file"), "theirs\n").unwrap();
            ws.save();
            ws.write("file", "three\n");
            ws.save();
            assert_eq!(std::fs::read(inside.join("file")).unwrap(), b"theirs\n");
        }
    }
    assert!(tried > 5 && found_area, "{tried} points: {points:?}");
}

#[test]
fn a_restore_interrupted_while_staging_changes_nothing() {
    let probe = TestWorkspace::new();
    make_every_kind_of_change(&probe);
    let points = DRIVER.points(&probe.base(), "restore one");
    let staging = ["create file", "write file", "create symlink"];
    let numbers: Vec<usize> =
        (1..=points.len()).filter(|number| staging.contains(&points[number - 1].as_str())).collect();
    assert!(numbers.len() > 6, "files and links are staged: {points:?}");
    for number in numbers {
        for fault in [Fault::Kill, Fault::Error(ENOSPC)] {
            let what = format!("{fault:?} at point {number} ({})", points[number - 1]);
            let ws = TestWorkspace::new();
            make_every_kind_of_change(&ws);
            let before = ws.manifest();
            assert_ne!(DRIVER.run(&ws.base(), "restore one", number, fault), Ended::Done, "{what}");
            before.assert_same(&ws.manifest(), &what);
            let recovered = ws.open().recover(Way::Forward, ws.now()).unwrap();
            assert_eq!(recovered.outcome, Recovery::Nothing, "{what}");
            before.assert_same(&ws.manifest(), &what);
            assert_no_leftovers(&ws, &what);
        }
    }
}

/// Returns a workspace whose restore was killed and whose directory was then moved away. An empty directory is at its
/// path.
fn half_restored_and_moved_away() -> TestWorkspace {
    let probe = TestWorkspace::new();
    make_every_kind_of_change(&probe);
    let points = DRIVER.points(&probe.base(), "restore one");
    let number = points.iter().position(|point| point.contains("exchange")).unwrap() + 2;
    let ws = TestWorkspace::new();
    make_every_kind_of_change(&ws);
    assert_eq!(DRIVER.run(&ws.base(), "restore one", number, Fault::Kill), Ended::Killed);
    std::fs::rename(ws.root(), ws.outside().join("gone")).unwrap();
    ws.mkdir("");
    ws
}

/// The directory of the restore was moved, and its path now belongs to another project.
#[test]
fn an_interrupted_restore_is_neither_finished_nor_set_aside_in_another_directory() {
    let ws = half_restored_and_moved_away();
    ws.write("fresh", "another project\n");
    let before = ws.manifest();
    assert_eq!(ws.open().recover(Way::Forward, ws.now()).unwrap().outcome, Recovery::Nothing);
    ws.save();
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1, "the other project has its own history");
    before.assert_same(&ws.manifest(), "the other project, after the commands");
    std::fs::rename(ws.root(), ws.outside().join("fresh")).unwrap();
    std::fs::rename(ws.outside().join("gone"), ws.root()).unwrap();
    assert_eq!(ws.open().recover(Way::Forward, ws.now()).unwrap().outcome, Recovery::Finished);
    assert_no_leftovers(&ws, "a restore that was finished in its own directory");
    ws.assert_store_is_sound();
}

/// An empty directory continues the history, and so does a directory that adopts the store. The restore was of neither.
#[test]
fn an_interrupted_restore_is_set_aside_if_another_directory_continues_the_history() {
    for is_adopted in [false, true] {
        let ws = half_restored_and_moved_away();
        let store = ws.store();
        if is_adopted {
            ws.write("fresh", "another project\n");
        }
        let before = ws.manifest();
        if is_adopted {
            ws.open().adopt(&store, ws.now()).unwrap();
            assert!(!ws.open().has_interrupted_restore().unwrap());
        } else {
            assert_eq!(ws.open().recover(Way::Forward, ws.now()).unwrap().outcome, Recovery::SetAside);
        }
        before.assert_same(&ws.manifest(), "the other directory");
        assert_no_leftovers(&ws, "a restore that was set aside");
        assert_eq!(ws.open().recover(Way::Forward, ws.now()).unwrap().outcome, Recovery::Nothing);
        ws.save();
        assert!(ws.is_in_store(b"unsaved work\n"), "the safety checkpoint holds the unsaved work");
        ws.assert_store_is_sound();
    }
}

#[test]
fn save_survives_a_kill_at_every_point() {
    sweep("save", &TestWorkspace::new, &make_every_kind_of_change, "save");
}

#[test]
fn the_first_save_survives_a_kill_at_every_point() {
    let prepare = |ws: &TestWorkspace| {
        ws.write("a", "1\n");
        ws.write("nested/x", "2\n");
        ws.git_init();
        backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
    };
    sweep("first save", &TestWorkspace::new, &prepare, "save");
}

/// Enough data that one pack is sealed while the rest is still being written.
#[test]
fn a_large_first_save_survives_a_kill_at_every_point() {
    let noise = backtrail_testkit::Random::new(1).bytes(3 << 20);
    let prepare = |ws: &TestWorkspace| {
        ws.write("large", noise.as_slice());
        ws.write("as-large", noise.iter().rev().copied().collect::<Vec<u8>>());
        ws.write("nested/x", "2\n");
        ws.git_init();
        backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
    };
    let ws = TestWorkspace::new();
    prepare(&ws);
    ws.save();
    assert_eq!(ws.packs().len(), 2, "the save is not large enough for two packs");
    sweep("large first save", &TestWorkspace::new, &prepare, "save");
}

#[test]
fn a_step_survives_a_kill_at_every_point() {
    let prepare = |ws: &TestWorkspace| {
        ws.write("a", "1\n");
        ws.write("nested/x", "2\n");
        ws.git_init();
        backtrail_testkit::git(&ws.path("nested"), &["init", "-q"]);
        ws.save();
        ws.write("a", "2\n");
    };
    sweep("step", &TestWorkspace::new, &prepare, "step");
}

#[test]
fn the_first_thread_checkpoint_survives_a_kill_at_every_point() {
    let prepare = |ws: &TestWorkspace| {
        ws.write("a", "1\n");
        ws.git_init();
        ws.save();
        ws.write("a", "2\n");
    };
    sweep("thread", &TestWorkspace::new, &prepare, "thread");
}

#[test]
fn restore_is_old_or_new_after_a_kill_at_every_point() {
    sweep("restore", &TestWorkspace::new, &make_every_kind_of_change, "restore one");
}

#[test]
fn restore_of_paths_is_old_or_new_after_a_kill_at_every_point() {
    let operation = "restore one edited dir-to-file file-to-dir/inside nested deleted";
    sweep("restore of paths", &TestWorkspace::new, &make_every_kind_of_change, operation);
}

#[test]
fn undo_and_redo_are_old_or_new_after_a_kill_at_every_point() {
    let restored = |ws: &TestWorkspace| {
        make_every_kind_of_change(ws);
        let one = by_name(ws, "one");
        ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        ws.write("after the restore", "edit\n");
    };
    sweep("undo", &TestWorkspace::new, &restored, "undo");
    let undone = |ws: &TestWorkspace| {
        restored(ws);
        ws.open().undo(ws.now()).unwrap();
    };
    sweep("redo", &TestWorkspace::new, &undone, "redo");
}

#[test]
fn delete_and_prune_survive_a_kill_at_every_point() {
    sweep("delete", &TestWorkspace::new, &make_every_kind_of_change, "delete one");
    let pinned = |ws: &TestWorkspace| {
        make_every_kind_of_change(ws);
        ws.open().pin(&by_name(ws, "one").id, ws.now()).unwrap();
    };
    sweep("delete of a pinned checkpoint", &TestWorkspace::new, &pinned, "delete one");
    let deleted = |ws: &TestWorkspace| {
        make_every_kind_of_change(ws);
        ws.open().delete(&[by_name(ws, "one").id], false, ws.now()).unwrap();
    };
    sweep("prune", &TestWorkspace::new, &deleted, "prune");
}

/// A long log of operations is rewritten. The parents of deleted checkpoints and the restores that undo takes back must
/// be known at every point.
#[test]
fn shortening_the_log_survives_a_kill_at_every_point() {
    let restored = |ws: &TestWorkspace| {
        make_every_kind_of_change(ws);
        ws.open().restore(&RestoreRequest::whole(by_name(ws, "one").id), ws.now()).unwrap();
        ws.write("after the restore", "edit\n");
    };
    let with_a_long_log = |ws: &TestWorkspace| {
        restored(ws);
        let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
        let ids: Vec<_> = (0..120).map(|_| ws.save_with(&request).checkpoint.id).collect();
        ws.open().delete_for_good(&ids, false, ws.now()).unwrap();
        ws.write("after the deletion", "edit\n");
        assert!(count_operations(ws) > 120);
    };
    // This many saves are slow if each one waits for a disk.
    let memory = Path::new("/dev/shm");
    let make = || if memory.is_dir() { TestWorkspace::with_stores_below(memory) } else { TestWorkspace::new() };
    let ws = make();
    restored(&ws);
    let without = DRIVER.points(&ws.base(), "save").len();
    let ws = make();
    with_a_long_log(&ws);
    let points = DRIVER.points(&ws.base(), "save");
    assert!(points.len() > without && count_operations(&ws) < 10, "the log was not shortened: {points:?}");
    // Shortening comes last. Other tests sweep the points before it.
    let first = points.len() - (points.len() - without) - 2;
    sweep_from(first, "shortening the log", &make, &with_a_long_log, "save");
    let ws = make();
    with_a_long_log(&ws);
    let before = ws.manifest();
    DRIVER.run(&ws.base(), "save", points.len() - 1, Fault::Kill);
    ws.save_with(&SaveRequest { allow_empty: true, ..SaveRequest::default() });
    assert!(ws.open().undo(ws.now()).unwrap().is_some_and(|undone| !undone.changes.is_empty()));
    assert_eq!(std::fs::read(ws.path("edited")).unwrap(), b"unsaved work\n");
    ws.open().redo(ws.now()).unwrap();
    assert_eq!(before.differences(&ws.manifest()), Vec::<String>::new());
}

/// With many loose refs, a save packs them and writes the index of the timeline. A second time, an old index is there.
#[test]
fn packing_refs_survives_a_kill_at_every_point() {
    let memory = Path::new("/dev/shm");
    let make = || if memory.is_dir() { TestWorkspace::with_stores_below(memory) } else { TestWorkspace::new() };
    for (saves, faults) in [(101, &[Fault::Kill, Fault::Error(EIO)][..]), (202, &[Fault::Kill])] {
        let with_loose_refs = |ws: &TestWorkspace| {
            make_every_kind_of_change(ws);
            let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
            let present = ws.open().list(&ListFilter::default()).unwrap().len();
            (present..saves - 1).for_each(|_| drop(ws.save_with(&request)));
            ws.write("after that", "edit\n");
        };
        let ws = make();
        with_loose_refs(&ws);
        let points = DRIVER.points(&ws.base(), "save");
        let packing = points.iter().rposition(|name| name == "append to store file").unwrap();
        assert!(ws.store().join("backtrail/timeline-index").exists(), "{points:?}");
        // Packing comes last. Other tests sweep the points before it. Of the many refs that are removed, the first and
        // the last are tried.
        let is_edge =
            |point: &usize| points[point - 1] != points[point - 2] || points.get(*point) != points.get(point - 1);
        for point in (packing + 2..=points.len()).filter(is_edge) {
            for fault in faults.iter().copied() {
                let ws = make();
                with_loose_refs(&ws);
                let before = ws.open().list(&ListFilter::default()).unwrap();
                DRIVER.run(&ws.base(), "save", point, fault);
                let what = format!("{saves}, {fault:?} at point {point} ({})", points[point - 1]);
                let found = ws.open().list(&ListFilter::default()).unwrap();
                assert_eq!(found[found.len() - before.len()..], before, "{what}");
                ws.write("and later", "edit\n");
                ws.save();
                let found = ws.open().list(&ListFilter::default()).unwrap();
                assert_eq!(found[found.len() - before.len()..], before, "{what}, after a save");
                assert!(ws.open().verify().unwrap().damaged.is_empty(), "{what}");
            }
        }
    }
}

/// Returns the number of lines in the log of operations.
fn count_operations(ws: &TestWorkspace) -> usize {
    std::fs::read_to_string(ws.store().join("backtrail/ops")).unwrap().lines().count()
}

#[test]
fn recovery_survives_a_kill_at_every_point() {
    for (operation, fraction) in [("recover", 3), ("recover", 2), ("abort", 2)] {
        // Kills the restore in the middle. A run without a fault gives its points.
        let probe = TestWorkspace::new();
        make_every_kind_of_change(&probe);
        let points = DRIVER.points(&probe.base(), "restore one");
        let journal = points.iter().rposition(|name| name == "exchange").unwrap_or(points.len() - 1);
        let interrupted = |ws: &TestWorkspace| {
            make_every_kind_of_change(ws);
            let ended = DRIVER.run(&ws.base(), "restore one", journal - journal / (10 * fraction), Fault::Kill);
            assert_eq!(ended, Ended::Killed);
        };
        sweep_recovery(&format!("{operation} 1/{fraction}"), &interrupted, operation);
    }
}

/// Like [`sweep`], but the old tree is not the one on disk at the start.
fn sweep_recovery(name: &str, interrupted: &dyn Fn(&TestWorkspace), operation: &str) {
    let ws = TestWorkspace::new();
    make_every_kind_of_change(&ws);
    let old = ws.manifest();
    ws.open().restore(&RestoreRequest::whole(by_name(&ws, "one").id), ws.now()).unwrap();
    // An abort may be interrupted before it has begun. The next command then finishes the restore.
    let restored = ws.manifest();
    let ws = TestWorkspace::new();
    interrupted(&ws);
    let points = DRIVER.points(&ws.base(), operation);
    let new = ws.manifest();
    println!("{name}: {} points", points.len());
    let trees = [old, new, restored];
    for point in 1..=points.len() {
        for fault in [Fault::Kill, Fault::Error(EIO)] {
            let what = format!("{name}, {fault:?} at point {point} ({})", points[point - 1]);
            let ws = TestWorkspace::new();
            interrupted(&ws);
            let git_before = git_directories(&ws);
            DRIVER.run(&ws.base(), operation, point, fault);
            check_after_fault(&ws, &trees, &git_before, &what);
        }
    }
}

#[test]
fn restore_with_the_store_on_another_file_system_is_old_or_new() {
    let given = std::env::var_os("BACKTRAIL_TEST_ELSEWHERE").map(PathBuf::from);
    let elsewhere = given.clone().unwrap_or_else(|| "/dev/shm".into());
    let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
    if given.is_none() && (device(&elsewhere).is_none() || device(&elsewhere) == device(&std::env::temp_dir())) {
        println!("skipped: there is no second file system");
        return;
    }
    let make = || TestWorkspace::with_stores_below(&elsewhere);
    sweep("restore across file systems", &make, &make_every_kind_of_change, "restore one");
}

fn by_name(ws: &TestWorkspace, name: &str) -> Checkpoint {
    let all = ws.open().list(&ListFilter::default()).unwrap();
    all.into_iter().find(|found| found.name.as_deref() == Some(name)).unwrap()
}
