//! `prune` makes the store small: it stores versions of a file as deltas, and every byte can still be restored.

use backtrail::{CheckpointId, RestoreRequest};
use backtrail_testkit::{Manifest, TestWorkspace};

const VERSIONS: usize = 24;

fn text(seed: usize, lines: usize) -> String {
    (0..lines).map(|line| format!("{} {line} {}\n", seed * 7919 % 104_729, (seed + line) * 31 % 997)).collect()
}

/// Returns bytes that don't compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Saves many versions of a few files, one of them large. Returns each checkpoint with its tree.
fn save_versions(ws: &TestWorkspace) -> Vec<(CheckpointId, Manifest)> {
    ws.write("large.bin", noise(7, 5 << 20));
    ws.write("run.sh", "#!/bin/sh\n");
    ws.chmod("run.sh", 0o755);
    let mut known = Vec::new();
    for version in 0..VERSIONS {
        for file in 0..6 {
            let mut content = text(file, 400 + version);
            content.insert_str(content.len() / 2, &format!("version {version}\n"));
            ws.write(format!("src/deep/{file}.txt"), content);
        }
        ws.write("small", format!("{version}"));
        let saved = ws.save();
        known.push((saved.id, ws.manifest()));
    }
    known
}

fn count_deltas(ws: &TestWorkspace) -> usize {
    let [pack] = ws.packs().try_into().expect("one pack");
    let listed = ws.store_git(&["verify-pack", "-v", pack.to_str().unwrap()]);
    // Git lists a delta with two more fields: its depth and its base.
    String::from_utf8(listed).unwrap().lines().filter(|line| line.split_whitespace().count() == 7).count()
}

#[track_caller]
fn assert_all_restorable(ws: &TestWorkspace, known: &[(CheckpointId, Manifest)]) {
    for (id, manifest) in known {
        ws.open().restore(&RestoreRequest::whole(*id), ws.now()).unwrap();
        ws.manifest().assert_same(manifest, "the restored tree");
    }
}

#[test]
fn prune_writes_one_small_pack_with_every_object() {
    let ws = TestWorkspace::new();
    let known = save_versions(&ws);
    let pruned = ws.open().prune(ws.now()).unwrap();
    assert_eq!(pruned.deleted, []);
    assert!(count_deltas(&ws) > VERSIONS * 4, "{}", count_deltas(&ws));
    let large = 5 << 20;
    let (before, after) = (pruned.bytes_before - large, pruned.bytes_after - large);
    assert!(after * 2 < before, "{before} to {after}");
    ws.assert_store_is_sound();
    assert!(ws.open().verify().unwrap().damaged.is_empty());
    assert_all_restorable(&ws, &known);
}

#[test]
fn a_condensed_store_can_be_written_and_pruned_again() {
    let ws = TestWorkspace::new();
    let mut known = save_versions(&ws);
    ws.open().prune(ws.now()).unwrap();
    let first = ws.packs();
    ws.open().prune(ws.now()).unwrap();
    assert_eq!(ws.packs(), first, "the second prune had nothing to do");

    ws.write("src/deep/0.txt", text(99, 300));
    known.push((ws.save().id, ws.manifest()));
    let gone: Vec<CheckpointId> = known.drain(..VERSIONS / 2).map(|(id, _)| id).collect();
    ws.open().delete(&gone, false, ws.now()).unwrap();
    ws.assert_store_is_sound();
    assert_all_restorable(&ws, &known);

    ws.open().prune(ws.now()).unwrap();
    ws.assert_store_is_sound();
    assert!(count_deltas(&ws) > 0);
    assert_all_restorable(&ws, &known);
}

#[test]
fn a_lost_index_of_a_condensed_pack_is_rebuilt() {
    let ws = TestWorkspace::new();
    let known = save_versions(&ws);
    ws.open().prune(ws.now()).unwrap();
    let [pack] = ws.packs().try_into().unwrap();
    let index = std::fs::read(pack.with_extension("idx")).unwrap();
    std::fs::remove_file(pack.with_extension("idx")).unwrap();
    ws.write("small", "more");
    ws.save();
    assert_eq!(std::fs::read(pack.with_extension("idx")).unwrap(), index);
    ws.assert_store_is_sound();
    assert_all_restorable(&ws, &known);
}

#[test]
fn prune_removes_no_pack_if_an_object_is_damaged() {
    let ws = TestWorkspace::new();
    save_versions(&ws);
    let first = ws.packs();
    let pack = first.iter().max_by_key(|pack| std::fs::metadata(pack).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::set_permissions(pack, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(pack, bytes).unwrap();
    // The prune may fail or skip the pack: its sound objects must not be removed with the damaged one.
    drop(ws.open().prune(ws.now()));
    let after = ws.packs();
    assert!(first.iter().all(|pack| after.contains(pack)), "{first:?} {after:?}");
}

/// A damaged blob in a pack that also holds unneeded objects made `prune`, and later every save, return an error.
#[test]
fn a_damaged_object_in_a_pack_with_unneeded_objects_does_not_fail_prune() {
    let ws = TestWorkspace::new();
    let kept = backtrail_testkit::Random::new(7).bytes(5_000);
    ws.write("kept", &kept);
    ws.write("goes", backtrail_testkit::Random::new(8).bytes(5_000));
    let first = ws.save();
    let pack = ws.packs().remove(0);
    ws.write("goes", "small");
    ws.save();
    let mut bytes = std::fs::read(&pack).unwrap();
    let at =
        bytes.windows(64).position(|window| window == &kept[1_000..1_064]).expect("the content is stored uncompressed");
    bytes[at] ^= 1;
    std::fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&pack, bytes).unwrap();
    ws.open().delete(&[first.id], false, ws.now()).unwrap();
    ws.open().prune(ws.now()).unwrap();
    assert!(pack.exists(), "its other objects are still needed");
}
