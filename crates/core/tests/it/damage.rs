//! Bytes that flip, files that are cut short or lost: each is noticed or harmless, no wrong byte comes out, and what is
//! damaged costs only the checkpoints that need it.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use backtrail::{CheckpointId, ListFilter, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{Manifest, TestWorkspace, is_long};

/// A small store with what every sort of file in one can hold, and what each checkpoint should give back.
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
        // A restore and a deletion leave their traces in the log.
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

    fn put_back(&self) {
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

    /// What `verify` names; everything, where the store can't be read at all and that is said.
    fn named(&self, what: &str) -> BTreeSet<String> {
        match self.ws.open().verify() {
            Ok(found) => found.damaged.into_iter().map(|damage| damage.id).collect(),
            Err(error) => {
                assert!(!error.to_string().is_empty(), "{what}");
                self.trees.keys().map(ToString::to_string).collect()
            }
        }
    }

    /// Every checkpoint that is not named gives back what it should; one that is named gives that or an error.
    fn assert_nothing_wrong_comes_out(&self, what: &str) {
        let named = self.named(what);
        let listed: BTreeSet<CheckpointId> = match self.ws.open().list(&ListFilter::default()) {
            Ok(list) => list.into_iter().map(|checkpoint| checkpoint.id).collect(),
            Err(_) => BTreeSet::new(),
        };
        for (id, tree) in &self.trees {
            let is_named = named.contains(&id.to_string());
            assert!(is_named || listed.contains(id), "{what}: {id} is gone, and verify says nothing: {named:?}");
            let place = self.ws.base().join("exported");
            match self.ws.open().export(id, &place) {
                Ok(_) => tree.assert_same(&Manifest::of(&place), &format!("{what}: {id}")),
                Err(error) => assert!(is_named, "{what}: {id} can't be read, and verify says nothing: {error}"),
            }
            if place.exists() {
                remove(&place);
            }
        }
    }

    /// A restore is done or refused, and writes no wrong byte.
    fn assert_restores_right(&self, what: &str) {
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
        put_tree_back(&self.ws, &before);
    }

    fn damage(&self, path: &Path, bytes: &[u8], what: &str, deep: bool) {
        std::fs::write(path, bytes).unwrap();
        let looked = catch_unwind(AssertUnwindSafe(|| {
            self.assert_nothing_wrong_comes_out(what);
            if deep {
                self.assert_restores_right(what);
            }
        }));
        assert!(looked.is_ok(), "{what}: see above");
        self.put_back();
    }

    fn names(&self) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
        // The lock is empty, and the report of events is a report.
        self.files.iter().filter(|(path, bytes)| !bytes.is_empty() && !path.ends_with("events.jsonl"))
    }
}

/// Puts the files of the workspace back where a restore changed them.
fn put_tree_back(ws: &TestWorkspace, tree: &Manifest) {
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
fn a_flipped_bit_is_noticed_or_harmless() {
    let sample = Sample::new();
    // Every byte in the long run; else a walk through all of them with a step that has no rhythm.
    let step = if is_long() { 1 } else { 61 };
    let mut tried = 0;
    for (path, bytes) in sample.names() {
        for position in (tried % step..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << (position % 8);
            let what = format!("bit {} of byte {position} of {}", position % 8, path.display());
            sample.damage(path, &flipped, &what, tried % 8 == 0);
            tried += 1;
        }
    }
    println!("{tried} flips in {} files", sample.names().count());
    assert!(tried > 100);
}

#[test]
fn a_file_that_is_cut_short_is_noticed_or_harmless() {
    let sample = Sample::new();
    let mut tried = 0;
    for (path, bytes) in sample.names() {
        let ends = (0..bytes.len()).step_by(if is_long() { 64 } else { 512 }).chain([bytes.len() - 1]);
        for end in ends.collect::<BTreeSet<_>>() {
            let what = format!("{} cut to {end} of {} bytes", path.display(), bytes.len());
            sample.damage(path, &bytes[..end], &what, true);
            tried += 1;
        }
    }
    println!("{tried} cuts in {} files", sample.names().count());
}

/// Files of the store that the next command makes again: after it, everything is as it was.
#[test]
fn what_can_be_made_again_is() {
    after_each_loss("the next save", |_| {});
}

/// A ref that is lost must not cost its checkpoint the objects that nothing else refers to.
#[test]
fn what_can_be_made_again_is_not_pruned() {
    after_each_loss("a prune and the next save", |ws| {
        // What can't be told any more is an error, and takes nothing away.
        let _ = ws.open().prune(ws.now());
    });
}

fn after_each_loss(next: &str, act: impl Fn(&TestWorkspace)) {
    let sample = Sample::new();
    for path in sample.files.keys() {
        let inside = path.strip_prefix(sample.ws.store()).unwrap().to_string_lossy().into_owned();
        if inside.ends_with(".pack") {
            continue;
        }
        std::fs::remove_file(path).unwrap();
        let what = format!("without {inside}, after {next}");
        sample.assert_nothing_wrong_comes_out(&what);
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
        sample.assert_nothing_wrong_comes_out(&what);
        sample.ws.assert_store_is_sound();
        sample.put_back();
    }
}

/// Without the file that says what it is, a store was none: `list` had nothing, and `verify` found all well. One that
/// was never finished still is none.
#[test]
fn a_store_whose_format_is_lost_is_a_store() {
    let sample = Sample::new();
    let format = sample.ws.store().join("backtrail/format");
    std::fs::remove_file(&format).unwrap();
    sample.assert_nothing_wrong_comes_out("without a format");
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
    assert_eq!(found.root, sample.ws.root(), "it is found from below");
    sample.assert_restores_right("without a format");
    assert!(format.exists(), "whoever wrote made it again");
    assert_eq!(sample.ws.open().verify().unwrap().damaged, []);

    let ws = TestWorkspace::in_memory();
    ws.open().init(ws.now()).unwrap();
    std::fs::remove_file(ws.store().join("backtrail/format")).unwrap();
    assert!(!ws.open().has_store().unwrap(), "nothing was ever saved there");
}

/// A pin is a ref like any other: where it is all that is left of a checkpoint, it is enough.
#[test]
fn a_pin_alone_brings_its_checkpoint_back() {
    let sample = Sample::new();
    let pins = sample.ws.store().join("refs/pinned");
    let pinned = std::fs::read_dir(&pins).unwrap().next().unwrap().unwrap().file_name();
    std::fs::remove_file(sample.ws.store().join("refs/checkpoints").join(&pinned)).unwrap();
    std::fs::remove_file(sample.ws.store().join("backtrail/timeline")).unwrap();
    sample.ws.open().prune(sample.ws.now()).unwrap();
    let list = sample.ws.open().list(&ListFilter::default()).unwrap();
    let pinned = list.iter().find(|checkpoint| checkpoint.id.to_string() == pinned.to_string_lossy());
    assert!(pinned.is_some_and(|checkpoint| checkpoint.pinned), "{list:#?}");
    sample.assert_nothing_wrong_comes_out("with a pin alone");
    sample.ws.assert_store_is_sound();
}

/// A pack's index that was damaged made every checkpoint in the pack unreadable, although the pack has it all.
#[test]
fn a_damaged_index_is_made_again_by_recover() {
    let sample = Sample::new();
    for (path, bytes) in sample.names().filter(|(path, _)| path.extension().is_some_and(|end| end == "idx")) {
        let mut spoilt = bytes.clone();
        let middle = spoilt.len() - 60;
        spoilt[middle] ^= 0x55;
        std::fs::write(path, spoilt).unwrap();
        assert!(!sample.ws.open().verify().unwrap().damaged.is_empty());
        sample.ws.open().recover(Way::Forward, sample.ws.now()).unwrap();
        assert_eq!(sample.ws.open().verify().unwrap().damaged, []);
        assert_eq!(std::fs::read(path).unwrap(), *bytes);
        sample.put_back();
    }
}

/// Contents that the store has in a damaged form were taken for stored, so that a new checkpoint of them was damaged, too.
#[test]
fn a_save_after_damage_is_whole() {
    let sample = Sample::new();
    for (path, bytes) in sample.names().filter(|(path, _)| path.extension().is_some_and(|end| end == "pack")) {
        for end in [0, bytes.len() / 2] {
            std::fs::write(path, &bytes[..end]).unwrap();
            let request = SaveRequest { allow_empty: true, ..Default::default() };
            let what = format!("{} cut to {end} bytes", path.display());
            let saved = sample.ws.open().save(&request, sample.ws.now());
            let saved = saved.unwrap_or_else(|error| panic!("{what}: {error}")).checkpoint.id;
            let named = sample.named(&what);
            assert!(!named.contains(&saved.to_string()), "{what}: a new checkpoint is damaged: {named:?}");
            sample.put_back();
        }
    }
}

/// The file on disk was the last sound copy of what a damaged object holds, and a restore took it away.
#[test]
fn what_only_the_workspace_has_sound_is_saved_before_it_goes() {
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
        // Old enough for the stat cache to be sure of it.
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
