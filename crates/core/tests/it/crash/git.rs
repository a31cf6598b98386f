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
    old_or_new_with_git(&prepared, &[Fault::Kill, Fault::Error(EIO)]);
}

/// HEAD and index lie in one place, the refs in another.
#[test]
fn so_is_one_in_a_linked_work_tree() {
    let prepared = || {
        let ws = crate::restore_git::in_linked_tree(false);
        crate::restore_git::two_commits_in_linked_tree(&ws);
        ws.write("file", "unsaved\n");
        ws
    };
    old_or_new_with_git(&prepared, &[Fault::Kill]);
}

fn old_or_new_with_git(prepared: &dyn Fn() -> TestWorkspace, faults: &[Fault]) {
    use crate::restore_git::standing;
    // A timestamp that the index holds differs from one workspace to the next: what git says of it does not.
    let of = |ws: &TestWorkspace| {
        let [head, _, refs, index, status] = standing(ws);
        let kinds = refs.lines().map(|line| line.split_whitespace().last().unwrap_or_default().to_owned());
        let subject = backtrail_testkit::git(&ws.root(), &["log", "--format=%s"]);
        (head, kinds.collect::<Vec<_>>(), index, status, subject, ws.manifest())
    };
    let probe = prepared();
    let old = of(&probe);
    let points = DRIVER.points(&probe.base(), "restore-with-git one");
    let new = of(&probe);
    assert!(points.iter().any(|point| point == "rename git file"), "{points:?}");
    let first = points.iter().position(|point| point.contains("git")).unwrap();
    for number in first..=points.len() {
        for &fault in faults {
            let what = format!("{fault:?} at point {number} ({})", points[number - 1]);
            let ws = prepared();
            let ended = DRIVER.run(&ws.base(), "restore-with-git one", number, fault);
            let recovered = ws.open().recover(Way::Forward, ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = of(&ws);
            let same = |wanted: &(String, Vec<String>, String, String, Vec<u8>, Manifest)| {
                (&wanted.0, &wanted.1, &wanted.2, &wanted.3, &wanted.4)
                    == (&found.0, &found.1, &found.2, &found.3, &found.4)
                    && wanted.5.differences(&found.5).is_empty()
            };
            assert!(same(&old) || same(&new), "{what}: {ended:?}, {recovered:?}: {:?}", (found.0, found.3, found.4));
            let told = |words: &[&str]| String::from_utf8(backtrail_testkit::git(&ws.root(), words)).unwrap();
            let git_dir = told(&["rev-parse", "--absolute-git-dir"]);
            let names = std::fs::read_dir(git_dir.trim()).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> = names
                .filter(|name| {
                    let name = name.to_string_lossy();
                    name.ends_with(".lock") || name.starts_with("backtrail-")
                })
                .collect();
            assert!(left.is_empty(), "{what}: {left:?} in the repository");
            assert_no_leftovers(&ws, &what);
        }
    }
}
