//! Restores while another thread keeps writing: no byte is lost.

use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::RestoreRequest;
use backtrail_testkit::TestWorkspace;

use super::*;

/// Restores files back and forth while another thread keeps writing them. Checks that the last version of each file is
/// in the workspace or in the store. With `keeps_all`, checks that every version that a restore replaced is in the
/// store.
fn restore_while_writing(keeps_all: bool, write: impl Fn(&TestWorkspace, usize, &[u8]) + Sync) {
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
            let mut replaced = Vec::new();
            let mut version = 0_u64;
            while !is_done.load(Ordering::SeqCst) {
                let number = (version % 3) as usize;
                version += 1;
                let bytes = format!("version {version} of {number}\n").into_bytes();
                // Only this thread and the restores write here: if the last version is gone, a restore replaced it.
                if ws.read(format!("busy{number}")).is_some_and(|found| found != last[number]) {
                    replaced.push(last[number].clone());
                }
                write(&ws, number, &bytes);
                last[number] = bytes;
                if version.is_multiple_of(7) {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            (last, replaced)
        });
        for _ in 0..rounds {
            for target in [&one, &two] {
                let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(target.id) };
                let outcome = ws.open().restore(&request, ws.now()).unwrap();
                let kept = ws.blobs_in_store();
                for conflict in outcome.conflicts.iter().filter_map(|conflict| conflict.kept) {
                    let bytes = ws.store_git(&["cat-file", "blob", &conflict.to_string()]);
                    assert!(kept.contains(&bytes), "a conflict names bytes that are not in the store");
                }
                let quiet = if target.id == one.id { b"one\n" } else { b"two\n" };
                (0..3).for_each(|number| assert_eq!(ws.read(format!("d/quiet{number}")).unwrap(), quiet));
            }
        }
        is_done.store(true, Ordering::SeqCst);
        let (last, replaced) = writer.join().unwrap();
        let stored = ws.blobs_in_store();
        assert!(!replaced.is_empty(), "no restore ever replaced a version of the writer");
        for bytes in replaced.iter().filter(|_| keeps_all) {
            assert!(
                stored.contains(bytes),
                "a version that a restore replaced is lost: {:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        for (number, bytes) in last.iter().enumerate() {
            let is_kept = ws.manifest().holds(bytes) || stored.contains(bytes);
            assert!(is_kept, "the last version of busy{number} is lost: {:?}", String::from_utf8_lossy(bytes));
        }
    });
    ws.assert_store_is_sound();
}

#[test]
fn a_file_that_is_constantly_written_in_place_is_not_lost() {
    // A write through an open handle may happen after the final check of the files that were set aside, so only the
    // last version is sure to be kept.
    restore_while_writing(false, |ws, number, bytes| {
        std::fs::write(ws.path(format!("busy{number}")), bytes).unwrap();
    });
}

#[test]
fn a_file_that_is_constantly_replaced_is_not_lost() {
    restore_while_writing(true, |ws, number, bytes| {
        let draft = ws.outside().join(format!("draft{number}"));
        std::fs::write(&draft, bytes).unwrap();
        std::fs::rename(draft, ws.path(format!("busy{number}"))).unwrap();
    });
}

#[test]
fn bytes_written_through_an_open_handle_before_a_restore_are_kept() {
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
