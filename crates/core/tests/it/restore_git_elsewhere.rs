//! `restore --git` where `.git` leads elsewhere: only a repository that names the workspace back is moved.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use backtrail::{Checkpoint, ErrorCode, RestoreRequest, SaveRequest};
use backtrail_testkit::{TestWorkspace, git, git_directory_bytes};

use crate::restore_git::{commit, in_linked_tree, standing, two_commits_in, two_commits_in_linked_tree};

fn with_git(to: &Checkpoint) -> RestoreRequest {
    RestoreRequest { git: true, ..RestoreRequest::whole(to.id) }
}

/// A workspace with a checkpoint, and another repository with the same commits, outside.
fn beside_another() -> (TestWorkspace, Checkpoint, PathBuf) {
    let ws = TestWorkspace::new();
    let saved = two_commits_in(&ws);
    let victim = ws.outside().join("victim");
    git(&ws.outside(), &["clone", "-q", ws.root().to_str().unwrap(), "victim"]);
    (ws, saved, victim)
}

fn take_away_git(ws: &TestWorkspace) {
    std::fs::rename(ws.path(".git"), ws.outside().join("own.git")).unwrap();
}

#[track_caller]
fn assert_refused(ws: &TestWorkspace, saved: &Checkpoint, others: &Path, word: &str) {
    let (files, before) = (ws.manifest(), git_directory_bytes(others));
    let error = ws.open().restore(&with_git(saved), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GitState, "{error}");
    assert!(error.to_string().contains(word), "{error}");
    before.assert_same(&git_directory_bytes(others), "the other repository");
    files.assert_same(&ws.manifest(), "the workspace");
}

/// An agent could write a `.git` file, and `restore --git` moved the branches of the repository that it named.
#[test]
fn a_git_file_that_leads_into_another_repository_is_refused() {
    let (ws, saved, victim) = beside_another();
    take_away_git(&ws);
    let victim = victim.join(".git");
    ws.write(".git", format!("gitdir: {}\n", victim.display()));
    assert_refused(&ws, &saved, &victim, "does not name this directory");
    // The files alone can be brought back.
    ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
}

#[test]
fn a_linked_git_directory_is_refused() {
    let (ws, saved, victim) = beside_another();
    take_away_git(&ws);
    let victim = victim.join(".git");
    symlink(&victim, ws.path(".git")).unwrap();
    assert_refused(&ws, &saved, &victim, "does not name this directory");
}

/// What an agent makes in the workspace may name it back; the repository that it claims to be of has to know it as well.
#[test]
fn a_made_up_work_tree_of_another_repository_is_refused() {
    let (ws, saved, victim) = beside_another();
    let victim = victim.join(".git");
    let common = format!("{}\n", victim.display());
    let own = ws.outside().join("own.git");
    take_away_git(&ws);
    let fake = ws.outside().join("fake");
    std::fs::create_dir(&fake).unwrap();
    std::fs::copy(own.join("HEAD"), fake.join("HEAD")).unwrap();
    std::fs::copy(own.join("index"), fake.join("index")).unwrap();
    std::fs::write(fake.join("commondir"), &common).unwrap();
    std::fs::write(fake.join("gitdir"), format!("{}\n", ws.path(".git").display())).unwrap();
    ws.write(".git", format!("gitdir: {}\n", fake.display()));
    assert_refused(&ws, &saved, &victim, "does not name this directory");
    // The same in a directory of its own.
    ws.remove(".git");
    std::fs::rename(&own, ws.path(".git")).unwrap();
    std::fs::write(ws.path(".git/commondir"), &common).unwrap();
    assert_refused(&ws, &saved, &victim, "does not name this directory");
}

#[test]
fn linked_directories_of_refs_and_logs_are_refused() {
    for linked in ["refs", "refs/heads", "logs", "logs/refs", "logs/refs/heads", "HEAD", "logs/HEAD", "refs/heads/main"]
    {
        let (ws, saved, victim) = beside_another();
        let (own, victim) = (ws.path(".git").join(linked), victim.join(".git"));
        std::fs::rename(&own, ws.outside().join("moved")).unwrap();
        symlink(victim.join(linked), &own).unwrap();
        assert_refused(&ws, &saved, &victim, linked);
    }
}

fn assert_moved(ws: &TestWorkspace, saved: &Checkpoint) {
    let before = standing(ws);
    let outcome = ws.open().restore(&with_git(saved), ws.now()).unwrap();
    assert_eq!(outcome.conflicts, []);
    assert_ne!(standing(ws)[1], before[1], "HEAD went back");
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(standing(ws), before);
}

#[test]
fn a_linked_work_tree_with_a_relative_path_is_moved() {
    let ws = in_linked_tree(false);
    let saved = two_commits_in_linked_tree(&ws);
    let admin = ws.outside().join("main/.git/worktrees");
    let admin = admin.join(std::fs::read_dir(&admin).unwrap().next().unwrap().unwrap().file_name());
    let up = "../".repeat(admin.components().count() - 1);
    std::fs::write(admin.join("gitdir"), format!("{up}{}/.git\n", ws.root().strip_prefix("/").unwrap().display()))
        .unwrap();
    assert_moved(&ws, &saved);
    // A work tree that is another's by now.
    std::fs::write(admin.join("gitdir"), format!("{}/.git\n", ws.outside().display())).unwrap();
    assert_refused(&ws, &saved, &ws.outside().join("main/.git"), "does not name this directory");
}

#[test]
fn a_submodule_is_moved() {
    let outer = TestWorkspace::new();
    outer.git_init();
    let source = outer.outside().join("source");
    std::fs::create_dir(&source).unwrap();
    git(&source, &["init", "-q"]);
    git(&source, &["commit", "-q", "--allow-empty", "-m", "base"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source.to_str().unwrap(), "sub"];
    git(&outer.root(), &add);
    let root = outer.path("sub");
    let say = |words: &[&str]| String::from_utf8(git(&root, words)).unwrap();
    let workspace = outer.open_at(&root);
    std::fs::write(root.join("file"), "1\n").unwrap();
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "first"]);
    let saved = workspace.save(&SaveRequest::default(), outer.now()).unwrap().checkpoint;
    std::fs::write(root.join("file"), "2\n").unwrap();
    git(&root, &["commit", "-q", "-a", "-m", "second"]);
    workspace.restore(&with_git(&saved), outer.now()).unwrap();
    assert_eq!(say(&["log", "-1", "--format=%s"]), "first\n");
    workspace.undo(outer.now()).unwrap().unwrap();
    assert_eq!(say(&["log", "-1", "--format=%s"]), "second\n");
}

/// `git init --separate-git-dir` notes nowhere which directory the repository is for.
#[test]
fn a_repository_kept_elsewhere_is_moved_once_it_names_the_directory() {
    let ws = TestWorkspace::new();
    let apart = ws.outside().join("apart.git");
    git(&ws.root(), &["init", "-q", "--separate-git-dir", apart.to_str().unwrap()]);
    ws.write("file", "1\n");
    commit(&ws, "first");
    let saved = ws.save();
    ws.write("file", "2\n");
    commit(&ws, "second");
    assert_refused(&ws, &saved, &apart, "core.worktree");
    git(&ws.root(), &["config", "core.worktree", ws.root().to_str().unwrap()]);
    assert_moved(&ws, &saved);
}

/// The files come back even if the repository is another's by then.
#[test]
fn undo_leaves_a_repository_that_is_anothers_by_now() {
    let (ws, saved, victim) = beside_another();
    ws.open().restore(&with_git(&saved), ws.now()).unwrap();
    take_away_git(&ws);
    let victim = victim.join(".git");
    ws.write(".git", format!("gitdir: {}\n", victim.display()));
    let before = git_directory_bytes(&victim);
    let undone = ws.open().undo(ws.now()).unwrap().unwrap();
    assert!(undone.conflicts.iter().any(|one| one.reason.contains("another directory's")), "{:?}", undone.conflicts);
    assert_eq!(ws.read("file").unwrap(), b"2\n");
    before.assert_same(&git_directory_bytes(&victim), "the other repository");
}
