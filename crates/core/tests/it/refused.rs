//! Paths that the system refuses to change. An interrupted restore that meets one is still finished or taken back, the
//! path is reported, and no byte is lost. A restore that meets one in its plan reports a conflict.
//!
//! The tests need privileges to mount file systems and to change owners and attributes.

use std::{
    os::unix::fs::lchown,
    path::{Path, PathBuf},
    process::Command,
};

use backtrail::{Checkpoint, Conflict, ErrorCode, ListFilter, Recovered, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::other_user::{self, OTHER_USER, is_root};

const DRIVER: Driver = Driver { child_test: "crash::child" };
const NAMES: [&str; 4] = ["d/1", "d/2", "d/3", "d/4"];

/// Returns whether a program with these arguments succeeds.
pub(crate) fn succeeds(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).output().is_ok_and(|output| output.status.success())
}

/// A memory file system that is mounted over a directory, and unmounted when it is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it. Returns `None` if that is not permitted.
    pub(crate) fn over(path: PathBuf) -> Option<Self> {
        (is_root() && succeeds("mount", &["-t", "tmpfs", "none"], &path)).then_some(Self(path))
    }

    pub(crate) fn remount(&self, options: &str) -> bool {
        succeeds("mount", &["-o", &format!("remount,{options}")], &self.0)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        succeeds("umount", &["-l"], &self.0);
    }
}

/// An attribute of a file or directory, such as `+i`. It is removed when this is dropped.
pub(crate) struct Attribute(PathBuf, &'static str);

impl Attribute {
    /// Sets it. Returns `None` if that is not permitted or the file system has no attributes.
    pub(crate) fn set(path: PathBuf, letter: &'static str) -> Option<Self> {
        (is_root() && succeeds("chattr", &[&format!("+{letter}")], &path)).then_some(Self(path, letter))
    }
}

impl Drop for Attribute {
    fn drop(&mut self) {
        succeeds("chattr", &[&format!("-{}", self.1)], &self.0);
    }
}

/// Makes a workspace whose restore was killed half-way: the first two files are restored, the others have unsaved
/// edits. `before` runs before the files are written.
fn interrupted(before: impl Fn(&TestWorkspace) -> Option<Mounted>) -> (TestWorkspace, Option<Mounted>) {
    let make = || {
        let ws = TestWorkspace::new();
        ws.mkdir("d");
        let mounted = before(&ws);
        NAMES.iter().for_each(|name| ws.write(name, format!("saved {name}\n")));
        ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        NAMES.iter().for_each(|name| ws.write(name, format!("unsaved {name}\n")));
        (ws, mounted)
    };
    let (probe, mounted) = make();
    let points = DRIVER.points(&probe.base(), "restore one");
    drop(mounted);
    let exchanges = points.iter().enumerate().filter(|(_, name)| *name == "exchange");
    let point = exchanges.map(|(number, _)| number + 1).nth(2).unwrap();
    let (ws, mounted) = make();
    assert_eq!(DRIVER.run(&ws.base(), "restore one", point, Fault::Kill), Ended::Killed);
    assert_eq!(NAMES.map(|name| ws.read(name).unwrap().starts_with(b"saved")), [true, true, false, false]);
    (ws, mounted)
}

fn conflict_paths(recovered: &Recovered) -> Vec<String> {
    recovered.conflicts.iter().map(|one| one.path.to_text().into_owned()).collect()
}

fn has_journal(ws: &TestWorkspace) -> bool {
    ws.store().join("backtrail/journal").exists()
}

/// Checks that every unsaved byte is in the workspace or in a checkpoint, and that the next save and restore work.
fn assert_nothing_is_lost(ws: &TestWorkspace, what: &str) {
    assert!(!has_journal(ws), "{what}");
    let held = String::from_utf8(ws.store_git(&["rev-list", "--objects", "--all"])).unwrap();
    for name in NAMES {
        let bytes = format!("unsaved {name}\n");
        let is_kept = ws.read(name).is_some_and(|found| found == bytes.as_bytes())
            || held.contains(&backtrail_testkit::blob_id(bytes.as_bytes()));
        assert!(is_kept, "{what}: {name}");
    }
    ws.write("more", "1\n");
    ws.save();
    let all = ws.open().list(&ListFilter::default()).unwrap();
    let one = all.iter().find(|found| found.name.as_deref() == Some("one")).unwrap();
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    NAMES.iter().for_each(|name| assert_eq!(ws.read(name).unwrap(), format!("saved {name}\n").as_bytes(), "{what}"));
    ws.assert_store_is_sound();
}

#[test]
fn a_new_mount_does_not_block_recovery() {
    for (way, left) in [(Way::Forward, ["d/3", "d/4"]), (Way::Back, ["d/1", "d/2"])] {
        let (ws, _) = interrupted(|_| None);
        let Some(mounted) = Mounted::over(ws.path("d")) else { return };
        let recovered = ws.open().recover(way, ws.now()).unwrap();
        let paths = conflict_paths(&recovered);
        assert!(left.iter().all(|name| paths.iter().any(|path| path == name)), "{way:?}: {paths:?}");
        assert!(recovered.conflicts.iter().all(|one| one.kept.is_some()), "{:?}", recovered.conflicts);
        assert!(!has_journal(&ws), "{way:?}");
        ws.write("beside", "1\n");
        ws.save();
        drop(mounted);
        assert_nothing_is_lost(&ws, &format!("{way:?}"));
    }
}

/// A mount has a staging area of its own, which can't be cleared while it is read-only.
#[test]
fn a_mount_that_became_read_only_does_not_block_recovery() {
    let areas = |ws: &TestWorkspace| {
        let names = std::fs::read_dir(ws.path("d")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".backtrail-")).count()
    };
    for (way, left) in [(Way::Forward, ["d/3", "d/4"]), (Way::Back, ["d/1", "d/2"])] {
        if !is_root() {
            return;
        }
        let (ws, mounted) = interrupted(|ws| Mounted::over(ws.path("d")));
        let Some(mounted) = mounted.filter(|mounted| mounted.remount("ro")) else { return };
        let recovered = ws.open().recover(way, ws.now()).unwrap();
        assert_eq!(conflict_paths(&recovered), left, "{way:?}");
        assert_eq!(areas(&ws), 1, "{way:?}");
        ws.write("beside", "1\n");
        ws.save();
        assert!(mounted.remount("rw"));
        ws.write("beside", "2\n");
        ws.save();
        assert_eq!(areas(&ws), 0, "{way:?}: it is cleared as soon as the mount is writable");
        assert_nothing_is_lost(&ws, &format!("{way:?}"));
    }
}

fn give_to(owner: u32, place: &Path) {
    lchown(place, Some(owner), Some(owner)).unwrap();
    if place.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| give_to(owner, &entry.unwrap().path()));
    }
}

#[test]
fn a_directory_with_a_new_owner_does_not_block_recovery() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    for operation in ["recover", "abort", "save"] {
        let (ws, _) = interrupted(|_| None);
        give_to(OTHER_USER, &ws.base());
        lchown(ws.path("d"), Some(0), Some(0)).unwrap();
        let mut command = Command::new(&program);
        command.args(["crash::child", "--exact", "--nocapture"]).current_dir("/");
        std::os::unix::process::CommandExt::uid(&mut command, OTHER_USER);
        std::os::unix::process::CommandExt::gid(&mut command, OTHER_USER);
        command.env("BACKTRAIL_CRASH_PLACE", ws.base()).env("BACKTRAIL_CRASH_OPERATION", operation);
        let output = command.env("BACKTRAIL_CRASH_POINT", "0").output().unwrap();
        assert!(output.status.success(), "{operation}: {}", String::from_utf8_lossy(&output.stderr));
        give_to(0, &ws.base());
        assert_nothing_is_lost(&ws, operation);
    }
}

/// A file can be created in an append-only directory, but not removed from it when a later step of the restore is
/// refused.
#[test]
fn a_failed_restore_ends_even_if_it_cannot_be_taken_back_completely() {
    let ws = TestWorkspace::new();
    ws.write("alogs/gone", "1\n");
    ws.write("e/b", "1\n");
    ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
    ws.remove("alogs/gone");
    ws.write("e/b", "2\n");
    if Attribute::set(ws.path("alogs"), "a").is_none() {
        return;
    }
    let (grows, fixed) = (Attribute(ws.path("alogs"), "a"), Attribute(ws.path("e/b"), "i"));
    assert_eq!(DRIVER.run(&ws.base(), "fixed alogs e/b one", 0, Fault::Kill), Ended::Failed);
    assert!(!has_journal(&ws));
    assert_eq!(ws.read("alogs/gone").unwrap(), b"1\n", "it could not be taken back");
    assert_eq!(ws.read("e/b").unwrap(), b"2\n");
    ws.write("more", "1\n");
    ws.save();
    drop((grows, fixed));
    let one = ws.open().list(&ListFilter::default()).unwrap().pop().unwrap();
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    assert_eq!(ws.read("e/b").unwrap(), b"1\n");
    ws.assert_store_is_sound();
}

#[test]
fn an_immutable_repository_does_not_block_recovery() {
    for (way, file) in [(Way::Forward, "edited, not committed\n"), (Way::Back, "unsaved\n")] {
        let ws = crate::wedges::interrupted_with_git();
        let Some(fixed) = Attribute::set(ws.path(".git"), "i") else { return };
        let recovered = ws.open().recover(way, ws.now()).unwrap();
        assert!(way == Way::Back || !recovered.conflicts.is_empty());
        assert!(!has_journal(&ws));
        assert_eq!(ws.read("file").unwrap(), file.as_bytes());
        ws.write("more", "1\n");
        ws.save();
        drop(fixed);
        ws.assert_store_is_sound();
    }
}

/// Checks that these paths, which the system refuses to change, are conflicts: the plan names them, and a restore
/// changes nothing. With `skip_conflicts`, the other paths are restored, and undo reverts them.
fn assert_conflicts(ws: &TestWorkspace, one: &Checkpoint, paths: &[&str]) {
    let request = RestoreRequest::whole(one.id);
    let named = |found: &[Conflict]| found.iter().map(|one| one.path.to_text().into_owned()).collect::<Vec<_>>();
    assert_eq!(named(&ws.open().plan_restore(&request).unwrap().conflicts), paths);
    let before = ws.manifest();
    let error = ws.open().restore(&request, ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict, "{error}");
    before.assert_same(&ws.manifest(), "a refused restore");
    let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
    assert_eq!(named(&outcome.conflicts), paths);
    assert_eq!(ws.read("beside").unwrap(), b"1\n");
    let after = ws.manifest();
    for path in paths {
        assert_eq!(before.0.get(path.as_bytes()), after.0.get(path.as_bytes()), "{path}");
    }
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "undone");
}

#[test]
fn a_mount_point_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("beside", "1\n");
    ws.write("file", "1\n");
    ws.write("kept/in", "1\n");
    let one = ws.save();
    ws.mkdir("new/mount");
    ws.write("new/beside", "2\n");
    ws.write("beside", "2\n");
    let Some(_mounted) = Mounted::over(ws.path("new/mount")) else { return };
    ws.write("new/mount/in", "2\n");
    std::fs::write(ws.outside().join("elsewhere"), "2\n").unwrap();
    let elsewhere = ws.outside().join("elsewhere");
    if !succeeds("mount", &["--bind", elsewhere.to_str().unwrap()], &ws.path("file")) {
        return;
    }
    let _file = Mounted(ws.path("file"));
    let _kept = Mounted::over(ws.path("kept"));
    assert_conflicts(&ws, &one, &["file", "new/mount"]);
    assert_eq!(ws.read("new/mount/in").unwrap(), b"2\n");
}

#[test]
fn paths_that_attributes_protect_are_conflicts() {
    let ws = TestWorkspace::new();
    for name in ["beside", "fixed/file", "fixed/dir/file", "grows/gone", "log", "mode"] {
        ws.write(name, "1\n");
    }
    let one = ws.save();
    for name in ["beside", "fixed/file", "fixed/dir/file", "fixed/new", "log"] {
        ws.write(name, "2\n");
    }
    ws.chmod("mode", 0o600);
    ws.remove("grows/gone");
    let fixed = [("fixed/file", "i"), ("fixed/dir", "i"), ("log", "a"), ("grows", "a"), ("mode", "i")];
    let fixed: Vec<_> = fixed.into_iter().map(|(name, letter)| Attribute::set(ws.path(name), letter)).collect();
    if fixed.iter().any(Option::is_none) {
        return;
    }
    assert_conflicts(&ws, &one, &["fixed/dir/file", "fixed/file", "grows/gone", "log", "mode"]);
}

const PLACE: &str = "BACKTRAIL_REFUSED_PLACE";

#[test]
fn paths_of_another_user_are_conflicts() {
    if let Some(base) = std::env::var_os(PLACE) {
        let ws = TestWorkspace::attach(Path::new(&base));
        let one = ws.open().list(&ListFilter::default()).unwrap().pop().unwrap();
        return assert_conflicts(&ws, &one, &["held", "out/gen/o", "public/theirs"]);
    }
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("beside", "1\n");
    ws.write("held", "1\n");
    ws.mkdir("public");
    ws.chmod("public", 0o1777);
    ws.save();
    ws.write("beside", "2\n");
    ws.write("out/gen/o", "2\n");
    ws.write("out/mine", "2\n");
    ws.write("public/theirs", "2\n");
    give_to(OTHER_USER, &ws.base());
    for name in ["held", "out/gen", "out/gen/o", "public", "public/theirs"] {
        lchown(ws.path(name), Some(0), Some(0)).unwrap();
    }
    ws.chmod("held", 0o666);
    let (_directory, program) = other_user::program();
    let test = "refused::paths_of_another_user_are_conflicts";
    other_user::run_alone(&program, test, (PLACE, &ws.base())).unwrap();
}
