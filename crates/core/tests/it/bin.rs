//! Checkpoints that were deleted on request stay in the bin for a while, and `undo` brings them back.

use std::{collections::BTreeSet, time::Duration};

use backtrail::{CheckpointId, Direction, Event, RestoreRequest, SaveRequest, Settings, TimedEvent};
use backtrail_testkit::TestWorkspace;
use jiff::Zoned;

/// Returns a workspace with this many checkpoints, and their ids, oldest first.
fn with_checkpoints(count: usize) -> (TestWorkspace, Vec<CheckpointId>) {
    let ws = TestWorkspace::new();
    let ids = (0..count).map(|number| save(&ws, number)).collect();
    (ws, ids)
}

fn save(ws: &TestWorkspace, number: usize) -> CheckpointId {
    ws.write("file", format!("{number}\n"));
    ws.save_with(&SaveRequest { name: Some(format!("n{number}")), ..SaveRequest::default() }).checkpoint.id
}

fn listed(ws: &TestWorkspace) -> BTreeSet<CheckpointId> {
    ws.open().list(&Default::default()).unwrap().iter().map(|checkpoint| checkpoint.id).collect()
}

fn binned(ws: &TestWorkspace) -> BTreeSet<CheckpointId> {
    ws.open().deleted().unwrap().iter().map(|deleted| deleted.checkpoint.id).collect()
}

fn refs(ws: &TestWorkspace, below: &str) -> String {
    String::from_utf8(ws.store_git(&["for-each-ref", "--format=%(objectname)", below])).unwrap()
}

#[test]
fn a_deleted_checkpoint_is_gone_and_undo_brings_it_back_with_its_pin() {
    let (ws, ids) = with_checkpoints(3);
    ws.open().pin(&ids[1], ws.now()).unwrap();
    let before = ws.open().list(&Default::default()).unwrap();
    let files = ws.manifest();
    ws.open().delete(&[ids[1]], false, ws.now()).unwrap();

    let now = Zoned::now();
    assert!(ws.open().get(&ids[1]).is_err());
    assert!(ws.open().resolve(&ids[1].to_string(), &now).is_err());
    assert!(ws.open().resolve("n1", &now).is_err());
    assert_eq!(ws.open().resolve("@~", &now).unwrap(), ids[0], "the deleted checkpoint is stepped over");
    assert_eq!(listed(&ws), BTreeSet::from([ids[0], ids[2]]));
    assert_eq!(binned(&ws), BTreeSet::from([ids[1]]));
    assert!(!refs(&ws, "refs/checkpoints").contains(&ids[1].to_string()));
    assert!(!refs(&ws, "refs/pinned").contains(&ids[1].to_string()));
    assert!(ws.open().verify().unwrap().damaged.is_empty());
    ws.assert_store_is_sound();

    let done = ws.open().undo(ws.now()).unwrap().unwrap();
    assert!(done.applied && done.changes.is_empty() && done.safety.is_none());
    assert_eq!(done.undeleted, [ids[1]]);
    assert_eq!(ws.open().list(&Default::default()).unwrap(), before, "the checkpoints are not as they were");
    assert!(binned(&ws).is_empty());
    files.assert_same(&ws.manifest(), "undo of a deletion");

    let again = ws.open().redo(ws.now()).unwrap().unwrap();
    assert_eq!((again.deleted, again.undeleted), (vec![ids[1]], Vec::new()));
    assert_eq!((listed(&ws), binned(&ws)), (BTreeSet::from([ids[0], ids[2]]), BTreeSet::from([ids[1]])));
    assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted, [ids[1]]);
    assert_eq!(listed(&ws), ids.iter().copied().collect());
    ws.assert_store_is_sound();
}

#[test]
fn undo_takes_back_the_newest_of_restores_and_deletions() {
    let (ws, ids) = with_checkpoints(3);
    ws.open().restore(&RestoreRequest::whole(ids[0]), ws.now()).unwrap();
    ws.open().delete(&[ids[1], ids[2]], false, ws.now()).unwrap();
    let next = ws.open().next_taken_back(Direction::Undo).unwrap().unwrap();
    assert_eq!((next.deleted.len(), next.saves_since), (2, 0));
    save(&ws, 7);
    assert_eq!(ws.open().next_taken_back(Direction::Undo).unwrap().unwrap().saves_since, 1);

    let (plan, _) = ws.open().plan_undo().unwrap().unwrap();
    assert!(plan.changes.is_empty() && plan.conflicts.is_empty());
    assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted, [ids[1], ids[2]]);
    assert_eq!(ws.read("file"), Some(b"7\n".to_vec()));
    let restored = ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!((restored.undeleted.len(), ws.read("file")), (0, Some(b"2\n".to_vec())));
    assert!(ws.open().undo(ws.now()).unwrap().is_none());
    assert_eq!(ws.open().redo(ws.now()).unwrap().unwrap().deleted.len(), 0);
    assert_eq!(ws.open().redo(ws.now()).unwrap().unwrap().deleted, [ids[1], ids[2]]);
}

#[test]
fn prune_empties_the_bin_and_undo_then_takes_back_what_came_before() {
    let (ws, ids) = with_checkpoints(3);
    ws.write("secret", "x".repeat(100_000));
    let secret = ws.save().id;
    ws.remove("secret");
    ws.save();
    ws.open().restore(&RestoreRequest::whole(ids[0]), ws.now()).unwrap();
    ws.open().delete(&[secret, ids[1]], false, ws.now()).unwrap();
    assert!(ws.is_in_store(&[b'x'; 100_000]));
    ws.open().prune(ws.now()).unwrap();
    assert!(!ws.is_in_store(&[b'x'; 100_000]));
    assert!(binned(&ws).is_empty() && refs(&ws, "refs/deleted").is_empty());
    let done = ws.open().undo(ws.now()).unwrap().unwrap();
    assert!(done.undeleted.is_empty() && !done.changes.is_empty(), "the restore before the deletion is taken back");
    assert!(ws.open().undo(ws.now()).unwrap().is_none());
    ws.assert_store_is_sound();
}

#[test]
fn a_save_removes_what_was_deleted_long_ago_and_the_user_decides_how_long_that_is() {
    let (ws, ids) = with_checkpoints(3);
    ws.open().delete(&[ids[0]], false, ws.now()).unwrap();
    let later = |hours: u64| ws.now() + Duration::from_secs(hours * 3_600);
    let save_at = |number: u8, now| {
        ws.write("file", [number]);
        ws.open().save(&SaveRequest::default(), now).unwrap();
    };
    ws.open().delete(&[ids[1]], false, later(23)).unwrap();
    save_at(8, later(23));
    assert_eq!(binned(&ws), BTreeSet::from([ids[0], ids[1]]));
    save_at(9, later(25));
    assert_eq!(binned(&ws), BTreeSet::from([ids[1]]));

    let mut settings = Settings::default();
    settings.retention.deleted = Duration::ZERO;
    ws.open_with(&ws.root(), settings).delete(&[ids[2]], false, ws.now()).unwrap();
    assert_eq!(binned(&ws), BTreeSet::from([ids[1]]), "with a time of zero there is no bin");
    ws.write("backtrail.toml", "[retention]\ndeleted = \"0s\"\n");
    let settings = Settings::default().with_workspace(&ws.root()).unwrap();
    assert_eq!(settings.retention.deleted, Duration::from_secs(86_400));
    assert_eq!(settings.without_effect[0].key, "[retention] deleted");
}

#[test]
fn a_deletion_for_good_leaves_nothing_to_undo() {
    let (ws, ids) = with_checkpoints(4);
    ws.open().delete_for_good(&[ids[0]], false, ws.now()).unwrap();
    assert!(binned(&ws).is_empty() && ws.open().undo(ws.now()).unwrap().is_none());
    ws.open().delete(&[ids[1], ids[2]], false, ws.now()).unwrap();
    assert_eq!(ws.open().delete_for_good(&[ids[1]], false, ws.now()).unwrap(), [ids[1]]);
    assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted, [ids[2]], "the rest of the deletion comes back");
}

#[test]
fn a_store_with_a_bin_is_not_written_by_programs_that_do_not_know_bins() {
    let (ws, ids) = with_checkpoints(2);
    let format = || std::fs::read_to_string(ws.store().join("backtrail/format")).unwrap();
    assert_eq!(format(), "backtrail store 1\nread: base\nwrite: base\n");
    ws.open().delete(&[ids[0]], false, ws.now()).unwrap();
    assert_eq!(format(), "backtrail store 1\nread: base\nwrite: base bin\n");
    std::fs::remove_file(ws.store().join("backtrail/format")).unwrap();
    save(&ws, 5);
    assert_eq!(format(), "backtrail store 1\nread: base\nwrite: base bin\n");
}

#[test]
fn the_bin_outlives_the_loss_of_the_log_and_of_the_timeline() {
    let (ws, ids) = with_checkpoints(3);
    ws.open().delete(&[ids[1]], false, ws.now()).unwrap();
    std::fs::remove_file(ws.store().join("backtrail/timeline")).unwrap();
    assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted, [ids[1]]);
    assert_eq!(listed(&ws), ids.iter().copied().collect());
    ws.open().delete(&[ids[1]], false, ws.now()).unwrap();
    std::fs::remove_file(ws.store().join("backtrail/ops")).unwrap();
    save(&ws, 9);
    assert_eq!(binned(&ws), BTreeSet::from([ids[1]]), "it is neither lost nor back");
    ws.assert_store_is_sound();
    ws.open().prune(ws.now()).unwrap();
    assert!(binned(&ws).is_empty() && !listed(&ws).contains(&ids[1]));
}

#[test]
fn a_shortened_log_still_knows_the_bin() {
    let (ws, ids) = with_checkpoints(3);
    ws.open().delete(&[ids[0]], false, ws.now()).unwrap();
    ws.open().undo(ws.now()).unwrap();
    ws.open().delete(&[ids[1]], false, ws.now()).unwrap();
    for _ in 0..130 {
        let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
        let id = ws.save_with(&request).checkpoint.id;
        ws.open().delete_for_good(&[id], false, ws.now()).unwrap();
    }
    save(&ws, 9);
    let lines = std::fs::read_to_string(ws.store().join("backtrail/ops")).unwrap().lines().count();
    assert!(lines < 60, "the log has {lines} lines");
    assert_eq!(binned(&ws), BTreeSet::from([ids[1]]));
    assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted, [ids[1]]);
    assert!(ws.open().undo(ws.now()).unwrap().is_none());
    assert!(listed(&ws).is_superset(&ids.iter().copied().collect()));
}

#[test]
fn events_tell_of_deletions_and_of_their_undo() {
    let (ws, ids) = with_checkpoints(2);
    ws.open().delete(&[ids[0]], false, ws.now()).unwrap();
    ws.open().undo(ws.now()).unwrap();
    let events = ws.open().events().unwrap();
    let told: Vec<TimedEvent> = events.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., first, second] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(first.event, Event::CheckpointDeleted { checkpoint: ids[0] });
    assert_eq!(second.event, Event::CheckpointsUndeleted { checkpoints: vec![ids[0]] });
}

#[test]
fn compacting_keeps_what_is_in_the_bin() {
    let (ws, _) = with_checkpoints(1);
    ws.write("only here", "deleted, and not gone\n");
    let id = ws.save().id;
    ws.remove("only here");
    save(&ws, 1);
    ws.open().delete(&[id], false, ws.now()).unwrap();
    let packs = ws.packs();
    for number in 2..80 {
        let id = save(&ws, number);
        // Saves compact the store only if many checkpoints were deleted.
        if number % 2 == 0 {
            ws.open().delete_for_good(&[id], false, ws.now()).unwrap();
        }
    }
    assert!(packs.iter().any(|pack| !pack.exists()), "the packs were not merged");
    ws.open().undo(ws.now()).unwrap().unwrap();
    ws.open().restore(&RestoreRequest::whole(id), ws.now()).unwrap();
    assert_eq!(ws.read("only here"), Some(b"deleted, and not gone\n".to_vec()));
}
