//! Restores that move the user's repository, killed at every point.

use super::*;

#[test]
fn a_restore_with_git_is_old_or_new_after_a_kill_at_every_point() {
    let prepared = || {
        let ws = TestWorkspace::new();
        crate::restore_git::two_commits_in(&ws);
        ws.write("file", "unsaved\n");
        ws
    };
    assert_old_or_new_with_git(&prepared, &[Fault::Kill, Fault::Error(EIO)]);
}

/// HEAD and the index are in one directory, the refs in another.
#[test]
fn a_restore_with_git_in_a_linked_worktree_is_old_or_new_after_a_kill_at_every_point() {
    let prepared = || {
        let ws = crate::restore_git::in_linked_tree(false);
        crate::restore_git::two_commits_in_linked_tree(&ws);
        ws.write("file", "unsaved\n");
        ws
    };
    assert_old_or_new_with_git(&prepared, &[Fault::Kill]);
}

fn assert_old_or_new_with_git(prepared: &dyn Fn() -> TestWorkspace, faults: &[Fault]) {
    use crate::restore_git::standing;
    // The index holds timestamps that differ between workspaces, so compare git's listing of it instead of its bytes.
    let state_of = |ws: &TestWorkspace| {
        let [head, _, refs, index, status] = standing(ws);
        let ref_names = refs.lines().map(|line| line.split_whitespace().last().unwrap_or_default().to_owned());
        let subject = backtrail_testkit::git(&ws.root(), &["log", "--format=%s"]);
        (head, ref_names.collect::<Vec<_>>(), index, status, subject, ws.manifest())
    };
    let probe = prepared();
    let old = state_of(&probe);
    let points = DRIVER.points(&probe.base(), "restore-with-git one");
    let new = state_of(&probe);
    assert!(points.iter().any(|point| point == "rename git file"), "{points:?}");
    let first = points.iter().position(|point| point.contains("git")).unwrap();
    for number in first..=points.len() {
        for &fault in faults {
            let what = format!("{fault:?} at point {number} ({})", points[number - 1]);
            let ws = prepared();
            let ended = DRIVER.run(&ws.base(), "restore-with-git one", number, fault);
            let recovered = ws.open().recover(Way::Forward, ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = state_of(&ws);
            let same = |wanted: &(String, Vec<String>, String, String, Vec<u8>, Manifest)| {
                (&wanted.0, &wanted.1, &wanted.2, &wanted.3, &wanted.4)
                    == (&found.0, &found.1, &found.2, &found.3, &found.4)
                    && wanted.5.differences(&found.5).is_empty()
            };
            assert!(same(&old) || same(&new), "{what}: {ended:?}, {recovered:?}: {:?}", (found.0, found.3, found.4));
            let output_of = |words: &[&str]| String::from_utf8(backtrail_testkit::git(&ws.root(), words)).unwrap();
            let git_dir = output_of(&["rev-parse", "--absolute-git-dir"]);
            let names = std::fs::read_dir(git_dir.trim()).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> = names
                .filter(|name| {
                    let name = name.to_string_lossy();
                    name.ends_with(".lock") || name.starts_with("backtrail-")
                })
                .collect();
            assert!(left.is_empty(), "{what}: {left:?} left in the repository");
            assert_no_leftovers(&ws, &what);
        }
    }
}
