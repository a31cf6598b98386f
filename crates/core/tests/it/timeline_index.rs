//! The index of the timeline: a command reads only the checkpoints that it needs, and the index is never the reason for
//! a wrong answer.

use std::path::PathBuf;

use backtrail::{CheckpointId, ListFilter, SaveRequest, disk::read_counts};
use backtrail_testkit::TestWorkspace;

/// Enough checkpoints for an index with several chunks and some checkpoints that are not in it.
const MANY: usize = 230;
/// The refs are packed each time that this many are loose.
const PACKED_AT: usize = 101;

fn with_many_checkpoints() -> TestWorkspace {
    let ws = TestWorkspace::new();
    for number in 0..MANY {
        ws.write("a", format!("{number}"));
        let name = (number % 50 == 7).then(|| format!("n{number}"));
        ws.save_with(&SaveRequest { name, ..SaveRequest::default() });
    }
    assert!(index(&ws).exists());
    ws
}

fn index(ws: &TestWorkspace) -> PathBuf {
    ws.store().join("backtrail/timeline-index")
}

fn ids(ws: &TestWorkspace) -> Vec<CheckpointId> {
    ws.open().list(&ListFilter::default()).unwrap().into_iter().map(|checkpoint| checkpoint.id).collect()
}

/// The answers of commands that look for one checkpoint or a few.
fn answers(ws: &TestWorkspace, all: &[CheckpointId]) -> String {
    let workspace = ws.open();
    let now = ws.now().to_zoned(jiff::tz::TimeZone::UTC);
    let sample = all.iter().step_by(29);
    let got: Vec<String> = sample.clone().map(|id| workspace.get(id).unwrap().message).collect();
    let found: Vec<_> = sample.map(|id| workspace.resolve(&id.to_string()[..10], &now).unwrap()).collect();
    let back = workspace.resolve("@~200", &now).unwrap();
    format!("{:?} {got:?} {found:?} {back:?}", workspace.current().unwrap())
}

/// Returns the bytes that commands read from the files with the checkpoints.
fn bytes_read(ws: &TestWorkspace) -> Vec<(&'static str, u64)> {
    let store = ws.store();
    let files = [store.join("packed-refs"), store.join("backtrail/timeline"), index(ws)];
    let now = ws.now().to_zoned(jiff::tz::TimeZone::UTC);
    let old = ids(ws)[150];
    let read = |act: &dyn Fn()| {
        files.iter().for_each(|file| read_counts::forget(file));
        act();
        assert_eq!(read_counts::bytes_read(&files[0]), 0, "all refs were read");
        files.iter().map(|file| read_counts::bytes_read(file)).sum::<u64>()
    };
    let filter = ListFilter { limit: Some(20), ..ListFilter::default() };
    let save = || {
        ws.write("a", format!("{old} again"));
        ws.save();
    };
    vec![
        ("current", read(&|| assert!(ws.open().current().unwrap().is_some()))),
        ("get", read(&|| drop(ws.open().get(&old).unwrap()))),
        ("list", read(&|| drop(ws.open().list(&filter).unwrap()))),
        ("resolve", read(&|| assert_ne!(ws.open().resolve("@~3", &now).unwrap(), old))),
        ("status", read(&|| drop(ws.open().status(None).unwrap()))),
        ("save", read(&save)),
    ]
}

#[test]
fn twice_as_many_checkpoints_are_read_at_the_same_cost() {
    let ws = with_many_checkpoints();
    let few = bytes_read(&ws);
    let whole = std::fs::metadata(ws.store().join("backtrail/timeline")).unwrap().len();
    assert!(few[0].1 < whole / 3, "{few:?} of {whole}");
    // As many checkpoints as before are not in the index.
    (1..2 * PACKED_AT).for_each(|number| {
        ws.write("a", format!("more {number}"));
        ws.save();
    });
    for ((what, before), (_, now)) in few.into_iter().zip(bytes_read(&ws)) {
        assert!(now < before + before / 4, "{what} read {before} bytes, and {now} bytes later");
    }
}

#[test]
fn a_flipped_byte_in_the_index_changes_no_answer() {
    let ws = with_many_checkpoints();
    let all = ids(&ws);
    assert_eq!(all.len(), MANY);
    let expected = answers(&ws, &all);
    let sound = std::fs::read(index(&ws)).unwrap();
    for place in (0..24).chain((24..sound.len()).step_by(sound.len() / 40)) {
        let mut flipped = sound.clone();
        flipped[place] ^= 0x41;
        std::fs::write(index(&ws), &flipped).unwrap();
        assert_eq!(answers(&ws, &all), expected, "byte {place}");
        assert_eq!(ids(&ws), all, "byte {place}");
    }
    for length in [0, 10, 500, sound.len() / 2, sound.len() - 1] {
        std::fs::write(index(&ws), &sound[..length]).unwrap();
        assert_eq!(answers(&ws, &all), expected, "{length} bytes");
        assert_eq!(ids(&ws), all, "{length} bytes");
    }
    ws.write("a", "after the damage");
    ws.save();
    assert_eq!(ids(&ws)[1..], all);
    ws.assert_store_is_sound();
}

#[test]
fn a_damaged_index_is_replaced_by_the_next_save() {
    let ws = with_many_checkpoints();
    let all = ids(&ws);
    let sound = std::fs::read(index(&ws)).unwrap();
    let mut flipped = sound.clone();
    flipped[20] ^= 1;
    std::fs::write(index(&ws), &flipped).unwrap();
    ws.write("a", "new");
    ws.save();
    assert_ne!(std::fs::read(index(&ws)).unwrap(), flipped);
    assert_eq!(ids(&ws)[1..], all);
}

#[test]
fn the_index_gives_way_to_the_refs() {
    let ws = with_many_checkpoints();
    let all = ids(&ws);
    // Plain git packs all refs, then deletes one of them.
    ws.store_git(&["pack-refs", "--all"]);
    assert_eq!(ids(&ws), all);
    let gone = all[MANY - 3];
    ws.store_git(&["update-ref", "-d", &format!("refs/checkpoints/{gone}")]);
    let left: Vec<CheckpointId> = all.iter().copied().filter(|id| *id != gone).collect();
    assert_eq!(ids(&ws), left);
    assert!(ws.open().get(&gone).is_err());
    // A lost ref is put back by the next save.
    ws.write("a", "new");
    ws.save();
    assert_eq!(ids(&ws)[1..], all);
    assert!(ws.open().verify().unwrap().damaged.is_empty());
}

#[test]
fn deleted_and_pinned_checkpoints_of_the_index_are_known() {
    let ws = with_many_checkpoints();
    let all = ids(&ws);
    let (gone, kept) = (all[MANY - 10], all[MANY - 11]);
    assert!(ws.open().pin(&kept, ws.now()).unwrap().pinned);
    assert!(ws.open().get(&kept).unwrap().pinned);
    ws.open().delete(&[gone], false, ws.now()).unwrap();
    assert!(ws.open().get(&gone).is_err());
    ws.write("a", "new");
    ws.save();
    assert!(ws.open().get(&kept).unwrap().pinned);
    assert_eq!(ids(&ws).len(), MANY);
    assert!(!ws.open().unpin(&kept, ws.now()).unwrap().pinned);
    assert!(!ws.open().get(&kept).unwrap().pinned);
    assert!(ws.open().verify().unwrap().damaged.is_empty());
    ws.assert_store_is_sound();
}

#[test]
fn an_index_without_the_timeline_file_is_not_used() {
    let ws = with_many_checkpoints();
    let all = ids(&ws);
    let expected = answers(&ws, &all);
    std::fs::remove_file(ws.store().join("backtrail/timeline")).unwrap();
    assert_eq!(answers(&ws, &all), expected);
    ws.write("a", "new");
    ws.save();
    assert_eq!(ids(&ws)[1..], all);
    let timeline = std::fs::read_to_string(ws.store().join("backtrail/timeline")).unwrap();
    assert_eq!(timeline.lines().count(), MANY + 1);
}
