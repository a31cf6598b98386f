//! Directories one in the other, more of them than a path can name: what is too deep is left out, and left alone.

use std::{fs::File, io::Write, path::Path};

use backtrail::{Reason, RestoreRequest, SaveRequest, Scope};
use backtrail_testkit::TestWorkspace;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

/// More than fit on any stack, if each took a frame.
const LEVELS: usize = 20_000;

/// So many are captured.
const MOST: usize = 320;

/// A chain of directories `d`, removed again at the end: nothing that recurses could.
struct Chain<'w>(&'w TestWorkspace);

impl<'w> Chain<'w> {
    /// With a file at the bottom, and one in the first directory.
    fn of(ws: &'w TestWorkspace, levels: usize) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = openat(rustix::fs::CWD, ws.root(), flags, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&here, "d", Mode::from_raw_mode(0o755)).unwrap();
            here = openat(&here, "d", flags, Mode::empty()).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let file = openat(&here, "bottom", flags, Mode::from_raw_mode(0o644)).unwrap();
        File::from(file).write_all(b"1\n").unwrap();
        ws.write("d/top", "1\n");
        Self(ws)
    }

    /// How many there are.
    fn levels(&self) -> usize {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = openat(rustix::fs::CWD, self.0.root(), flags, Mode::empty()).unwrap();
        let mut count = 0;
        while let Ok(below) = openat(&here, "d", flags, Mode::empty()) {
            (here, count) = (below, count + 1);
        }
        count
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        let (top, below) = (self.0.path("d"), self.0.path("below"));
        while top.exists() {
            let has_more = std::fs::rename(top.join("d"), &below).is_ok();
            self.0.remove("d");
            if has_more {
                std::fs::rename(&below, &top).unwrap();
            }
        }
    }
}

#[test]
fn what_is_too_deep_is_left_out_and_left_alone() {
    let ws = TestWorkspace::new();
    ws.write("before", "1\n");
    let before = ws.save();
    let chain = Chain::of(&ws, LEVELS);
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(saved.skipped.len(), 1, "one directory stands for all below it");
    assert_eq!((saved.skipped[0].reason, saved.skipped[0].path.parts().count()), (Reason::Deep, MOST + 1));
    assert_eq!(ws.open().left_out().unwrap().len(), 1);
    assert!(!ws.save_with(&SaveRequest::default()).created, "it is as it was");

    ws.write("d/top", "2\n");
    ws.write("d/d/new", "1\n");
    assert_eq!(ws.open().status(None).unwrap().changes.len(), 2);
    let changed = ws.save();
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    assert_eq!(ws.read("d/top").unwrap(), b"1\n");
    assert!(!ws.exists("d/d/new"));
    assert_eq!(chain.levels(), LEVELS);
    ws.open().diff(Some(saved.checkpoint.id), Some(changed.id), &Scope::Whole).unwrap();

    // A checkpoint without any of it does not take it away either.
    let exact = RestoreRequest { exact: true, ..RestoreRequest::whole(before.id) };
    ws.open().restore(&exact, ws.now()).unwrap();
    assert!(!ws.exists("d/top"));
    assert_eq!(chain.levels(), LEVELS);
    ws.open().undo(ws.now()).unwrap();
    assert!(ws.exists("d/top"));
    ws.assert_store_is_sound();
}

#[test]
fn what_just_fits_is_captured_and_comes_back() {
    let ws = TestWorkspace::new();
    let chain = Chain::of(&ws, MOST);
    let saved = ws.save_with(&SaveRequest::default());
    assert!(saved.checkpoint.complete && saved.skipped.is_empty());
    drop(chain);
    assert!(!Path::exists(&ws.path("d")));
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    let chain = Chain(&ws);
    assert_eq!(chain.levels(), MOST);
    assert!(!ws.save_with(&SaveRequest::default()).created, "it is as it was");
}

/// The user's index may hold a path that no file could have.
#[test]
fn a_deep_path_in_the_index_is_no_harm() {
    let ws = TestWorkspace::new();
    ws.git_init();
    ws.write("file", "1\n");
    let blob = String::from_utf8(ws.git(&["hash-object", "-w", "file"])).unwrap();
    let entry = format!("100644 {}\t{}x\n", blob.trim(), "a/".repeat(60_000));
    let added = backtrail_testkit::git_output_with(&ws.root(), &["update-index", "--index-info"], entry.into_bytes());
    assert!(added.status.success());
    assert!(ws.save_with(&SaveRequest::default()).created);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
}
