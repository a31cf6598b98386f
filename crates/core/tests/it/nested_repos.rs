//! Repositories inside the workspace: their files are captured, their `.git` is not touched.

use backtrail::{Reason, SaveRequest};
use backtrail_testkit::{TestWorkspace, git, git_directory_bytes, git_output};

fn nested(ws: &TestWorkspace, name: &str) {
    ws.write(format!("{name}/file"), "inner\n");
    let directory = ws.path(name);
    git(&directory, &["init", "-q"]);
    git(&directory, &["add", "-A"]);
    git(&directory, &["commit", "-q", "-m", "inner"]);
}

#[test]
fn files_of_nested_repositories_are_captured_and_their_git_is_not() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    ws.git_init();
    nested(&ws, "libs/inner");
    nested(&ws, "libs/inner/deeper");
    ws.write("libs/inner/dirty", "2");
    let before = git_directory_bytes(&ws.path("libs/inner/.git"));
    let saved = ws.save_with(&SaveRequest::default());
    let expected = ["libs/inner/deeper/file", "libs/inner/dirty", "libs/inner/file", "top"];
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), expected);
    assert_eq!(saved.skipped, [], "a git directory is nothing to report");
    assert!(saved.checkpoint.complete);
    before.assert_same(&git_directory_bytes(&ws.path("libs/inner/.git")), "the inner repository");
    ws.write("libs/inner/file", "edited\n");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("libs/inner/file")]);
}

#[test]
fn a_workspace_that_is_the_parent_of_several_repositories() {
    let ws = TestWorkspace::new();
    nested(&ws, "one");
    nested(&ws, "two");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["one/file", "two/file"]);
    assert_eq!(saved.git, None, "there is no repository around the workspace");
}

#[test]
fn a_submodule_is_captured_file_by_file() {
    let ws = TestWorkspace::new();
    let library = ws.outside().join("library");
    std::fs::create_dir(&library).unwrap();
    std::fs::write(library.join("code"), "1\n").unwrap();
    git(&library, &["init", "-q"]);
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "-q", "-m", "library"]);
    ws.write("top", "1");
    ws.git_init();
    let url = library.to_str().unwrap();
    ws.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "sub"]);
    ws.git(&["commit", "-q", "-m", "with submodule"]);
    assert!(ws.path("sub/.git").is_file());
    let before = (git_directory_bytes(&ws.path(".git")), git_directory_bytes(&ws.path("sub/.git")));
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), [".gitmodules", "sub/code", "top"]);
    assert_eq!(saved.git.as_ref().unwrap().dirty_files, [], "a submodule is no dirty file");
    ws.write("sub/code", "edited\n");
    ws.write("sub/new", "1\n");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("sub/code"), ws.workspace_path("sub/new")]);
    before.0.assert_same(&git_directory_bytes(&ws.path(".git")), ".git");
    before.1.assert_same(&git_directory_bytes(&ws.path("sub/.git")), "sub/.git");
    ws.assert_store_is_sound();
}

#[test]
fn an_ignored_submodule_does_not_count_as_tracked() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    ws.git_init();
    nested(&ws, "vendor");
    // A gitlink in the index and a rule for the same directory.
    assert!(git_output(&ws.root(), &["add", "vendor"]).status.success());
    ws.write(".gitignore", "/vendor/\n");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), [".gitignore", "top"]);
}

#[test]
fn the_rules_of_a_nested_repository_hold_below_it() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    nested(&ws, "inner");
    ws.write("inner/.gitignore", "*.o\n");
    ws.write("inner/a.o", "1");
    ws.write("b.o", "1");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["b.o", "inner/.gitignore", "inner/file", "top"]);
}

#[test]
fn a_git_file_or_link_or_empty_directory_of_that_name_is_left_alone() {
    let ws = TestWorkspace::new();
    ws.write("a/.git", "gitdir: /nowhere\n");
    ws.write("a/x", "1");
    ws.mkdir("b/.git");
    ws.write("b/x", "1");
    ws.symlink("../b", "c/.git");
    ws.write("c/x", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a/x", "b/x", "c/x"]);
    assert!(saved.skipped.iter().all(|skipped| skipped.reason != Reason::Git), "{:?}", saved.skipped);
}

#[test]
fn a_bare_repository_is_plain_files() {
    let ws = TestWorkspace::new();
    ws.mkdir("mirror.git");
    git(&ws.path("mirror.git"), &["init", "-q", "--bare"]);
    let saved = ws.save();
    assert!(ws.paths_in_store(&saved.id).contains(&"mirror.git/HEAD".to_owned()));
    let on_disk = ws.manifest().0.values().filter(|found| matches!(found, backtrail_testkit::Found::File(..))).count();
    assert_eq!(ws.paths_in_store(&saved.id).len(), on_disk);
}

#[test]
fn a_nested_repository_that_comes_and_goes_is_ordinary_files() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    ws.save();
    nested(&ws, "cloned");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("cloned/file")]);
    ws.remove("cloned");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("cloned/file")]);
}
