//! Flipped bits, truncated files and lost files in a store: each is reported or harmless, no wrong byte is restored,
//! and damage affects only the checkpoints that need the damaged data.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use backtrail::{CheckpointId, ListFilter, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{Manifest, TestWorkspace, is_long};

/// A small store with every kind of file that a store can have, and the expected tree of each checkpoint.
struct Sample {
    ws: TestWorkspace,
    trees: BTreeMap<CheckpointId, Manifest>,
    /// Every file of the store, byte for byte.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Sample {
    fn new() -> Self {
        let ws = TestWorkspace::in_memory();
        ws.write("a", "one\n");
        ws.write_mode("secret", "s\n", 0o600);
        ws.write("d/b", "in a directory\n");
        ws.symlink("a", "link");
        let mut trees = BTreeMap::new();
        let mut save = |ws: &TestWorkspace| trees.insert(ws.save().id, ws.manifest());
        save(&ws);
        ws.write("a", "two\n");
        ws.write("big", "some text that compresses, again and again\n".repeat(40));
        save(&ws);
        // A restore and a deletion add entries to the log of operations.
        let first = *trees.keys().find(|id| trees[*id].holds(b"one\n")).unwrap();
        ws.open().restore(&RestoreRequest::whole(first), ws.now()).unwrap();
        ws.write("a", "three\n");
        let last = ws.save().id;
        trees.insert(last, ws.manifest());
        ws.write("gone", "deleted again\n");
        let gone = ws.save().id;
        ws.open().delete(&[gone], false, ws.now()).unwrap();
        ws.remove("gone");
        ws.open().pin(&last, ws.now()).unwrap();
        let files = files_below(&ws.store());
        Self { ws, trees, files }
    }

    fn reset_store(&self) {
        let present = files_below(&self.ws.store());
        for path in present.keys().filter(|path| !self.files.contains_key(*path)) {
            std::fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &self.files {
            if present.get(path) != Some(bytes) {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
        }
    }

    /// Returns the ids that `verify` reports. Returns every checkpoint if `verify` fails with a message.
    fn reported_ids(&self, what: &str) -> BTreeSet<String> {
        match self.ws.open().verify() {
            Ok(found) => found.damaged.into_iter().map(|damage| damage.id).collect(),
            Err(error) => {
                assert!(!error.to_string().is_empty(), "{what}");
                self.trees.keys().map(ToString::to_string).collect()
            }
        }
    }

    /// Checks that every checkpoint that `verify` does not report has its expected tree. A reported one may also fail.
    fn assert_trees_are_right_or_reported(&self, what: &str) {
        let reported_ids = self.reported_ids(what);
        let listed: BTreeSet<CheckpointId> = match self.ws.open().list(&ListFilter::default()) {
            Ok(list) => list.into_iter().map(|checkpoint| checkpoint.id).collect(),
            Err(_) => BTreeSet::new(),
        };
        for (id, tree) in &self.trees {
            let is_reported = reported_ids.contains(&id.to_string());
            assert!(
                is_reported || listed.contains(id),
                "{what}: {id} is missing, and verify does not report it: {reported_ids:?}"
            );
            let place = self.ws.base().join("exported");
            match self.ws.open().export(id, &place) {
                Ok(_) => tree.assert_same(&Manifest::of(&place), &format!("{what}: {id}")),
                Err(error) => {
                    assert!(is_reported, "{what}: {id} can't be read, and verify does not report it: {error}")
                }
            }
            if place.exists() {
                remove(&place);
            }
        }
    }

    /// Checks that a restore succeeds or is refused, and writes no wrong byte.
    fn assert_restores_are_right_or_refused(&self, what: &str) {
        let before = self.ws.manifest();
        for (id, tree) in &self.trees {
            let done = self.ws.open().restore(&RestoreRequest::whole(*id), self.ws.now());
            let now = self.ws.manifest();
            match done {
                Ok(_) => tree.assert_same(&now, &format!("{what}: restored {id}")),
                Err(_) => before.assert_same(&now, &format!("{what}: a refused restore of {id}")),
            }
            if now != before {
                break;
            }
        }
        reset_tree(&self.ws, &before);
    }

    fn damage(&self, path: &Path, bytes: &[u8], what: &str, also_restore: bool) {
        std::fs::write(path, bytes).unwrap();
        let checked = catch_unwind(AssertUnwindSafe(|| {
            self.assert_trees_are_right_or_reported(what);
            if also_restore {
                self.assert_restores_are_right_or_refused(what);
            }
        }));
        assert!(checked.is_ok(), "{what}: failed as shown above");
        self.reset_store();
    }

    fn damageable_files(&self) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
        // The lock is empty, and no operation depends on the log of events.
        self.files.iter().filter(|(path, bytes)| !bytes.is_empty() && !path.ends_with("events.jsonl"))
    }
}

/// Resets the files of the workspace after a restore changed them.
fn reset_tree(ws: &TestWorkspace, tree: &Manifest) {
    use backtrail_testkit::Found;
    if ws.manifest() == *tree {
        return;
    }
    for name in ws.manifest().0.keys().filter(|name| !name.contains(&b'/')) {
        ws.remove(name);
    }
    for (name, found) in &tree.0 {
        match found {
            Found::File(mode, bytes) => ws.write_mode(name, bytes, *mode),
            Found::Link(target) => ws.symlink(target, name),
            Found::Directory(mode) => {
                ws.mkdir(name);
                ws.chmod(name, *mode);
            }
            Found::Special => unreachable!("the sample has none"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test clears its own temporary tree")]
fn remove(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
}

fn files_below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    let sample = Sample::new();
    // Every byte in the long run. Otherwise a prime step, so that the sample has no pattern.
    let step = if is_long() { 1 } else { 61 };
    let mut tried = 0;
    for (path, bytes) in sample.damageable_files() {
        for position in (tried % step..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << (position % 8);
            let what = format!("bit {} of byte {position} of {}", position % 8, path.display());
            sample.damage(path, &flipped, &what, tried % 8 == 0);
            tried += 1;
        }
    }
    println!("{tried} flips in {} files", sample.damageable_files().count());
    assert!(tried > 100);
}

#[test]
fn a_truncated_file_is_reported_or_harmless() {
    let sample = Sample::new();
    let mut tried = 0;
    for (path, bytes) in sample.damageable_files() {
        let ends = (0..bytes.len()).step_by(if is_long() { 64 } else { 512 }).chain([bytes.len() - 1]);
        for end in ends.collect::<BTreeSet<_>>() {
            let what = format!("{} cut to {end} of {} bytes", path.display(), bytes.len());
            sample.damage(path, &bytes[..end], &what, true);
            tried += 1;
        }
    }
    println!("{tried} cuts in {} files", sample.damageable_files().count());
}

/// The loss of any file except a pack costs no checkpoint: the next save recreates the data.
#[test]
fn the_next_save_repairs_a_lost_file() {
    save_after_each_lost_file("the next save", |_| {});
}

/// A lost ref must not make `prune` remove the objects that only its checkpoint needs.
#[test]
fn prune_after_a_lost_file_removes_nothing_needed() {
    save_after_each_lost_file("a prune and the next save", |ws| {
        // The prune may fail if it needs the lost file. It then removes nothing.
        let _ = ws.open().prune(ws.now());
    });
}

fn save_after_each_lost_file(next: &str, act: impl Fn(&TestWorkspace)) {
    let sample = Sample::new();
    for path in sample.files.keys() {
        let inside = path.strip_prefix(sample.ws.store()).unwrap().to_string_lossy().into_owned();
        if inside.ends_with(".pack") {
            continue;
        }
        std::fs::remove_file(path).unwrap();
        let what = format!("without {inside}, after {next}");
        sample.assert_trees_are_right_or_reported(&what);
        act(&sample.ws);
        sample
            .ws
            .open()
            .save(&SaveRequest::default(), sample.ws.now())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let damaged = sample.ws.open().verify().unwrap().damaged;
        assert!(damaged.is_empty(), "{what}: {damaged:?}");
        let list = sample.ws.open().list(&ListFilter::default()).unwrap();
        for id in sample.trees.keys() {
            assert!(list.iter().any(|checkpoint| checkpoint.id == *id), "{what}: {id} is gone");
        }
        sample.assert_trees_are_right_or_reported(&what);
        sample.ws.assert_store_is_sound();
        sample.reset_store();
    }
}

/// Regression: a store without its format file counted as missing, so `list` was empty and `verify` reported no damage.
/// A store whose creation was never finished still counts as missing.
#[test]
fn a_store_without_its_format_file_is_still_a_store() {
    let sample = Sample::new();
    let format = sample.ws.store().join("backtrail/format");
    std::fs::remove_file(&format).unwrap();
    sample.assert_trees_are_right_or_reported("without a format");
    let damaged = sample.ws.open().verify().unwrap().damaged;
    assert!(damaged.len() == 1 && damaged[0].id == "format", "{damaged:?}");
    assert!(sample.ws.open().has_store().unwrap());
    let around = sample.ws.root().join("d");
    let found = backtrail::locate(
        &backtrail::Start::Around(around, backtrail::OptionsOf(&|_| backtrail::Options::default())),
        &sample.ws.stores(),
        None,
    )
    .unwrap();
    assert_eq!(found.root, sample.ws.root(), "the workspace is not found from a directory below");
    sample.assert_restores_are_right_or_refused("without a format");
    assert!(format.exists(), "the restore did not recreate it");
    assert_eq!(sample.ws.open().verify().unwrap().damaged, []);

    let ws = TestWorkspace::in_memory();
    ws.open().init(ws.now()).unwrap();
    std::fs::remove_file(ws.store().join("backtrail/format")).unwrap();
    assert!(!ws.open().has_store().unwrap(), "nothing was ever saved there");
}

/// A pin is a ref like any other: it is enough if it is all that is left of a checkpoint.
#[test]
fn a_pin_alone_keeps_its_checkpoint() {
    let sample = Sample::new();
    let pins = sample.ws.store().join("refs/pinned");
    let pinned = std::fs::read_dir(&pins).unwrap().next().unwrap().unwrap().file_name();
    std::fs::remove_file(sample.ws.store().join("refs/checkpoints").join(&pinned)).unwrap();
    std::fs::remove_file(sample.ws.store().join("backtrail/timeline")).unwrap();
    sample.ws.open().prune(sample.ws.now()).unwrap();
    let list = sample.ws.open().list(&ListFilter::default()).unwrap();
    let pinned = list.iter().find(|checkpoint| checkpoint.id.to_string() == pinned.to_string_lossy());
    assert!(pinned.is_some_and(|checkpoint| checkpoint.pinned), "{list:#?}");
    sample.assert_trees_are_right_or_reported("with a pin alone");
    sample.ws.assert_store_is_sound();
}

/// Regression: a damaged pack index made every checkpoint in the pack unreadable, although the pack was intact.
#[test]
fn recover_rebuilds_a_damaged_index() {
    let sample = Sample::new();
    for (path, bytes) in sample.damageable_files().filter(|(path, _)| path.extension().is_some_and(|end| end == "idx"))
    {
        let mut damaged = bytes.clone();
        let position = damaged.len() - 60;
        damaged[position] ^= 0x55;
        std::fs::write(path, damaged).unwrap();
        assert!(!sample.ws.open().verify().unwrap().damaged.is_empty());
        sample.ws.open().recover(Way::Forward, sample.ws.now()).unwrap();
        assert_eq!(sample.ws.open().verify().unwrap().damaged, []);
        assert_eq!(std::fs::read(path).unwrap(), *bytes);
        sample.reset_store();
    }
}

/// Regression: damaged content counted as stored already, so a new checkpoint of the same content was damaged, too.
#[test]
fn a_save_after_damage_is_intact() {
    let sample = Sample::new();
    for (path, bytes) in sample.damageable_files().filter(|(path, _)| path.extension().is_some_and(|end| end == "pack"))
    {
        for end in [0, bytes.len() / 2] {
            std::fs::write(path, &bytes[..end]).unwrap();
            let request = SaveRequest { allow_empty: true, ..Default::default() };
            let what = format!("{} cut to {end} bytes", path.display());
            let saved = sample.ws.open().save(&request, sample.ws.now());
            let saved = saved.unwrap_or_else(|error| panic!("{what}: {error}")).checkpoint.id;
            let reported_ids = sample.reported_ids(&what);
            assert!(
                !reported_ids.contains(&saved.to_string()),
                "{what}: a new checkpoint is damaged: {reported_ids:?}"
            );
            sample.reset_store();
        }
    }
}

/// Regression: the file on disk was the last intact copy of a damaged object, and a restore removed it.
#[test]
fn a_restore_saves_the_last_intact_copy_before_removing_it() {
    let packs = |ws: &TestWorkspace| -> BTreeMap<PathBuf, Vec<u8>> {
        let files = files_below(&ws.store()).into_iter();
        files.filter(|(path, _)| path.extension().is_some_and(|end| end == "pack")).collect()
    };
    let mut tried = 0;
    for number in 0..if is_long() { 600 } else { 24 } {
        let ws = TestWorkspace::in_memory();
        ws.write("d/a", "one\n");
        let first = ws.save().id;
        let earlier = packs(&ws);
        ws.write("d/a", "the only copy\n");
        // The stat cache does not trust a newer file.
        std::thread::sleep(std::time::Duration::from_millis(60));
        ws.save();
        let before = ws.manifest();
        let (path, mut bytes) = packs(&ws).into_iter().find(|(path, _)| !earlier.contains_key(path)).unwrap();
        let position = 12 + number * if is_long() { 1 } else { 23 };
        if position >= bytes.len() - 20 {
            break;
        }
        bytes[position] ^= 0x10;
        std::fs::write(path, bytes).unwrap();
        let what = format!("byte {position} of the last pack");
        ws.open().restore(&RestoreRequest::whole(first), ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
        ws.open().undo(ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
        tried += 1;
        before.assert_same(&ws.manifest(), &what);
    }
    assert!(tried > 5);
}
