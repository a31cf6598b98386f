//! Somebody writes all the time: no byte is lost.

use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::RestoreRequest;
use backtrail_testkit::TestWorkspace;

use super::*;

/// Somebody writes a file over and over while it is restored to and fro: what was there last, and all that a restore
/// took away, is in the workspace or in the store.
fn written_all_the_time(keeps_all: bool, write: impl Fn(&TestWorkspace, usize, &[u8]) + Sync) {
    let ws = TestWorkspace::new();
    for number in 0..3 {
        ws.write(format!("busy{number}"), "one\n");
        ws.write(format!("d/quiet{number}"), "one\n");
    }
    let one = ws.save();
    for number in 0..3 {
        ws.write(format!("busy{number}"), "two\n");
        ws.write(format!("d/quiet{number}"), "two\n");
    }
    let two = ws.save();
    let is_done = AtomicBool::new(false);
    let base = ws.base();
    let rounds = 15;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let ws = TestWorkspace::attach(&base);
            let mut last = vec![b"two\n".to_vec(); 3];
            let mut taken = Vec::new();
            let mut version = 0_u64;
            while !is_done.load(Ordering::SeqCst) {
                let number = (version % 3) as usize;
                version += 1;
                let bytes = format!("version {version} of {number}\n").into_bytes();
                // Nobody else writes here: where it is gone, a restore took it.
                if ws.read(format!("busy{number}")).is_some_and(|found| found != last[number]) {
                    taken.push(last[number].clone());
                }
                write(&ws, number, &bytes);
                last[number] = bytes;
                if version.is_multiple_of(7) {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            (last, taken)
        });
        for _ in 0..rounds {
            for target in [&one, &two] {
                let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(target.id) };
                let outcome = ws.open().restore(&request, ws.now()).unwrap();
                let kept = ws.blobs_in_store();
                for conflict in outcome.conflicts.iter().filter_map(|conflict| conflict.kept) {
                    let bytes = ws.store_git(&["cat-file", "blob", &conflict.to_string()]);
                    assert!(kept.contains(&bytes), "a conflict names bytes that are kept");
                }
                let quiet = if target.id == one.id { b"one\n" } else { b"two\n" };
                (0..3).for_each(|number| assert_eq!(ws.read(format!("d/quiet{number}")).unwrap(), quiet));
            }
        }
        is_done.store(true, Ordering::SeqCst);
        let (last, taken) = writer.join().unwrap();
        let stored = ws.blobs_in_store();
        assert!(!taken.is_empty(), "no restore ever met the writer");
        for bytes in taken.iter().filter(|_| keeps_all) {
            assert!(stored.contains(bytes), "what a restore took is lost: {:?}", String::from_utf8_lossy(bytes));
        }
        for (number, bytes) in last.iter().enumerate() {
            let is_kept = ws.manifest().holds(bytes) || stored.contains(bytes);
            assert!(is_kept, "the last version of busy{number} is lost: {:?}", String::from_utf8_lossy(bytes));
        }
    });
    ws.assert_store_is_sound();
}

#[test]
fn a_file_that_is_written_in_place_all_the_time_is_not_lost() {
    // A write through an open handle may come after the last look at what was set aside: only the last one counts.
    written_all_the_time(false, |ws, number, bytes| {
        std::fs::write(ws.path(format!("busy{number}")), bytes).unwrap();
    });
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_not_lost() {
    written_all_the_time(true, |ws, number, bytes| {
        let draft = ws.outside().join(format!("draft{number}"));
        std::fs::write(&draft, bytes).unwrap();
        std::fs::rename(draft, ws.path(format!("busy{number}"))).unwrap();
    });
}

#[test]
fn bytes_that_an_open_file_got_after_it_was_replaced_are_kept() {
    use std::io::Write;
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let mut open = std::fs::File::options().append(true).open(ws.path("a")).unwrap();
    open.write_all(b"written before the restore\n").unwrap();
    restore(&ws, &one);
    assert!(ws.is_in_store(b"2\nwritten before the restore\n"));
}
