//! Large files are processed in pieces. Files over the limit are skipped and reported.

use std::fs::File;

use backtrail::{Reason, SaveRequest};
use backtrail_testkit::{Random, TestWorkspace, blob_id};

fn cat(ws: &TestWorkspace, id: &backtrail::CheckpointId, name: &str) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut pieces = 0;
    let take = &mut |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        pieces += 1;
        Ok(())
    };
    ws.open().cat(id, &ws.workspace_path(name), take).unwrap().unwrap();
    (bytes, pieces)
}

#[test]
fn files_around_the_size_that_is_read_in_one_piece_are_captured_exactly() {
    let ws = TestWorkspace::new();
    let limit = 4 << 20;
    let mut random = Random::new(3);
    let noise = random.bytes(limit + 70_000);
    let sizes = [limit - 1, limit, limit + 1, limit + 65_536];
    for size in sizes {
        ws.write(format!("noise-{size}"), &noise[..size]);
        ws.write(format!("zeros-{size}"), vec![0; size]);
    }
    let saved = ws.save();
    let held = ws.tree_in_store(&saved.id);
    for size in sizes {
        for (sort, bytes) in [("noise", noise[..size].to_vec()), ("zeros", vec![0; size])] {
            let name = format!("{sort}-{size}");
            let found = held.iter().find(|(path, _, _)| *path == name.as_bytes()).unwrap();
            assert_eq!(found.2, blob_id(&bytes), "{name}");
            let (back, _) = cat(&ws, &saved.id, &name);
            assert!(back == bytes, "{name} is not read back unchanged");
        }
    }
    ws.assert_store_is_sound();
}

#[test]
fn a_large_file_is_read_back_in_pieces() {
    let ws = TestWorkspace::new();
    let bytes: Vec<u8> = (0..17_u32 << 18).flat_map(u32::to_le_bytes).collect();
    ws.write("a", &bytes);
    let saved = ws.save();
    let (back, pieces) = cat(&ws, &saved.id, "a");
    assert!(back == bytes, "the file is not read back unchanged");
    assert!(pieces > 1, "the file was read in one piece");
}

#[test]
fn a_large_file_that_is_stored_already_is_not_stored_again() {
    let ws = TestWorkspace::new();
    let noise = Random::new(4).bytes(5 << 20);
    ws.write("a", &noise);
    ws.save();
    let packs = |ws: &TestWorkspace| -> u64 {
        let entries = std::fs::read_dir(ws.store().join("objects/pack")).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    };
    let before = packs(&ws);
    ws.write("copy", &noise);
    ws.rename("a", "moved/a");
    ws.save();
    assert!(packs(&ws) < before + 100_000, "{} bytes became {}", before, packs(&ws));
    ws.write("moved/a", &noise);
    assert!(!ws.save_with(&SaveRequest::default()).created);
    ws.assert_store_is_sound();
}

#[test]
fn a_change_of_the_last_byte_of_a_large_file_is_captured() {
    let ws = TestWorkspace::new();
    let mut bytes = vec![b'x'; 5 << 20];
    ws.write("a", &bytes);
    ws.save();
    *bytes.last_mut().unwrap() = b'y';
    ws.write("a", &bytes);
    let saved = ws.save();
    assert_eq!(ws.tree_in_store(&saved.id)[0].2, blob_id(&bytes));
}

#[test]
fn a_file_at_the_limit_is_captured_and_a_larger_one_is_skipped() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 1000\n");
    ws.write("at", vec![b'a'; 1000]);
    ws.write("over", vec![b'a'; 1001]);
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["at", "backtrail.toml"]);
    assert_eq!(saved.skipped.len(), 1);
    assert_eq!((saved.skipped[0].path.as_bytes(), saved.skipped[0].reason), (&b"over"[..], Reason::TooLarge));
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created);
    assert_eq!(again.skipped, saved.skipped);
}

#[test]
fn a_file_that_grows_beyond_the_limit_is_not_reported_as_deleted() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = \"1KiB\"\n");
    ws.write("a", "small");
    ws.write("b", "1");
    ws.save();
    ws.write("a", vec![b'a'; 2000]);
    ws.write("b", "2");
    let paths: Vec<_> = ws.open().status(None).unwrap().changes.into_iter().map(|change| change.path).collect();
    assert_eq!(paths, [ws.workspace_path("b")]);
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("b")]);
    let shown = ws.open().show(&saved.id).unwrap();
    assert_eq!(shown.changes.len(), 1, "{:?}", shown.changes);
    ws.write("a", "small again");
    let back = ws.save();
    assert_eq!(ws.paths_in_store(&back.id), ["a", "b", "backtrail.toml"]);
}

#[test]
fn a_huge_sparse_file_is_skipped_without_being_read() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("disk.img", "");
    File::options().write(true).open(ws.path("disk.img")).unwrap().set_len(1 << 40).unwrap();
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a"]);
    assert_eq!(saved.skipped[0].reason, Reason::TooLarge);
    assert_eq!(saved.bytes, 1, "skipped files are not counted");
}

#[test]
fn the_first_save_reports_the_largest_directories() {
    let ws = TestWorkspace::new();
    for (name, size) in [("a", 10), ("b/x", 300), ("c/y/z", 200), ("d/x", 100), ("e/x", 5)] {
        ws.write(name, vec![b'a'; size]);
    }
    let saved = ws.save_with(&SaveRequest::default());
    assert!(saved.is_first);
    assert_eq!(saved.bytes, 615);
    let largest: Vec<_> = saved.largest.iter().map(|(path, bytes)| (path.to_text().into_owned(), *bytes)).collect();
    assert_eq!(largest, [("b".to_owned(), 300), ("c".to_owned(), 200), ("d".to_owned(), 100)]);
    ws.write("a", "2");
    let second = ws.save_with(&SaveRequest::default());
    assert!(!second.is_first && second.largest.is_empty());
}
