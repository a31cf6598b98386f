//! `restore --git` if `.git` leads to another directory: only a repository that names the workspace in return is moved.

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

/// Creates a workspace with a checkpoint, and another repository with the same commits outside of it.
fn workspace_and_other_repository() -> (TestWorkspace, Checkpoint, PathBuf) {
    let ws = TestWorkspace::new();
    let saved = two_commits_in(&ws);
    let victim = ws.outside().join("victim");
    git(&ws.outside(), &["clone", "-q", ws.root().to_str().unwrap(), "victim"]);
    (ws, saved, victim)
}

fn move_git_away(ws: &TestWorkspace) {
    std::fs::rename(ws.path(".git"), ws.outside().join("own.git")).unwrap();
}

#[track_caller]
fn assert_refused(ws: &TestWorkspace, saved: &Checkpoint, other_repository: &Path, word: &str) {
    let (files, before) = (ws.manifest(), git_directory_bytes(other_repository));
    let error = ws.open().restore(&with_git(saved), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GitState, "{error}");
    assert!(error.to_string().contains(word), "{error}");
    before.assert_same(&git_directory_bytes(other_repository), "the other repository");
    files.assert_same(&ws.manifest(), "the workspace");
}

/// Regression: an agent could write a `.git` file, and `restore --git` moved the branches of the repository that it
/// named.
#[test]
fn a_git_file_that_leads_into_another_repository_is_refused() {
    let (ws, saved, victim) = workspace_and_other_repository();
    move_git_away(&ws);
    let victim = victim.join(".git");
    ws.write(".git", format!("gitdir: {}\n", victim.display()));
    assert_refused(&ws, &saved, &victim, "does not name this directory");
    // A restore of the files alone works.
    ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
}

#[test]
fn a_git_directory_behind_a_symlink_is_refused() {
    let (ws, saved, victim) = workspace_and_other_repository();
    move_git_away(&ws);
    let victim = victim.join(".git");
    symlink(&victim, ws.path(".git")).unwrap();
    assert_refused(&ws, &saved, &victim, "does not name this directory");
}

/// An agent can forge a git directory that names the workspace. The repository that it claims to belong to must list
/// the work tree as well.
#[test]
fn a_forged_work_tree_of_another_repository_is_refused() {
    let (ws, saved, victim) = workspace_and_other_repository();
    let victim = victim.join(".git");
    let common = format!("{}\n", victim.display());
    let own = ws.outside().join("own.git");
    move_git_away(&ws);
    let fake = ws.outside().join("fake");
    std::fs::create_dir(&fake).unwrap();
    std::fs::copy(own.join("HEAD"), fake.join("HEAD")).unwrap();
    std::fs::copy(own.join("index"), fake.join("index")).unwrap();
    std::fs::write(fake.join("commondir"), &common).unwrap();
    std::fs::write(fake.join("gitdir"), format!("{}\n", ws.path(".git").display())).unwrap();
    ws.write(".git", format!("gitdir: {}\n", fake.display()));
    assert_refused(&ws, &saved, &victim, "does not name this directory");
    // The same with a forged `commondir` in the workspace's own `.git` directory.
    ws.remove(".git");
    std::fs::rename(&own, ws.path(".git")).unwrap();
    std::fs::write(ws.path(".git/commondir"), &common).unwrap();
    assert_refused(&ws, &saved, &victim, "does not name this directory");
}

#[test]
fn symlinked_refs_and_logs_are_refused() {
    for linked in ["refs", "refs/heads", "logs", "logs/refs", "logs/refs/heads", "HEAD", "logs/HEAD", "refs/heads/main"]
    {
        let (ws, saved, victim) = workspace_and_other_repository();
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
    assert_ne!(standing(ws)[1], before[1], "HEAD did not move");
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
    // The work tree belongs to another directory now.
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
    let git_text = |words: &[&str]| String::from_utf8(git(&root, words)).unwrap();
    let workspace = outer.open_at(&root);
    std::fs::write(root.join("file"), "1\n").unwrap();
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "first"]);
    let saved = workspace.save(&SaveRequest::default(), outer.now()).unwrap().checkpoint;
    std::fs::write(root.join("file"), "2\n").unwrap();
    git(&root, &["commit", "-q", "-a", "-m", "second"]);
    workspace.restore(&with_git(&saved), outer.now()).unwrap();
    assert_eq!(git_text(&["log", "-1", "--format=%s"]), "first\n");
    workspace.undo(outer.now()).unwrap().unwrap();
    assert_eq!(git_text(&["log", "-1", "--format=%s"]), "second\n");
}

/// `git init --separate-git-dir` does not record the directory that the repository belongs to.
#[test]
fn a_separate_git_directory_is_moved_once_it_names_the_workspace() {
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

/// Undo restores the files even if the repository belongs to another directory by then.
#[test]
fn undo_does_not_touch_a_repository_that_belongs_to_another_directory() {
    let (ws, saved, victim) = workspace_and_other_repository();
    ws.open().restore(&with_git(&saved), ws.now()).unwrap();
    move_git_away(&ws);
    let victim = victim.join(".git");
    ws.write(".git", format!("gitdir: {}\n", victim.display()));
    let before = git_directory_bytes(&victim);
    let undone = ws.open().undo(ws.now()).unwrap().unwrap();
    assert!(
        undone.conflicts.iter().any(|one| one.reason.contains("belongs to another directory")),
        "{:?}",
        undone.conflicts
    );
    assert_eq!(ws.read("file").unwrap(), b"2\n");
    before.assert_same(&git_directory_bytes(&victim), "the other repository");
}
