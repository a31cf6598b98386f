//! A restore that was interrupted, and then the system refuses to change what it is about: it is finished or taken back all
//! the same, what could not be done is told, and no byte is lost. Mounting and giving away take privileges.

use std::{
    os::unix::fs::lchown,
    path::{Path, PathBuf},
    process::Command,
};

use backtrail::{ListFilter, Recovered, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::other_user::{self, NOBODY, is_root};

const DRIVER: Driver = Driver { child_test: "crash::child" };
const NAMES: [&str; 4] = ["d/1", "d/2", "d/3", "d/4"];

/// Does a program do this without complaint?
pub(crate) fn succeeds(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).output().is_ok_and(|output| output.status.success())
}

/// A file system in memory over a directory, until it is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// None where that is not permitted.
    pub(crate) fn over(path: PathBuf) -> Option<Self> {
        (is_root() && succeeds("mount", &["-t", "tmpfs", "none"], &path)).then_some(Self(path))
    }

    fn remount(&self, how: &str) -> bool {
        succeeds("mount", &["-o", &format!("remount,{how}")], &self.0)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        succeeds("umount", &["-l"], &self.0);
    }
}

/// An attribute of a file or directory, such as `+i`, until it is dropped.
pub(crate) struct Attribute(PathBuf, &'static str);

impl Attribute {
    /// None where that is not permitted, or the file system has none.
    pub(crate) fn set(path: PathBuf, letter: &'static str) -> Option<Self> {
        (is_root() && succeeds("chattr", &[&format!("+{letter}")], &path)).then_some(Self(path, letter))
    }
}

impl Drop for Attribute {
    fn drop(&mut self) {
        succeeds("chattr", &[&format!("-{}", self.1)], &self.0);
    }
}

/// What was saved, edited, and is half restored: the first two files are as they were saved.
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

fn told(recovered: &Recovered) -> Vec<String> {
    recovered.conflicts.iter().map(|one| one.path.to_text().into_owned()).collect()
}

fn has_journal(ws: &TestWorkspace) -> bool {
    ws.store().join("backtrail/journal").exists()
}

/// Every unsaved byte is in the workspace or in a checkpoint, and what comes next works.
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
fn a_mount_that_came_keeps_no_restore_from_its_end() {
    for (way, left) in [(Way::Forward, ["d/3", "d/4"]), (Way::Back, ["d/1", "d/2"])] {
        let (ws, _) = interrupted(|_| None);
        let Some(mounted) = Mounted::over(ws.path("d")) else { return };
        let recovered = ws.open().recover(way, ws.now()).unwrap();
        let told = told(&recovered);
        assert!(left.iter().all(|name| told.iter().any(|one| one == name)), "{way:?}: {told:?}");
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
fn a_mount_that_became_read_only_keeps_no_restore_from_its_end() {
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
        assert_eq!(told(&recovered), left, "{way:?}");
        assert_eq!(areas(&ws), 1, "{way:?}");
        ws.write("beside", "1\n");
        ws.save();
        assert!(mounted.remount("rw"));
        ws.write("beside", "2\n");
        ws.save();
        assert_eq!(areas(&ws), 0, "{way:?}: it is cleared as soon as that works");
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
fn a_directory_that_became_somebody_elses_keeps_no_restore_from_its_end() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    for operation in ["recover", "abort", "save"] {
        let (ws, _) = interrupted(|_| None);
        give_to(NOBODY, &ws.base());
        lchown(ws.path("d"), Some(0), Some(0)).unwrap();
        let mut command = Command::new(&program);
        command.args(["crash::child", "--exact", "--nocapture"]).current_dir("/");
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
        std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
        command.env("BACKTRAIL_CRASH_PLACE", ws.base()).env("BACKTRAIL_CRASH_OPERATION", operation);
        let output = command.env("BACKTRAIL_CRASH_POINT", "0").output().unwrap();
        assert!(output.status.success(), "{operation}: {}", String::from_utf8_lossy(&output.stderr));
        give_to(0, &ws.base());
        assert_nothing_is_lost(&ws, operation);
    }
}

/// Into a directory that only grows a file comes, and does not go again when something else is refused.
#[test]
fn a_restore_that_can_not_be_taken_back_whole_comes_to_its_end() {
    let ws = TestWorkspace::new();
    ws.write("alogs/gone", "1\n");
    ws.write("e/b", "1\n");
    let one = ws.save();
    ws.remove("alogs/gone");
    ws.write("e/b", "2\n");
    let (Some(_grows), Some(fixed)) = (Attribute::set(ws.path("alogs"), "a"), Attribute::set(ws.path("e/b"), "i"))
    else {
        return;
    };
    assert!(ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).is_err());
    assert!(!has_journal(&ws));
    ws.write("more", "1\n");
    ws.save();
    drop(fixed);
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    assert_eq!(ws.read("e/b").unwrap(), b"1\n");
    assert_eq!(ws.read("alogs/gone").unwrap(), b"1\n");
    ws.assert_store_is_sound();
}

#[test]
fn a_repository_that_takes_no_change_keeps_no_restore_from_its_end() {
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
