//! The stat cache saves work and never changes the contents of a checkpoint.

use std::{fs::File, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use backtrail::{GitEnvironment, Options, SaveRequest, Settings, Start, Workspace};
use backtrail_testkit::{Random, TestWorkspace, git};

/// Waits until the file system's clock has ticked, so that earlier writes count as settled. A test can't set a ctime.
fn settle() {
    std::thread::sleep(Duration::from_millis(35));
}

/// Saves if there is a change, and returns the current checkpoint.
fn save(ws: &TestWorkspace) -> backtrail::Checkpoint {
    ws.save_with(&SaveRequest::default()).checkpoint
}

fn cache_file(ws: &TestWorkspace) -> PathBuf {
    ws.store().join("backtrail/stat-cache")
}

fn tree_of(store: &std::path::Path, id: &backtrail::CheckpointId) -> String {
    let tree = git(store, &["rev-parse", &format!("{id}^{{tree}}")]);
    String::from_utf8(tree).unwrap().trim().to_owned()
}

/// Returns the tree of a save without the cache. It saves into a copy of the store, because the paths that `@` holds
/// stay captured.
fn uncached_tree(ws: &TestWorkspace, number: usize) -> String {
    let store = ws.base().join(format!("copy-{number}"));
    if ws.stores().exists() {
        crate::diff::copy_tree(&ws.store(), &store);
        drop(std::fs::remove_file(store.join("backtrail/stat-cache")));
    }
    let location = backtrail::locate(&Start::At(ws.root()), &ws.stores(), Some(&store)).unwrap();
    let git = GitEnvironment {
        home: Some(ws.home()),
        config_files: vec![ws.home().join(".gitconfig")],
        default_excludes: None,
    };
    let settings = Settings::default().with_workspace(&ws.root()).unwrap();
    let workspace = Workspace::new(location, Options { settings, git, ..Options::default() });
    let saved = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    tree_of(&store, &saved.checkpoint.id)
}

/// Checks that a save with the cache has the same tree as a save without it, modes included.
#[track_caller]
fn assert_save_is_exact(ws: &TestWorkspace, number: usize, what: &str) {
    let expected = uncached_tree(ws, number);
    let saved = ws.save_with(&SaveRequest::default());
    let tree = tree_of(&ws.store(), &saved.checkpoint.id);
    assert_eq!(tree, expected, "{what}: the tree with the cache, and without");
    let with_cache = ws.open().status(None).unwrap().changes;
    assert_eq!(with_cache, [], "{what}: status with the cache");
    let cache = std::fs::read(cache_file(ws)).unwrap();
    std::fs::remove_file(cache_file(ws)).unwrap();
    let without_cache = ws.open().status(None).unwrap().changes;
    assert_eq!(without_cache, [], "{what}: status without the cache");
    std::fs::write(cache_file(ws), cache).unwrap();
}

#[test]
fn an_edit_that_keeps_size_and_mtime_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    ws.write("d/b", "same");
    settle();
    ws.save();
    ws.save_with(&SaveRequest::default());
    let mtime = std::fs::metadata(ws.path("d/a")).unwrap().modified().unwrap();
    ws.write("d/a", "new");
    File::options().write(true).open(ws.path("d/a")).unwrap().set_modified(mtime).unwrap();
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("d/a")]);
    assert!(ws.is_in_store(b"new"));
}

#[test]
fn a_file_replaced_by_another_of_the_same_size_and_mtime_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("a", "old");
    ws.write(".other/a", "new");
    let mtime = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for name in ["a", ".other/a"] {
        File::options().write(true).open(ws.path(name)).unwrap().set_modified(mtime).unwrap();
    }
    settle();
    ws.save();
    ws.rename(".other/a", "a");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["a"]);
    assert_eq!(ws.tree_in_store(&saved.id)[0].2, backtrail_testkit::blob_id(b"new"));
}

#[test]
fn an_edit_right_after_a_save_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "000");
    ws.save();
    for number in 1..40 {
        let text = format!("{number:03}");
        ws.write("d/a", &text);
        let saved = ws.save();
        assert_eq!(ws.open().show(&saved.id).unwrap().changes.len(), 1);
        let mut held = Vec::new();
        let take = &mut |bytes: &[u8]| {
            held.extend_from_slice(bytes);
            Ok(())
        };
        ws.open().cat(&saved.id, &ws.workspace_path("d/a"), take).unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&held), text);
    }
}

#[test]
fn a_file_that_is_added_or_removed_right_after_a_save_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("d/keep", "1");
    ws.save();
    for number in 0..15 {
        let name = format!("d/{number}");
        ws.write(&name, "");
        assert_eq!(ws.save().files_changed, [ws.workspace_path(&name)]);
        ws.remove(&name);
        assert_eq!(ws.save().files_changed, [ws.workspace_path(&name)]);
    }
}

#[test]
fn a_damaged_cache_costs_only_time() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    for name in ["a", "b.log", "d/a", "d/b", "d/e/f", "g/h"] {
        ws.write(name, name);
    }
    ws.write_mode("x", "x", 0o755);
    ws.symlink("a", "link");
    settle();
    ws.save();
    // The second save appends to the cache.
    ws.write("d/a", "more");
    settle();
    ws.save();
    let sound = std::fs::read(cache_file(&ws)).unwrap();
    let mut random = Random::new(7);
    let mut damages: Vec<(String, Vec<u8>)> = vec![
        ("empty".into(), Vec::new()),
        ("garbage".into(), random.bytes(5_000)),
        ("header and garbage".into(), [&sound[..40], &random.bytes(900)].concat()),
        ("all ones".into(), vec![0xff; sound.len()]),
        ("twice".into(), [sound.as_slice(), &sound].concat()),
    ];
    for _ in 0..12 {
        let end = random.below(sound.len());
        damages.push((format!("cut at {end}"), sound[..end].to_vec()));
    }
    for _ in 0..40 {
        let mut bytes = sound.clone();
        let position = random.below(bytes.len());
        bytes[position] ^= 1 << random.below(8);
        damages.push((format!("a bit of byte {position} flipped"), bytes));
    }
    ws.write("d/b", "DIF");
    ws.remove("g/h");
    let expected = [ws.workspace_path("d/b"), ws.workspace_path("g/h")];
    for (what, bytes) in damages {
        std::fs::write(cache_file(&ws), bytes).unwrap();
        let changes = ws.open().status(None).unwrap_or_else(|error| panic!("{what}: {error}")).changes;
        let paths: Vec<_> = changes.into_iter().map(|change| change.path).collect();
        assert_eq!(paths, expected, "{what}");
    }
    std::fs::write(cache_file(&ws), &sound[..sound.len() / 2]).unwrap();
    assert_save_is_exact(&ws, 0, "cut in half");
}

/// Each flip is in the cache that the save before it wrote.
#[test]
fn a_flipped_byte_in_the_cache_never_changes_a_checkpoint() {
    let ws = TestWorkspace::new();
    for name in ["a", "d/a", "d/b", "d/e/f", "g/h/i", "g/h/j", "k/l"] {
        ws.write(name, name);
    }
    settle();
    ws.save();
    let names = ws.paths_in_store(&ws.save_with(&SaveRequest::default()).checkpoint.id);
    let mut random = Random::new(11);
    for round in 0..60 {
        let mut bytes = std::fs::read(cache_file(&ws)).unwrap();
        // The rest of the header is zeros.
        let positions = (0..200).chain(4096..bytes.len()).collect::<Vec<_>>();
        let position = random.pick(&positions);
        bytes[position] ^= 1 << random.below(8);
        std::fs::write(cache_file(&ws), &bytes).unwrap();
        let changed = random.pick(&["d/b", "g/h/j", "k/l"]);
        ws.write(changed, format!("{round}"));
        let saved = ws.save_with(&SaveRequest::default()).checkpoint;
        assert_eq!(ws.paths_in_store(&saved.id), names, "round {round}, byte {position}");
        assert_eq!(saved.files_changed, [ws.workspace_path(changed)], "round {round}, byte {position}");
        assert_eq!(
            ws.store_git(&["cat-file", "-p", &format!("{}:{changed}", saved.id)]),
            format!("{round}").as_bytes()
        );
        assert_eq!(ws.open().status(None).unwrap().changes, [], "round {round}, byte {position}");
    }
}

#[test]
fn a_restore_of_a_directory_reads_only_the_records_on_the_way_to_it() {
    let ws = TestWorkspace::new();
    for directory in 0..80 {
        for file in 0..20 {
            ws.write(format!("top/d{directory}/file-{file}"), format!("{directory} {file}"));
        }
    }
    settle();
    ws.save();
    settle();
    ws.write("top/d7/file-3", "edited");
    let id = ws.open().current().unwrap().unwrap();
    let scope = backtrail::Scope::of_paths(vec![ws.workspace_path("top/d7")]);
    let request = backtrail::RestoreRequest { scope, ..backtrail::RestoreRequest::whole(id) };
    backtrail::disk::read_counts::forget(&cache_file(&ws));
    let plan = ws.open().plan_restore(&request).unwrap();
    let read = backtrail::disk::read_counts::bytes_read(&cache_file(&ws));
    let whole = std::fs::metadata(cache_file(&ws)).unwrap().len();
    assert_eq!(plan.changes.len(), 1);
    assert!(read > 0 && read < whole / 8, "{read} bytes of {whole}");
    // A save of everything reads the file once.
    backtrail::disk::read_counts::forget(&cache_file(&ws));
    ws.save_with(&SaveRequest::default());
    let read = backtrail::disk::read_counts::bytes_read(&cache_file(&ws));
    assert!(read >= whole / 2, "{read} bytes of {whole}");
}

#[test]
fn a_save_without_a_change_leaves_the_cache_as_it_is() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    for name in ["a", "b.log", "d/a", "d/e/f", "hollow/x.log"] {
        ws.write(name, name);
    }
    settle();
    ws.save();
    let stamp = || {
        let data = std::fs::metadata(cache_file(&ws)).unwrap();
        (data.ino(), data.mtime_nsec(), data.len())
    };
    let before = stamp();
    settle();
    assert!(!ws.save_with(&SaveRequest::default()).created);
    assert_eq!(stamp(), before);
    ws.write("d/e/f", "2");
    ws.save();
    assert_eq!(stamp().0, before.0, "one edit is appended to the same file");
}

#[test]
fn the_cache_does_not_grow_without_limit() {
    let ws = TestWorkspace::new();
    for number in 0..200 {
        ws.write(format!("d{number}/a"), "1");
    }
    ws.save();
    let first = std::fs::metadata(cache_file(&ws)).unwrap().len();
    for number in 0..60 {
        ws.write(format!("d{number}/a"), format!("edit {number}"));
        ws.save();
        let length = std::fs::metadata(cache_file(&ws)).unwrap().len();
        assert!(length < first + (70 << 10), "{length} bytes after {number} edits, {first} at first");
    }
    assert_save_is_exact(&ws, 0, "after many edits");
}

#[test]
fn a_cache_of_another_workspace_is_not_used() {
    let other = TestWorkspace::new();
    let ws = TestWorkspace::new();
    for workspace in [&other, &ws] {
        workspace.write("a", "1");
        workspace.write("d/b", "1");
    }
    settle();
    other.save();
    ws.save();
    std::fs::copy(cache_file(&other), cache_file(&ws)).unwrap();
    ws.write("d/b", "2");
    assert_save_is_exact(&ws, 0, "a foreign cache");
    assert!(ws.is_in_store(b"2"));
}

#[test]
fn a_change_of_the_global_excludes_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("a.tmp", "1");
    ws.write("d/b.tmp", "1");
    ws.write("d/c", "1");
    settle();
    ws.save();
    ws.save_with(&SaveRequest::default());
    std::fs::write(ws.home().join("excludes"), "*.tmp\n").unwrap();
    std::fs::write(ws.home().join(".gitconfig"), "[core]\nexcludesFile = ~/excludes\n").unwrap();
    ws.write("d/new.tmp", "1");
    let saved = save(&ws);
    assert_eq!(ws.paths_in_store(&saved.id), ["a.tmp", "d/b.tmp", "d/c"]);
    settle();
    ws.save_with(&SaveRequest::default());
    std::fs::write(ws.home().join("excludes"), "c\n").unwrap();
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["a.tmp", "d/b.tmp", "d/c", "d/new.tmp"]);
}

#[test]
fn a_change_of_info_exclude_and_of_the_settings_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("d/b.tmp", "1");
    ws.write("d/c", "1");
    ws.git(&["init", "-q"]);
    settle();
    ws.save();
    std::fs::create_dir_all(ws.root().join(".git/info")).unwrap();
    std::fs::write(ws.root().join(".git/info/exclude"), "*.tmp\n").unwrap();
    ws.write("d/new.tmp", "1");
    assert_eq!(ws.paths_in_store(&save(&ws).id), ["d/b.tmp", "d/c"]);
    settle();
    ws.save_with(&SaveRequest::default());
    ws.write("backtrail.toml", "[scan]\nexclude = [\"e\"]\n");
    ws.write("d/e", "1");
    assert_eq!(ws.paths_in_store(&ws.save().id), ["backtrail.toml", "d/b.tmp", "d/c"]);
    settle();
    ws.save_with(&SaveRequest::default());
    ws.write("backtrail.toml", "[scan]\ninclude = [\"*.tmp\"]\nmax_file_bytes = 1\n");
    assert_eq!(ws.paths_in_store(&ws.save().id), ["backtrail.toml", "d/b.tmp", "d/c", "d/e", "d/new.tmp"]);
}

#[test]
fn a_directory_replaced_in_place_is_read_again() {
    let ws = TestWorkspace::new();
    let outside = ws.outside();
    for (base, text) in [(ws.root().join("d"), "old"), (outside.join("d"), "new")] {
        std::fs::create_dir_all(base.join("e")).unwrap();
        for name in ["a", "e/b"] {
            std::fs::write(base.join(name), text).unwrap();
            let file = File::options().write(true).open(base.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
        }
    }
    settle();
    ws.save();
    ws.save_with(&SaveRequest::default());
    std::fs::rename(ws.root().join("d"), outside.join("old")).unwrap();
    std::fs::rename(outside.join("d"), ws.root().join("d")).unwrap();
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("d/a"), ws.workspace_path("d/e/b")]);
    assert_save_is_exact(&ws, 0, "replaced");
    // Back again, with the cache of the other directory.
    settle();
    ws.save_with(&SaveRequest::default());
    std::fs::rename(ws.root().join("d"), outside.join("d")).unwrap();
    std::fs::rename(outside.join("old"), ws.root().join("d")).unwrap();
    assert_save_is_exact(&ws, 1, "put back");
}

#[test]
fn two_swapped_directories_are_read_again() {
    let ws = TestWorkspace::new();
    ws.write("one/a", "1");
    ws.write("two/a", "2");
    settle();
    ws.save();
    ws.rename("one", "three");
    ws.rename("two", "one");
    ws.rename("three", "two");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("one/a"), ws.workspace_path("two/a")]);
    assert_save_is_exact(&ws, 0, "swapped");
}

#[test]
fn a_write_through_a_hard_link_outside_is_seen() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    std::fs::hard_link(ws.path("d/a"), ws.outside().join("a")).unwrap();
    settle();
    ws.save();
    ws.save_with(&SaveRequest::default());
    std::fs::write(ws.outside().join("a"), "new").unwrap();
    assert_eq!(ws.save().files_changed, [ws.workspace_path("d/a")]);
}

const NAMES: [&str; 6] = ["a", "b", "c.log", "d", "e", "sub"];

fn some_path(random: &mut Random) -> String {
    let depth = random.below(3) + 1;
    (0..depth).map(|_| random.pick(&NAMES)).collect::<Vec<_>>().join("/")
}

fn existing(ws: &TestWorkspace, random: &mut Random, wanted: fn(&std::fs::Metadata) -> bool) -> Option<Vec<u8>> {
    let paths: Vec<Vec<u8>> = ws.manifest().0.into_keys().collect();
    let fitting: Vec<&Vec<u8>> =
        paths.iter().filter(|path| std::fs::symlink_metadata(ws.path(path)).is_ok_and(|data| wanted(&data))).collect();
    (!fitting.is_empty()).then(|| random.pick(&fitting).clone())
}

/// Makes a random change to the workspace. Returns its description.
fn mutate(ws: &TestWorkspace, random: &mut Random) -> String {
    let text = |random: &mut Random| format!("{}", random.below(4));
    match random.below(14) {
        0..=2 => {
            let path = some_path(random);
            let above: Vec<&str> = path.split('/').collect();
            for end in 1..above.len() {
                let parent = above[..end].join("/");
                if std::fs::symlink_metadata(ws.path(&parent)).is_ok_and(|data| !data.is_dir()) {
                    ws.remove(&parent);
                }
            }
            if ws.exists(&path) {
                ws.remove(&path);
            }
            ws.write(&path, text(random));
            format!("wrote {path}")
        }
        3 | 4 => {
            let Some(path) = existing(ws, random, std::fs::Metadata::is_file) else { return String::new() };
            let mtime = std::fs::metadata(ws.path(&path)).unwrap().modified().unwrap();
            std::fs::write(ws.path(&path), text(random)).unwrap();
            File::options().write(true).open(ws.path(&path)).unwrap().set_modified(mtime).unwrap();
            format!("edited {} with its mtime kept", String::from_utf8_lossy(&path))
        }
        5 => {
            let Some(path) = existing(ws, random, |_| true) else { return String::new() };
            ws.remove(&path);
            format!("removed {}", String::from_utf8_lossy(&path))
        }
        6 | 7 => {
            let Some(from) = existing(ws, random, |_| true) else { return String::new() };
            let from = String::from_utf8(from).unwrap();
            let to = random.pick(&NAMES);
            if from.split('/').next() == Some(to) {
                return String::new();
            }
            if ws.exists(to) {
                ws.remove(to);
            }
            ws.rename(&from, to);
            format!("moved {from} to {to}")
        }
        8 => {
            let Some(path) = existing(ws, random, |data| !data.is_symlink()) else { return String::new() };
            let mode = random.pick(&[0o644, 0o600, 0o755, 0o700, 0o775, 0o1755]);
            let is_directory = ws.path(&path).is_dir();
            ws.chmod(&path, if is_directory { mode | 0o700 } else { mode });
            format!("chmod {mode:o} {}", String::from_utf8_lossy(&path))
        }
        9 => {
            let name = random.pick(&NAMES);
            if ws.exists(name) {
                ws.remove(name);
            }
            let target = random.pick(&NAMES);
            ws.symlink(target, name);
            format!("linked {name} to {target}")
        }
        10 => {
            let rules = random.pick(&["*.log\n", "", "sub/\n", "a\n!a\n", "*\n!*/\n!b\n", "/d\n"]);
            let place = match existing(ws, random, std::fs::Metadata::is_dir) {
                Some(directory) if random.chance(40) => format!("{}/.gitignore", String::from_utf8_lossy(&directory)),
                _ => ".gitignore".to_owned(),
            };
            if ws.exists(&place) {
                ws.remove(&place);
            }
            ws.write(&place, rules);
            format!("rules {rules:?} in {place}")
        }
        11 => {
            let path = format!("{}-dir/inner", random.pick(&NAMES));
            ws.mkdir(&path);
            format!("made {path}")
        }
        12 => {
            let rules = random.pick(&["e\n", "", "*.log\n"]);
            std::fs::write(ws.home().join("excludes"), rules).unwrap();
            std::fs::write(ws.home().join(".gitconfig"), "[core]\nexcludesFile = ~/excludes\n").unwrap();
            format!("global excludes {rules:?}")
        }
        _ => {
            let Some(path) = existing(ws, random, std::fs::Metadata::is_file) else { return String::new() };
            let path = String::from_utf8(path).unwrap();
            let command = random.pick(&["add", "rm"]);
            let arguments = if command == "add" {
                vec!["add", "-f", &path]
            } else {
                vec!["rm", "-q", "-r", "--cached", "--ignore-unmatch", &path]
            };
            // Git refuses a path behind a link, or one that clashes with another entry. Then it tracks nothing new.
            let done = backtrail_testkit::git_output(&ws.root(), &arguments).status.success();
            format!("git {command} {path}: {done}")
        }
    }
}

fn random_changes(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Random::new(seed);
        let ws = TestWorkspace::new();
        ws.write("a", "0");
        ws.git(&["init", "-q"]);
        let mut log = Vec::new();
        for step in 0..20 {
            for _ in 0..random.below(4) + 1 {
                log.push(mutate(&ws, &mut random));
            }
            if random.chance(35) {
                settle();
                log.push("settled".into());
            }
            if random.chance(20) {
                drop(ws.open().status(None).unwrap());
            }
            log.push(format!("-- save {step}"));
            assert_save_is_exact(&ws, step, &format!("seed {seed} after {log:#?}"));
        }
        ws.assert_store_is_sound();
    }
}

#[test]
fn after_random_changes_a_save_equals_a_save_without_the_cache() {
    random_changes(0..2);
}

#[test]
fn after_other_random_changes_a_save_equals_a_save_without_the_cache() {
    random_changes(2..4);
}
