//! `restore --git`: HEAD, branch and index move back with the files, and plain git accepts the result.

use backtrail::{Checkpoint, ErrorCode, RestoreOutcome, RestoreRequest, SaveRequest};
use backtrail_testkit::{Manifest, TestWorkspace, git, git_directory_bytes};

/// Creates a repository with two commits. Returns a checkpoint that was taken at the first, with an uncommitted edit.
pub(crate) fn two_commits_in(ws: &TestWorkspace) -> Checkpoint {
    ws.git_init();
    ws.write("file", "1\n");
    ws.write("dir/other", "1\n");
    ws.write("gone", "1\n");
    commit(ws, "first");
    ws.write("file", "edited, not committed\n");
    let request = SaveRequest { name: Some("one".into()), ..SaveRequest::default() };
    let saved = ws.save_with(&request).checkpoint;
    ws.write("file", "2\n");
    ws.write("new", "2\n");
    ws.remove("gone");
    commit(ws, "second");
    saved
}

fn two_commits() -> (TestWorkspace, Checkpoint) {
    let ws = TestWorkspace::new();
    let saved = two_commits_in(&ws);
    (ws, saved)
}

pub(crate) fn commit(ws: &TestWorkspace, message: &str) {
    git(&ws.root(), &["add", "-A"]);
    git(&ws.root(), &["commit", "-q", "-m", message]);
}

fn ask(ws: &TestWorkspace, words: &[&str]) -> String {
    String::from_utf8(git(&ws.root(), words)).unwrap().trim().to_owned()
}

fn with_git(to: &Checkpoint) -> RestoreRequest {
    RestoreRequest { git: true, ..RestoreRequest::whole(to.id) }
}

fn restore(ws: &TestWorkspace, to: &Checkpoint) -> RestoreOutcome {
    ws.open().restore(&with_git(to), ws.now()).unwrap()
}

/// Returns git's own view of the repository: HEAD, commit, branches, index and status.
pub(crate) fn standing(ws: &TestWorkspace) -> [String; 5] {
    let head = std::path::PathBuf::from(ask(ws, &["rev-parse", "--absolute-git-dir"])).join("HEAD");
    [
        std::fs::read_to_string(head).unwrap(),
        ask(ws, &["rev-parse", "HEAD"]),
        ask(ws, &["for-each-ref", "refs/heads"]),
        ask(ws, &["ls-files", "--stage"]),
        ask(ws, &["status", "--porcelain=v1"]),
    ]
}

/// Checks that the restore is refused and changes nothing. Returns the message.
fn refused(ws: &TestWorkspace, to: &Checkpoint) -> String {
    let before = (ws.manifest(), git_directory_bytes(&ws.path(".git")));
    let error = ws.open().restore(&with_git(to), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GitState, "{error}");
    before.0.assert_same(&ws.manifest(), "a refused restore");
    before.1.assert_same(&git_directory_bytes(&ws.path(".git")), "the repository after a refused restore");
    error.to_string()
}

#[test]
fn head_branch_and_index_move_as_in_a_mixed_reset() {
    let (ws, saved) = two_commits();
    let (first, second) = (ask(&ws, &["rev-parse", "HEAD~1"]), ask(&ws, &["rev-parse", "HEAD"]));
    let outcome = restore(&ws, &saved);
    let moved = outcome.git.unwrap();
    assert_eq!((moved.commit.as_deref(), moved.branch.as_deref()), (Some(first.as_str()), Some("main")));
    assert_eq!(ask(&ws, &["rev-parse", "HEAD"]), first);
    assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(ask(&ws, &["status", "--porcelain=v1"]), "M file");
    assert_eq!(ask(&ws, &["diff", "--cached", "--name-only"]), "");
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    // The index is the one that git itself would write.
    let ours = ask(&ws, &["ls-files", "--stage"]);
    git(&ws.root(), &["reset", "-q", "--mixed", "HEAD"]);
    assert_eq!(ask(&ws, &["ls-files", "--stage"]), ours);
    assert_eq!(ask(&ws, &["rev-parse", &format!("refs/backtrail/{second}")]), second);
    git(&ws.root(), &["gc", "-q", "--prune=now"]);
    git(&ws.root(), &["fsck", "--strict", "--full"]);
    assert_eq!(ask(&ws, &["cat-file", "-t", &second]), "commit");
    ws.assert_store_is_sound();
}

#[test]
fn undo_and_redo_move_the_repository() {
    let (ws, saved) = two_commits();
    ws.write("staged", "3\n");
    git(&ws.root(), &["add", "staged"]);
    ws.write("file", "unstaged\n");
    let before = (standing(&ws), ws.manifest(), std::fs::read(ws.path(".git/index")).unwrap());
    restore(&ws, &saved);
    let after = (standing(&ws), ws.manifest());
    assert_ne!(before.0, after.0);
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert!(std::fs::read(ws.path(".git/index")).unwrap() == before.2, "the index has exactly its old bytes");
    assert_eq!(standing(&ws), before.0);
    before.1.assert_same(&ws.manifest(), "undo");
    assert_eq!(ask(&ws, &["for-each-ref", "refs/backtrail"]), "", "no commit has to be kept any more");
    ws.open().redo(ws.now()).unwrap().unwrap();
    assert_eq!(standing(&ws), after.0);
    after.1.assert_same(&ws.manifest(), "redo");
}

#[test]
fn a_commit_made_after_the_restore_is_kept_by_undo() {
    let (ws, saved) = two_commits();
    restore(&ws, &saved);
    ws.write("late", "work\n");
    commit(&ws, "after the restore");
    let late = ask(&ws, &["rev-parse", "HEAD"]);
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ask(&ws, &["rev-parse", &format!("refs/backtrail/{late}")]), late);
    assert_eq!(ask(&ws, &["show", &format!("{late}:late")]), "work");
}

#[test]
fn a_restore_switches_to_the_recorded_branch_or_detached_head() {
    let (ws, saved) = two_commits();
    git(&ws.root(), &["checkout", "-q", "-b", "topic"]);
    ws.write("topic", "t\n");
    commit(&ws, "topic");
    let topic = ask(&ws, &["rev-parse", "topic"]);
    restore(&ws, &saved);
    assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(ask(&ws, &["rev-parse", "topic"]), topic, "the other branch stays where it is");

    git(&ws.root(), &["checkout", "-q", "-f", "--detach", "topic"]);
    let detached = ws.save();
    git(&ws.root(), &["checkout", "-q", "-f", "main"]);
    let outcome = restore(&ws, &detached);
    assert_eq!(outcome.git.unwrap().branch, None);
    assert_eq!(std::fs::read_to_string(ws.path(".git/HEAD")).unwrap().trim(), topic);
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn a_deleted_or_packed_branch_is_restored() {
    let (ws, saved) = two_commits();
    git(&ws.root(), &["checkout", "-q", "-b", "deep/er"]);
    git(&ws.root(), &["branch", "-q", "-D", "main"]);
    restore(&ws, &saved);
    assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ask(&ws, &["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/deep/er");

    let (ws, saved) = two_commits();
    git(&ws.root(), &["pack-refs", "--all"]);
    let before = standing(&ws);
    restore(&ws, &saved);
    assert_eq!(ask(&ws, &["rev-parse", "main"]), ask(&ws, &["rev-parse", "HEAD"]));
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(standing(&ws), before);
}

#[test]
fn files_stay_if_only_the_repository_has_to_move() {
    let (ws, saved) = two_commits();
    ws.write("file", "edited, not committed\n");
    ws.remove("new");
    ws.write("gone", "1\n");
    let files = ws.manifest();
    let outcome = restore(&ws, &saved);
    assert!(outcome.changes.is_empty() && outcome.git.is_some() && outcome.safety.is_some());
    files.assert_same(&ws.manifest(), "the files");
    assert_eq!(ask(&ws, &["log", "--format=%s"]), "first\nbase");
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ask(&ws, &["log", "--format=%s"]), "second\nfirst\nbase");
    // The repository is already there: nothing is left to do.
    restore(&ws, &saved);
    let again = restore(&ws, &saved);
    assert!(again.git.is_none() && again.safety.is_none());
}

#[test]
fn a_restore_is_refused_during_another_git_operation() {
    for (name, says) in [
        ("MERGE_HEAD", "merge"),
        ("rebase-merge/head-name", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("index.lock", "another git process"),
    ] {
        let (ws, saved) = two_commits();
        ws.write(format!(".git/{name}"), "x\n");
        let message = refused(&ws, &saved);
        assert!(message.contains(says), "{name}: {message}");
    }
}

/// Regression: the branch stayed, with only a warning, although the index had moved back.
#[test]
fn a_branch_that_another_git_process_locks_is_refused_before_anything_changes() {
    let (ws, saved) = two_commits();
    git(&ws.root(), &["checkout", "-q", "-b", "topic"]);
    for name in ["refs/heads/main.lock", "refs/heads/topic.lock"] {
        ws.write(format!(".git/{name}"), "");
        let message = refused(&ws, &saved);
        assert!(message.contains("another git process") && message.contains(name), "{message}");
        ws.remove(format!(".git/{name}"));
    }
    // A lock of packed-refs matters only if a packed ref is needed.
    ws.write(".git/packed-refs.lock", "");
    restore(&ws, &saved);
    ws.open().undo(ws.now()).unwrap().unwrap();
    ws.remove(".git/packed-refs.lock");
    git(&ws.root(), &["pack-refs", "--all"]);
    ws.write(".git/packed-refs.lock", "");
    assert!(refused(&ws, &saved).contains("packed-refs.lock"));
    ws.remove(".git/packed-refs.lock");
    restore(&ws, &saved);
    ws.write(".git/refs/heads/main.lock", "");
    let error = ws.open().undo(ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GitState, "{error}");
}

/// Takes a checkpoint on the branch `wanted`, deletes that branch, and creates the branch `other`, whose name may
/// conflict with it.
fn on_deleted_branch(wanted: &str, other: &str, is_packed: bool) -> (TestWorkspace, Checkpoint) {
    let ws = TestWorkspace::new();
    ws.git_init();
    git(&ws.root(), &["checkout", "-q", "-b", wanted]);
    ws.write("file", "1\n");
    let saved = ws.save();
    git(&ws.root(), &["checkout", "-q", "main"]);
    git(&ws.root(), &["branch", "-q", "-D", wanted]);
    git(&ws.root(), &["branch", "-q", other]);
    if is_packed {
        git(&ws.root(), &["pack-refs", "--all", "--prune"]);
    }
    ws.write("file", "2\n");
    commit(&ws, "second");
    (ws, saved)
}

/// Regression: a restore could leave a ref and a directory of refs with the same name, and git rejected the repository.
#[test]
fn a_branch_name_that_conflicts_with_another_branch_is_refused() {
    for (wanted, other) in [("x", "x/y"), ("x", "x/y/z"), ("x/y", "x"), ("x/y/z", "x")] {
        for is_packed in [false, true] {
            let (ws, saved) = on_deleted_branch(wanted, other, is_packed);
            let message = refused(&ws, &saved);
            assert!(message.contains(&format!("refs/heads/{other} ")), "{message}");
            git(&ws.root(), &["branch", "-q", "-D", other]);
            // Empty directories that are left of the other branch are removed, as git does.
            if wanted == "x" {
                ws.mkdir(".git/refs/heads/x/y/z");
            }
            restore(&ws, &saved);
            assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), format!("refs/heads/{wanted}"));
            git(&ws.root(), &["gc", "-q"]);
            git(&ws.root(), &["fsck", "--strict", "--full"]);
        }
    }
}

#[test]
fn branch_names_with_only_a_common_prefix_do_not_conflict() {
    let (ws, saved) = on_deleted_branch("x", "xy/z", true);
    git(&ws.root(), &["branch", "-q", "x.y"]);
    restore(&ws, &saved);
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ask(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
}

/// Creates a workspace that is a linked work tree of another repository, which is bare if `is_bare`.
pub(crate) fn in_linked_tree(is_bare: bool) -> TestWorkspace {
    let ws = TestWorkspace::new();
    let main = ws.outside().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "base"]);
    std::fs::remove_dir(ws.root()).unwrap();
    if is_bare {
        let bare = ws.outside().join("bare");
        git(&main, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        git(&bare, &["worktree", "add", "-q", ws.root().to_str().unwrap(), "main"]);
    } else {
        git(&main, &["worktree", "add", "-q", ws.root().to_str().unwrap(), "-b", "linked"]);
    }
    ws
}

/// Creates two commits in a linked work tree. Returns a checkpoint that was taken at the first.
pub(crate) fn two_commits_in_linked_tree(ws: &TestWorkspace) -> Checkpoint {
    ws.write("file", "1\n");
    ws.write("gone", "1\n");
    commit(ws, "first");
    ws.write("file", "edited, not committed\n");
    let saved = ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() }).checkpoint;
    ws.write("file", "2\n");
    ws.remove("gone");
    commit(ws, "second");
    saved
}

/// Regression: the branch of the work tree itself was mistaken for one that is checked out in another work tree.
#[test]
fn a_linked_work_tree_is_restored_and_other_work_trees_are_not_touched() {
    for is_bare in [false, true] {
        let ws = in_linked_tree(is_bare);
        let saved = two_commits_in_linked_tree(&ws);
        let main = ws.outside().join(if is_bare { "bare" } else { "main" });
        let others =
            || [git(&main, &["symbolic-ref", "HEAD"]), std::fs::read(main.join(".git/index")).unwrap_or_default()];
        let (before, untouched) = (standing(&ws), others());
        let outcome = restore(&ws, &saved);
        assert_eq!(outcome.conflicts, []);
        assert_eq!(outcome.git.unwrap().commit.unwrap(), ask(&ws, &["rev-parse", "HEAD"]));
        assert_eq!(ask(&ws, &["log", "--format=%s"]), "first\nbase");
        assert_eq!(ask(&ws, &["status", "--porcelain=v1"]), "M file");
        assert_eq!(ask(&ws, &["reflog", "-1", "--format=%gs"]), format!("backtrail: restore {}", saved.id.short()));
        assert_eq!(ask(&ws, &["rev-parse", &format!("refs/backtrail/{}", before[1])]), before[1]);
        ws.open().undo(ws.now()).unwrap().unwrap();
        assert_eq!(standing(&ws), before);
        ws.open().redo(ws.now()).unwrap().unwrap();
        assert_eq!(ask(&ws, &["log", "--format=%s"]), "first\nbase");
        assert_eq!(others(), untouched);
        git(&main, &["fsck", "--strict", "--full"]);
    }
    // A branch that is checked out in the main work tree is refused.
    let ws = in_linked_tree(false);
    let main = ws.outside().join("main");
    git(&main, &["checkout", "-q", "--detach"]);
    git(&ws.root(), &["checkout", "-q", "main"]);
    let saved = two_commits_in_linked_tree(&ws);
    git(&ws.root(), &["checkout", "-q", "linked"]);
    git(&main, &["checkout", "-q", "main"]);
    let error = ws.open().restore(&with_git(&saved), ws.now()).unwrap_err();
    assert!(error.code() == ErrorCode::GitState && error.to_string().contains("another work tree"), "{error}");
}

#[test]
fn a_commit_that_no_longer_exists_is_refused() {
    let (ws, saved) = two_commits();
    let first = ask(&ws, &["rev-parse", "HEAD~1"]);
    git(&ws.root(), &["checkout", "-q", "--orphan", "fresh"]);
    commit(&ws, "fresh start");
    git(&ws.root(), &["branch", "-q", "-D", "main"]);
    git(&ws.root(), &["reflog", "expire", "--expire=now", "--all"]);
    git(&ws.root(), &["gc", "-q", "--prune=now"]);
    let message = refused(&ws, &saved);
    assert!(message.contains(&first) && message.contains("no longer"), "{message}");
}

#[test]
fn unborn_and_missing_repositories_are_refused() {
    let ws = TestWorkspace::new();
    ws.write("file", "1\n");
    let without = ws.save();
    assert!(refused_without_repository(&ws, &without).contains("no git repository"));
    git(&ws.root(), &["init", "-q"]);
    let unborn = ws.save_with(&SaveRequest { allow_empty: true, ..Default::default() }).checkpoint;
    assert!(refused(&ws, &unborn).contains("first commit"));
    assert!(refused(&ws, &without).contains("no git repository when"));
}

fn refused_without_repository(ws: &TestWorkspace, to: &Checkpoint) -> String {
    let error = ws.open().restore(&with_git(to), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GitState, "{error}");
    error.to_string()
}

#[test]
fn a_branch_that_is_checked_out_in_another_work_tree_is_refused() {
    let (ws, saved) = two_commits();
    git(&ws.root(), &["checkout", "-q", "-b", "topic"]);
    let elsewhere = ws.outside().join("tree");
    git(&ws.root(), &["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
    let message = refused(&ws, &saved);
    assert!(message.contains("another work tree"), "{message}");
}

#[test]
fn a_restore_without_git_does_not_change_the_repository() {
    let (ws, saved) = two_commits();
    let before: Manifest = git_directory_bytes(&ws.path(".git"));
    ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&git_directory_bytes(&ws.path(".git")), "the repository");
}

#[test]
fn the_plan_names_the_branch_and_is_valid_only_for_an_unchanged_repository() {
    let (ws, saved) = two_commits();
    let plan = ws.open().plan_restore(&with_git(&saved)).unwrap();
    assert_eq!(plan.git().unwrap().branch.as_deref(), Some("main"));
    ws.write("file", "3\n");
    let other = ws.open().plan_restore(&with_git(&saved)).unwrap();
    assert_ne!(other.hash, plan.hash);
    ws.write("file", "2\n");
    git(&ws.root(), &["commit", "-q", "--allow-empty", "-m", "third"]);
    let request = RestoreRequest { plan: Some(plan.hash), ..with_git(&saved) };
    let error = ws.open().restore(&request, ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlanChanged);
}
