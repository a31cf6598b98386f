//! Whenever the watcher can't be certain, everything is scanned.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    time::Duration,
};

use backtrail::{RestoreRequest, SaveRequest, WatchRequest};
use backtrail_testkit::{TestWorkspace, git};

use super::{RunningWatcher, assert_save_is_exact, report, save, wait_until, without_watcher};

fn fallbacks(ws: &TestWorkspace, reason: &str) -> u64 {
    report(ws).fallbacks.get(reason).copied().unwrap_or_default()
}

#[test]
fn a_restarted_watcher_does_not_know_what_happened_before() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    let first = RunningWatcher::start(&ws);
    save(&ws);
    first.stop();
    ws.write("d/a", "2");
    let _second = RunningWatcher::start(&ws);
    assert_save_is_exact(&ws, "an edit between two watchers");
    assert_eq!(fallbacks(&ws, "restarted"), 1);
    ws.write("d/a", "3");
    assert_save_is_exact(&ws, "an edit under the second");
    assert_eq!(fallbacks(&ws, "restarted"), 1);
}

#[test]
fn a_stat_cache_of_another_moment_is_not_combined_with_an_answer() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    ws.write("e/b", "1");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    let file = ws.store().join("backtrail/stat-cache");
    let old = std::fs::read(&file).unwrap();
    ws.write("d/a", "2");
    save(&ws);
    // The token says that nothing changed since; the cache says what was before.
    std::fs::write(&file, old).unwrap();
    assert_save_is_exact(&ws, "an old stat cache");
    assert_eq!(save(&ws).files_changed, [ws.workspace_path("d/a")]);
}

#[test]
fn a_hard_link_shows_a_write_through_its_other_name() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    ws.write("e/x", "x");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    // The directory `d` has no event, and its file has another name from now on.
    std::fs::hard_link(ws.path("d/a"), ws.path("e/b")).unwrap();
    assert_save_is_exact(&ws, "a new hard link");
    assert_eq!(fallbacks(&ws, "hard_links"), 1);
    // Once more if the link was made while the last scan ran, as far as the stamps tell.
    save(&ws);
    save(&ws);
    ws.write("e/b", "through the other name");
    assert_save_is_exact(&ws, "a write through the other name");
    assert_eq!(ws.tree_in_store(&save(&ws).id)[0].2, backtrail_testkit::blob_id(b"through the other name"));
}

#[test]
fn rules_from_outside_the_tree_apply_at_once() {
    let ws = TestWorkspace::new();
    ws.write("d/a.log", "1");
    ws.write("d/keep", "1");
    ws.git_init();
    ws.remove("d/a.log");
    ws.git(&["add", "-A"]);
    ws.git(&["commit", "-qm", "without"]);
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    std::fs::write(ws.root().join(".git/info/exclude"), "*.log\n").unwrap();
    ws.write("d/a.log", "1");
    let held = save(&ws);
    assert!(!ws.paths_in_store(&held.id).contains(&"d/a.log".to_owned()));
    std::fs::write(ws.root().join(".git/info/exclude"), "").unwrap();
    let saved = assert_save_is_exact(&ws, "a rule that is gone");
    assert!(ws.paths_in_store(&saved.id).contains(&"d/a.log".to_owned()));
}

#[test]
fn a_file_that_git_begins_to_track_is_captured() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.out\n");
    ws.write("d/a.out", "built");
    ws.write("sub/b.out", "built");
    ws.git_init();
    git(&ws.path("sub"), &["init", "-q"]);
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    ws.git(&["add", "-f", "d/a.out"]);
    let saved = assert_save_is_exact(&ws, "the index of the repository");
    assert!(ws.paths_in_store(&saved.id).contains(&"d/a.out".to_owned()));
    git(&ws.path("sub"), &["add", "-f", "b.out"]);
    let saved = assert_save_is_exact(&ws, "the index of a repository inside");
    assert!(ws.paths_in_store(&saved.id).contains(&"sub/b.out".to_owned()));
}

#[test]
fn an_ignored_directory_is_captured_once_its_rule_is_gone() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "build/\n");
    ws.write("build/deep/a", "1");
    ws.write("src/b", "1");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    assert_eq!(report(&ws).directories, 2, "what checkpoints skip is not watched");
    ws.write(".gitignore", "");
    let saved = assert_save_is_exact(&ws, "a rule that is gone");
    assert!(ws.paths_in_store(&saved.id).contains(&"build/deep/a".to_owned()));
    ws.write("build/deep/a", "2");
    let saved = assert_save_is_exact(&ws, "an edit in a directory that is not watched");
    assert!(ws.is_in_store(b"2"), "{}", saved.id);
    ws.write("build/deep/new/c", "3");
    assert_save_is_exact(&ws, "a new directory there");
}

#[test]
fn a_directory_that_becomes_readable_is_captured() {
    if nix_is_root() {
        println!("skipped: root reads everything");
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("d/closed/a", "1");
    ws.chmod("d/closed", 0o000);
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    ws.chmod("d/closed", 0o755);
    assert_save_is_exact(&ws, "a directory that was opened");
    ws.write("d/closed/a", "2");
    assert_save_is_exact(&ws, "an edit in it");
    assert!(ws.is_in_store(b"2"));
}

fn nix_is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

#[test]
fn directories_that_are_moved_and_swapped_stay_watched() {
    let ws = TestWorkspace::new();
    ws.write("a/one/x", "1");
    ws.write("b/two/y", "1");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    ws.rename("a/one", "b/one");
    assert_save_is_exact(&ws, "moved inside");
    ws.write("b/one/x", "2");
    assert_save_is_exact(&ws, "an edit in what was moved");
    let outside = ws.outside().join("elsewhere");
    std::fs::rename(ws.path("b/two"), &outside).unwrap();
    assert_save_is_exact(&ws, "moved out");
    std::fs::write(outside.join("y"), "2").unwrap();
    std::fs::create_dir(outside.join("deep")).unwrap();
    std::fs::write(outside.join("deep/z"), "3").unwrap();
    std::fs::rename(&outside, ws.path("a/two")).unwrap();
    assert_save_is_exact(&ws, "moved in");
    ws.write("a/two/deep/z", "4");
    assert_save_is_exact(&ws, "an edit in what was moved in");
    rustix_exchange(&ws, "a/two", "b/one");
    assert_save_is_exact(&ws, "swapped");
    ws.write("a/two/x", "5");
    ws.write("b/one/deep/z", "6");
    assert_save_is_exact(&ws, "edits in what was swapped");
    assert!(ws.is_in_store(b"5") && ws.is_in_store(b"6"));
}

fn rustix_exchange(ws: &TestWorkspace, one: &str, other: &str) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, ws.path(one), CWD, ws.path(other), RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn a_symlink_to_a_directory_is_not_followed() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    std::fs::create_dir(ws.outside().join("far")).unwrap();
    symlink(ws.outside().join("far"), ws.path("link")).unwrap();
    assert_save_is_exact(&ws, "a link");
    let before = report(&ws).directories;
    std::fs::write(ws.outside().join("far/b"), "1").unwrap();
    assert_save_is_exact(&ws, "a change behind a link");
    assert_eq!((before, report(&ws).directories), (2, 2));
}

#[test]
fn a_restore_and_a_rewind_are_seen_by_the_next_save() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("d/a", "1");
    let _watcher = RunningWatcher::start(&ws);
    let first = save(&ws);
    ws.write("d/a", "2");
    ws.write("e/b", "2");
    save(&ws);
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_save_is_exact(&ws, "after a restore");
    assert_eq!(ws.manifest().0.len(), 3);
    ws.open().undo(ws.now()).unwrap();
    assert_save_is_exact(&ws, "after its undo");
    ws.write("d/a", "3");
    assert_save_is_exact(&ws, "after an edit");
}

#[test]
fn a_mode_that_changes_is_saved() {
    let ws = TestWorkspace::new();
    ws.write("d/sub/a", "1");
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    ws.chmod("d/sub/a", 0o600);
    assert_eq!(assert_save_is_exact(&ws, "of a file").files_changed.len(), 1);
    ws.chmod("d/sub", 0o700);
    assert_save_is_exact(&ws, "of a directory");
    let mode = std::fs::metadata(ws.path("d/sub")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// The kernel reports nothing about a write through a name outside of the workspace.
#[test]
fn a_full_scan_finds_what_no_event_reported_and_the_next_save_has_it() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    ws.write("e/b", "1");
    let request = WatchRequest { compare_every: Duration::from_millis(20), ..WatchRequest::new(ws.now()) };
    let _watcher = RunningWatcher::start_with(ws.open(), request);
    save(&ws);
    std::fs::hard_link(ws.path("d/a"), ws.outside().join("a")).unwrap();
    std::fs::write(ws.outside().join("a"), "through another name").unwrap();
    let mut number = 0;
    wait_until("the change was counted", || {
        number += 1;
        // The scans run only while there is activity.
        ws.write("e/b", format!("{number}"));
        save(&ws);
        report(&ws).missed > 0
    });
    assert_save_is_exact(&ws, "after the full scan");
    assert!(ws.is_in_store(b"through another name"));
}

#[test]
fn many_savers_at_once_agree_with_a_full_scan() {
    let ws = TestWorkspace::new();
    for number in 0..20 {
        ws.write(format!("d{number}/a"), "1");
    }
    let _watcher = RunningWatcher::start(&ws);
    save(&ws);
    for round in 0..3 {
        std::thread::scope(|scope| {
            for number in 0..20 {
                let (base, now) = (ws.base(), ws.now());
                scope.spawn(move || {
                    let ws = TestWorkspace::attach(&base);
                    let text = format!("{round} {number}");
                    ws.write(format!("d{number}/a"), &text);
                    let patient = backtrail::Options { patience: Duration::from_secs(240), ..Default::default() };
                    let workspace = ws.open_as(&ws.root(), patient);
                    workspace.save(&SaveRequest::default(), now).unwrap();
                    assert!(ws.is_in_store(text.as_bytes()), "what was written before a save is in the store");
                });
            }
        });
        assert_eq!(without_watcher(&ws).status(None).unwrap().changes, []);
    }
}
