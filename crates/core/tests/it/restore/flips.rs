//! Restores while another thread keeps exchanging a directory with a link to the outside.

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use backtrail::{RestoreRequest, Way};
use backtrail_testkit::{Manifest, Random, TestWorkspace};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const FILES: usize = 12;

/// Returns everything below a directory, with the change times.
fn state(directory: &Path) -> (Manifest, Vec<(Vec<u8>, i64, i64)>) {
    let manifest = Manifest::of(directory);
    let mut times = Vec::new();
    for name in std::iter::once(&Vec::new()).chain(manifest.0.keys()) {
        let path = directory.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        let found = std::fs::symlink_metadata(path).unwrap();
        times.push((name.clone(), found.ctime(), found.ctime_nsec()));
    }
    (manifest, times)
}

/// Creates the tree that a restore is going to change, and a link beside it that leads outside.
fn set_up(ws: &TestWorkspace, round: usize) {
    for name in ["d", "link"] {
        ws.exists(name).then(|| ws.remove(name));
    }
    for number in 0..FILES {
        ws.write(format!("d/{number}"), format!("new {number}\n"));
        ws.write(format!("d/e/{number}"), format!("new below {number}\n"));
    }
    ws.write("d/e/unsaved", format!("unsaved {round} below\n"));
    ws.write("top", format!("unsaved {round}\n"));
    ws.symlink(ws.outside().to_str().unwrap(), "link");
}

/// Stops the other thread when it is dropped, also if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits without releasing the processor, because a sleep takes longer than a restore.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn a_restore_never_writes_through_a_link_that_keeps_replacing_a_directory() {
    let wanted = if backtrail_testkit::is_long() { 100_000 } else { 3_000 };
    let ws = TestWorkspace::in_memory();
    for number in 0..FILES {
        ws.write(format!("d/{number}"), format!("old {number}\n"));
        ws.write(format!("d/e/gone-{number}/x"), format!("old below {number}\n"));
        std::fs::write(ws.outside().join(number.to_string()), "outside\n").unwrap();
    }
    std::fs::create_dir(ws.outside().join("e")).unwrap();
    std::fs::write(ws.outside().join("e/1"), "outside, below\n").unwrap();
    let one = ws.save();
    let outside = state(&ws.outside());

    let (flips, is_restoring, is_over) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let turn = Mutex::new(());
    let (directory, link) = (ws.path("d"), ws.path("link"));
    let flip = || renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).is_ok();
    let (mut rounds, mut restored) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(11);
            while !is_over.load(Ordering::SeqCst) {
                if !is_restoring.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                    continue;
                }
                let _turn = turn.lock().unwrap();
                for _ in 0..2 {
                    if is_restoring.load(Ordering::SeqCst) && flip() {
                        flips.fetch_add(1, Ordering::SeqCst);
                    }
                    spin(Duration::from_micros(random.below(60) as u64));
                }
            }
        });
        let _stop = StopOnDrop(&is_over);
        while flips.load(Ordering::SeqCst) < wanted {
            rounds += 1;
            {
                let _turn = turn.lock().unwrap();
                set_up(&ws, rounds);
            }
            is_restoring.store(true, Ordering::SeqCst);
            // Any result is allowed, as long as nothing outside is touched and nothing is lost.
            let done = ws.open().restore(&RestoreRequest::whole(one.id), ws.now());
            is_restoring.store(false, Ordering::SeqCst);
            restored += usize::from(done.is_ok());
            let _turn = turn.lock().unwrap();
            let (manifest, times) = state(&ws.outside());
            outside.0.assert_same(&manifest, &format!("round {rounds}: the outside"));
            assert_eq!(outside.1, times, "round {rounds}: something outside was touched");
            ws.open().recover(Way::Forward, ws.now()).unwrap();
            assert_kept(&ws, rounds);
            if rounds % 20 == 0 {
                ws.open().prune(ws.now()).unwrap();
            }
        }
    });
    ws.assert_store_is_sound();
    println!("{} flips in {rounds} restores, {restored} of them succeeded", flips.load(Ordering::SeqCst));
    assert!(restored > 0, "no restore succeeded");
}

/// Checks that the bytes that were in no checkpoint before the restore are in the workspace or in the store.
fn assert_kept(ws: &TestWorkspace, round: usize) {
    let disk = ws.manifest();
    let unsaved = [format!("unsaved {round}\n"), format!("unsaved {round} below\n")];
    let moved: Vec<_> = unsaved.iter().filter(|text| !disk.holds(text.as_bytes())).collect();
    if !moved.is_empty() {
        let stored = ws.blobs_in_store();
        let lost: Vec<_> = moved.into_iter().filter(|text| !stored.contains(text.as_bytes())).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }
}
