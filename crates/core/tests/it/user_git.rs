//! The user repository is read in any state, and only `restore --git` writes it.

use std::{os::unix::fs::PermissionsExt, path::Path};

use backtrail::{GitState, ListFilter, SaveRequest, Scope, Workspace};
use backtrail_testkit::{Manifest, Random, TestWorkspace, git, git_directory_bytes, git_output};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().trim().to_owned()
}

/// Runs every operation that reads or saves. Returns a new checkpoint.
fn use_everything(ws: &TestWorkspace, workspace: &Workspace) -> backtrail::Checkpoint {
    workspace.status(None).unwrap();
    let saved = workspace.save(&SaveRequest { allow_empty: true, ..Default::default() }, ws.now()).unwrap();
    let id = saved.checkpoint.id;
    workspace.diff(Some(id), None, &Scope::Whole).unwrap();
    workspace.show(&id).unwrap();
    workspace.list(&ListFilter::default()).unwrap();
    assert_eq!(workspace.verify().unwrap().damaged, []);
    saved.checkpoint
}

/// Checks that no operation changes a byte of the repository or of the workspace. Returns the git state of a new
/// checkpoint.
#[track_caller]
fn assert_untouched(ws: &TestWorkspace) -> Option<GitState> {
    let before = (git_directory_bytes(&ws.path(".git")), ws.manifest());
    let saved = use_everything(ws, &ws.open());
    before.0.assert_same(&git_directory_bytes(&ws.path(".git")), ".git");
    before.1.assert_same(&ws.manifest(), "the workspace");
    saved.git
}

/// Returns the tracked files that differ from the index, and the staged ones, according to git.
fn dirty_by_git(directory: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for words in [&["diff-files", "--name-only"][..], &["diff", "--cached", "--no-renames", "--name-only"]] {
        paths.extend(text(git(directory, words)).lines().map(String::from));
    }
    paths.sort();
    paths.dedup();
    paths
}

fn dirty(state: &GitState) -> Vec<String> {
    state.dirty_files.iter().map(|path| path.to_text().into_owned()).collect()
}

#[test]
fn the_branch_and_dirty_files_are_recorded() {
    let ws = TestWorkspace::new();
    for name in ["clean", "edited", "gone", "to-link", "to-directory", "executable", "d/deep", "staged"] {
        ws.write(name, "1\n");
    }
    ws.git_init();
    ws.git(&["stash", "list"]);
    ws.write("edited", "2\n");
    ws.write("untracked", "1\n");
    ws.remove("gone");
    ws.remove("to-link");
    ws.symlink("clean", "to-link");
    ws.remove("to-directory");
    ws.write("to-directory/x", "1\n");
    ws.chmod("executable", 0o755);
    ws.write("d/deep", "2\n");
    ws.write("staged", "2\n");
    ws.git(&["add", "staged"]);
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.branch.as_deref(), Some("main"));
    assert_eq!(state.commit, Some(text(ws.git(&["rev-parse", "HEAD"]))));
    assert_eq!(dirty(&state), dirty_by_git(&ws.root()));
    assert_eq!(dirty(&state), ["d/deep", "edited", "executable", "gone", "staged", "to-directory", "to-link"]);
}

/// A save looks up changed files in the index and remembers the state of the others. The result must match git's.
#[test]
fn dirty_files_match_git_in_every_save() {
    let ws = TestWorkspace::new();
    for name in ["a", "d/b", "d/c", "d/e/f", "g/h", "g/i", "long"] {
        ws.write(name, "1\n");
    }
    ws.git_init();
    type Step = fn(&TestWorkspace);
    let steps: [(&str, Step); 12] = [
        ("nothing", |_| {}),
        ("one file edited", |ws| ws.write("d/b", "2\n")),
        ("another, and a new one", |ws| {
            ws.write("d/e/f", "2\n");
            ws.write("d/new", "1\n");
        }),
        ("one put back as it was", |ws| ws.write("d/b", "1\n")),
        ("a directory removed", |ws| ws.remove("g")),
        ("a file in its place", |ws| ws.write("g", "1\n")),
        ("and the directory again", |ws| {
            ws.remove("g");
            ws.write("g/h", "1\n");
        }),
        ("a file became a link", |ws| {
            ws.remove("a");
            ws.symlink("long", "a");
        }),
        ("a file was made executable", |ws| ws.chmod("d/c", 0o755)),
        ("staged", |ws| drop(ws.git(&["add", "d/e/f"]))),
        ("edited after that", |ws| ws.write("d/e/f", "3\n")),
        ("committed", |ws| drop(ws.git(&["commit", "-q", "-a", "-m", "more"]))),
    ];
    for (what, step) in steps {
        // A file that was written in the same clock tick as the previous save is always read again.
        std::thread::sleep(std::time::Duration::from_millis(35));
        ws.save_with(&SaveRequest::default());
        std::thread::sleep(std::time::Duration::from_millis(35));
        step(&ws);
        let saved = ws.save_with(&SaveRequest { allow_empty: true, ..SaveRequest::default() });
        // Without optional locks, git does not update the index.
        let by_git = |more: &[&str]| {
            let words = [&["--no-optional-locks", "diff", "--name-only"], more].concat();
            text(git(&ws.root(), &words)).lines().map(String::from).collect::<Vec<_>>()
        };
        let mut expected = [by_git(&[]), by_git(&["--cached"])].concat();
        expected.sort();
        expected.dedup();
        assert_eq!(dirty(&saved.checkpoint.git.unwrap()), expected, "{what}");
    }
}

#[test]
fn a_safety_checkpoint_of_paths_lists_no_other_dirty_files() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("d/b", "1\n");
    ws.git_init();
    let first = ws.save();
    ws.write("a", "2\n");
    let scope = Scope::of_paths(vec![ws.workspace_path("a")]);
    let request = backtrail::RestoreRequest { scope, ..backtrail::RestoreRequest::whole(first.id) };
    let safety = ws.open().restore(&request, ws.now()).unwrap().safety.unwrap();
    let state = ws.open().get(&safety).unwrap().git.unwrap();
    assert_eq!(dirty(&state), ["a"]);
}

#[test]
fn a_touched_file_is_not_dirty() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git_init();
    ws.write("a", "1\n");
    assert_eq!(assert_untouched(&ws).unwrap().dirty_files, []);
}

#[test]
fn an_unborn_branch_is_recorded() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git(&["init", "-q", "-b", "topic/one"]);
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state, GitState { commit: None, branch: Some("topic/one".into()), ..GitState::default() });
}

#[test]
fn a_detached_head_is_recorded() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git_init();
    ws.git(&["checkout", "-q", "--detach"]);
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.branch, None);
    assert_eq!(state.commit, Some(text(ws.git(&["rev-parse", "HEAD"]))));
}

#[test]
fn packed_refs_are_read() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git_init();
    ws.git(&["tag", "-a", "-m", "v1", "v1"]);
    ws.git(&["gc", "-q", "--prune=now"]);
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.commit, Some(text(ws.git(&["rev-parse", "HEAD"]))));
    assert_eq!(state.branch.as_deref(), Some("main"));
}

#[test]
fn a_symbolic_branch_is_resolved() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git_init();
    ws.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    ws.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.commit, Some(text(ws.git(&["rev-parse", "HEAD"]))));
}

#[test]
fn a_linked_worktree_is_read_and_not_changed() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write(".gitignore", "*.log\n");
    ws.git_init();
    std::fs::write(ws.root().join(".git/info/exclude"), "private\n").unwrap();
    let tree = ws.outside().join("tree");
    ws.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    std::fs::write(tree.join("a"), "2\n").unwrap();
    std::fs::write(tree.join("x.log"), "2\n").unwrap();
    std::fs::write(tree.join("private"), "2\n").unwrap();
    let before = (git_directory_bytes(&ws.path(".git")), Manifest::of(&tree), git_directory_bytes(&tree.join(".git")));
    let workspace = ws.open_at(&tree);
    let saved = use_everything(&ws, &workspace);
    before.0.assert_same(&git_directory_bytes(&ws.path(".git")), "the main .git");
    before.1.assert_same(&Manifest::of(&tree), "the worktree");
    before.2.assert_same(&git_directory_bytes(&tree.join(".git")), "the worktree's .git file");
    let state = saved.git.unwrap();
    assert_eq!(state.branch.as_deref(), Some("side"));
    assert_eq!(state.commit, Some(text(git(&tree, &["rev-parse", "HEAD"]))));
    assert_eq!(dirty(&state), ["a"]);
    let names = git(workspace.store_directory(), &["ls-tree", "-r", "--name-only", &saved.id.to_string()]);
    assert_eq!(text(names), ".gitignore\na");
}

#[test]
fn a_workspace_in_a_subdirectory_records_only_its_own_dirty_files() {
    let ws = TestWorkspace::new();
    ws.write("sub/a", "1\n");
    ws.write("sub/b", "1\n");
    ws.write("sibling/a", "1\n");
    ws.git_init();
    ws.write("sub/a", "2\n");
    ws.write("sibling/a", "2\n");
    let before = git_directory_bytes(&ws.path(".git"));
    let saved = use_everything(&ws, &ws.open_at(&ws.root().join("sub")));
    before.assert_same(&git_directory_bytes(&ws.path(".git")), ".git");
    let state = saved.git.unwrap();
    assert_eq!(state.branch.as_deref(), Some("main"));
    assert_eq!(dirty(&state), ["a"], "paths are relative to the workspace");
    assert_eq!(saved.files_changed, [ws.workspace_path("a"), ws.workspace_path("b")]);
}

#[test]
fn a_sha256_repository_is_read() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("b", "1\n");
    ws.write("out/tracked", "1\n");
    ws.git(&["init", "-q", "--object-format=sha256"]);
    ws.git(&["add", "-A"]);
    ws.git(&["commit", "-q", "-m", "base"]);
    ws.write(".gitignore", "out/\n");
    ws.write("b", "22\n");
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.commit, Some(text(ws.git(&["rev-parse", "HEAD"]))));
    assert_eq!(dirty(&state), ["b"]);
    let id = ws.open().current().unwrap().unwrap();
    assert_eq!(ws.paths_in_store(&id), [".gitignore", "a", "b", "out/tracked"]);
}

#[test]
fn a_repository_with_a_reftable_never_yields_a_wrong_branch() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    if !git_output(&ws.root(), &["init", "-q", "--ref-format=reftable"]).status.success() {
        return;
    }
    ws.git(&["add", "-A"]);
    ws.git(&["commit", "-q", "-m", "base"]);
    let state = assert_untouched(&ws);
    let branch = state.and_then(|state| state.branch);
    assert!(branch.is_none() || branch.as_deref() == Some("main"), "the checkpoint names the branch {branch:?}");
}

#[test]
fn a_merge_in_progress_is_not_disturbed() {
    let ws = TestWorkspace::new();
    ws.write("a", "base\n");
    ws.write("b", "base\n");
    ws.git_init();
    ws.git(&["checkout", "-q", "-b", "side"]);
    ws.write("a", "side\n");
    ws.git(&["commit", "-q", "-am", "side"]);
    ws.git(&["checkout", "-q", "main"]);
    ws.write("a", "main\n");
    ws.git(&["commit", "-q", "-am", "main"]);
    assert!(!git_output(&ws.root(), &["merge", "side"]).status.success());
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(dirty(&state), ["a"]);
    assert!(ws.path(".git/MERGE_HEAD").exists());
    assert!(
        text(ws.git(&["status", "--porcelain"])).contains("AA a")
            || text(ws.git(&["status", "--porcelain"])).contains("UU a")
    );
}

#[test]
fn a_rebase_in_progress_and_a_stash_are_not_disturbed() {
    let ws = TestWorkspace::new();
    ws.write("a", "base\n");
    ws.git_init();
    ws.write("a", "stashed\n");
    ws.git(&["stash", "-q"]);
    ws.git(&["checkout", "-q", "-b", "side"]);
    ws.write("a", "side\n");
    ws.git(&["commit", "-q", "-am", "side"]);
    ws.git(&["checkout", "-q", "main"]);
    ws.write("a", "main\n");
    ws.git(&["commit", "-q", "-am", "main"]);
    assert!(!git_output(&ws.root(), &["rebase", "side"]).status.success());
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(state.branch, None, "a rebase works on a detached HEAD");
    assert_eq!(text(ws.git(&["stash", "list"])).lines().count(), 1);
}

#[test]
fn tracked_files_are_read_from_every_form_of_index() {
    let forms: [(&str, &[&[&str]]); 5] = [
        ("version 4", &[&["update-index", "--index-version", "4"]]),
        ("split", &[&["update-index", "--split-index"]]),
        ("without its hash", &[&["config", "index.skipHash", "true"], &["update-index", "--force-write-index"]]),
        ("with an untracked cache", &[&["update-index", "--untracked-cache"]]),
        ("sparse", &[&["sparse-checkout", "set", "--cone", "--sparse-index", "out"]]),
    ];
    for (what, commands) in forms {
        let ws = TestWorkspace::new();
        ws.write("out/tracked", "1\n");
        ws.write("elsewhere/x", "1\n");
        ws.write("top", "1\n");
        ws.git_init();
        for command in commands {
            ws.git(command);
        }
        ws.write("out/untracked", "1\n");
        ws.write(".gitignore", "out/\n");
        let state = assert_untouched(&ws).unwrap();
        assert_eq!(dirty(&state), dirty_by_git(&ws.root()), "{what}");
        let paths = ws.paths_in_store(&ws.open().current().unwrap().unwrap());
        assert!(paths.contains(&"out/tracked".to_owned()), "{what}: {paths:?}");
        assert!(!paths.contains(&"out/untracked".to_owned()), "{what}: {paths:?}");
    }
}

/// A sparse index has one entry for a whole directory: everything below it counts as tracked.
#[test]
fn all_files_below_a_directory_of_a_sparse_index_are_tracked() {
    let ws = TestWorkspace::new();
    ws.write("elsewhere/deep/x", "1\n");
    ws.write("in/y", "1\n");
    ws.git_init();
    ws.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    assert!(!ws.exists("elsewhere"));
    ws.write("elsewhere/deep/x", "work\n");
    ws.write("elsewheres/z", "1\n");
    ws.write(".gitignore", "elsewhere*/\n");
    assert_eq!(ws.paths_in_store(&ws.save().id), [".gitignore", "elsewhere/deep/x", "in/y"]);
}

#[test]
fn staged_files_match_git_after_random_changes() {
    let mut random = Random::new(11);
    for round in 0..12 {
        let ws = TestWorkspace::new();
        let names: Vec<String> = (0..30)
            .map(|number| match number % 4 {
                0 => format!("f{number}"),
                1 => format!("a/f{number}"),
                2 => format!("a/b/f{number}"),
                _ => format!("a.b/f{number}"),
            })
            .collect();
        for name in &names {
            ws.write(name, format!("{name}\n"));
        }
        ws.git_init();
        for _ in 0..12 {
            let name = &names[random.below(names.len())];
            match random.below(6) {
                0 => ws.remove(name),
                1 => ws.write(name, "edited\n"),
                2 => ws.write(format!("{name}-new"), "new\n"),
                3 => drop(git_output(&ws.root(), &["add", name])),
                4 => drop(git_output(&ws.root(), &["rm", "-q", "--cached", name])),
                _ => drop(ws.git(&["add", "-A", "a"])),
            }
            if !ws.path(name).exists() && random.chance(50) {
                ws.write(format!("{name}/inside"), "was a file\n");
                ws.git(&["add", "-A"]);
                ws.remove(name);
                ws.git(&["add", "-A"]);
            }
        }
        let state = assert_untouched(&ws).unwrap();
        assert_eq!(dirty(&state), dirty_by_git(&ws.root()), "round {round}");
    }
}

#[test]
fn intent_to_add_and_skip_worktree_files_match_git() {
    let ws = TestWorkspace::new();
    ws.write("assumed", "1\n");
    ws.write("skipped", "1\n");
    ws.git_init();
    ws.write("intended", "1\n");
    ws.git(&["add", "-N", "intended"]);
    ws.git(&["update-index", "--assume-unchanged", "assumed"]);
    ws.git(&["update-index", "--skip-worktree", "skipped"]);
    ws.write("assumed", "22\n");
    ws.remove("skipped");
    let state = assert_untouched(&ws).unwrap();
    assert_eq!(dirty(&state), dirty_by_git(&ws.root()));
}

#[test]
fn a_broken_repository_does_not_prevent_a_save() {
    type Damage = fn(&TestWorkspace);
    let damages: [(&str, Damage); 6] = [
        ("garbage index", |ws| std::fs::write(ws.path(".git/index"), b"garbage").unwrap()),
        ("empty index", |ws| std::fs::write(ws.path(".git/index"), b"").unwrap()),
        ("garbage HEAD", |ws| std::fs::write(ws.path(".git/HEAD"), b"\xff\xfe\0").unwrap()),
        ("garbage config", |ws| std::fs::write(ws.path(".git/config"), b"[[[[\0").unwrap()),
        ("no HEAD", |ws| std::fs::remove_file(ws.path(".git/HEAD")).unwrap()),
        ("a pointer to nowhere", |ws| {
            ws.remove(".git");
            ws.write(".git", "gitdir: /nowhere/at/all\n");
        }),
    ];
    for (what, damage) in damages {
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.git_init();
        damage(&ws);
        let before = git_directory_bytes(&ws.path(".git"));
        let saved = ws.open().save(&SaveRequest::default(), ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a"], "{what}");
        before.assert_same(&git_directory_bytes(&ws.path(".git")), what);
    }
}

#[test]
fn no_program_that_the_configuration_names_is_run() {
    let ws = TestWorkspace::new();
    let marker = ws.outside().join("was-run");
    let script = ws.outside().join("script");
    std::fs::write(&script, format!("#!/bin/sh\necho run >> {}\ncat\n", marker.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    ws.write("a", "1\n");
    ws.git_init();
    let script = script.to_str().unwrap();
    for hook in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"] {
        std::fs::copy(script, ws.path(format!(".git/hooks/{hook}"))).unwrap();
    }
    for key in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "filter.all.clean",
        "filter.all.smudge",
        "filter.all.process",
        "diff.all.textconv",
        "core.editor",
        "gpg.program",
    ] {
        ws.git(&["config", key, script]);
    }
    ws.git(&["config", "filter.all.required", "true"]);
    ws.git(&["config", "commit.gpgSign", "true"]);
    ws.git(&["config", "core.hooksPath", ws.outside().to_str().unwrap()]);
    ws.write(".gitattributes", "* filter=all diff=all\n");
    ws.write("a", "2\n");
    drop(std::fs::remove_file(&marker));
    assert_untouched(&ws);
    assert!(!marker.exists(), "a program was run");
    assert!(ws.is_in_store(b"2\n"));
}

#[test]
fn changes_that_git_makes_between_saves_are_seen() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.git_init();
    ws.git(&["checkout", "-q", "-b", "other"]);
    ws.write("a", "2\n");
    ws.write("b", "2\n");
    ws.git(&["add", "-A"]);
    ws.git(&["commit", "-q", "-m", "other"]);
    let on_other = ws.save();
    ws.git(&["checkout", "-q", "main"]);
    let on_main = ws.save();
    assert_eq!(on_main.files_changed, [ws.workspace_path("a"), ws.workspace_path("b")]);
    assert_eq!(on_other.git.unwrap().branch.as_deref(), Some("other"));
    assert_eq!(on_main.git.unwrap().branch.as_deref(), Some("main"));
    ws.git(&["branch", "-q", "-D", "other"]);
    ws.git(&["reflog", "expire", "--expire=now", "--all"]);
    ws.git(&["gc", "-q", "--prune=now"]);
    ws.assert_store_is_sound();
    ws.remove(".git");
    ws.write("a", "3\n");
    assert_eq!(ws.save().git, None);
    ws.assert_store_is_sound();
}
