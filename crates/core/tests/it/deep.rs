//! Nested directories, deeper than a path can name: a directory that is too deep is skipped and left untouched.

use std::{fs::File, io::Write, path::Path};

use backtrail::{Reason, RestoreRequest, SaveRequest, Scope};
use backtrail_testkit::TestWorkspace;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

/// More levels than fit on a stack if each one takes a frame.
const LEVELS: usize = 20_000;

/// The number of levels that a save captures.
const MAX_LEVELS: usize = 320;

/// A chain of nested directories `d`. The drop removes it level by level, because recursion would overflow the stack.
struct Chain<'w>(&'w TestWorkspace);

impl<'w> Chain<'w> {
    /// Creates a chain with a file at the bottom and one in the first directory.
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

    /// Returns the number of directories.
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
fn a_directory_that_is_too_deep_is_skipped_and_left_untouched() {
    let ws = TestWorkspace::new();
    ws.write("before", "1\n");
    let before = ws.save();
    let chain = Chain::of(&ws, LEVELS);
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(saved.skipped.len(), 1, "only the topmost skipped directory is reported");
    assert_eq!((saved.skipped[0].reason, saved.skipped[0].path.parts().count()), (Reason::Deep, MAX_LEVELS + 1));
    assert_eq!(ws.open().left_out().unwrap().len(), 1);
    assert!(!ws.save_with(&SaveRequest::default()).created, "nothing changed");

    ws.write("d/top", "2\n");
    ws.write("d/d/new", "1\n");
    assert_eq!(ws.open().status(None).unwrap().changes.len(), 2);
    let changed = ws.save();
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    assert_eq!(ws.read("d/top").unwrap(), b"1\n");
    assert!(!ws.exists("d/d/new"));
    assert_eq!(chain.levels(), LEVELS);
    ws.open().diff(Some(saved.checkpoint.id), Some(changed.id), &Scope::Whole).unwrap();

    // A restore to a checkpoint without the chain does not remove the skipped part either.
    let exact = RestoreRequest { exact: true, ..RestoreRequest::whole(before.id) };
    ws.open().restore(&exact, ws.now()).unwrap();
    assert!(!ws.exists("d/top"));
    assert_eq!(chain.levels(), LEVELS);
    ws.open().undo(ws.now()).unwrap();
    assert!(ws.exists("d/top"));
    ws.assert_store_is_sound();
}

#[test]
fn the_deepest_allowed_directory_is_captured_and_restored() {
    let ws = TestWorkspace::new();
    let chain = Chain::of(&ws, MAX_LEVELS);
    let saved = ws.save_with(&SaveRequest::default());
    assert!(saved.checkpoint.complete && saved.skipped.is_empty());
    drop(chain);
    assert!(!Path::exists(&ws.path("d")));
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    let chain = Chain(&ws);
    assert_eq!(chain.levels(), MAX_LEVELS);
    assert!(!ws.save_with(&SaveRequest::default()).created, "nothing changed");
}

/// The user's index may hold a path that no file could have.
#[test]
fn a_deep_path_in_the_user_index_does_no_harm() {
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
