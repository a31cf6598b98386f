//! Repositories inside the workspace: their files are captured, and their `.git` is left untouched.

use backtrail::{ErrorCode, Reason, RestoreRequest, SaveRequest};
use backtrail_testkit::{Manifest, TestWorkspace, git, git_directory_bytes, git_output};

fn make_nested(ws: &TestWorkspace, name: &str) {
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
    make_nested(&ws, "libs/inner");
    make_nested(&ws, "libs/inner/deeper");
    ws.write("libs/inner/dirty", "2");
    let before = git_directory_bytes(&ws.path("libs/inner/.git"));
    let saved = ws.save_with(&SaveRequest::default());
    let expected = ["libs/inner/deeper/file", "libs/inner/dirty", "libs/inner/file", "top"];
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), expected);
    assert_eq!(saved.skipped, [], "a git directory must not be reported");
    assert!(saved.checkpoint.complete);
    before.assert_same(&git_directory_bytes(&ws.path("libs/inner/.git")), "the inner repository");
    ws.write("libs/inner/file", "edited\n");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("libs/inner/file")]);
}

#[test]
fn a_workspace_can_contain_several_repositories() {
    let ws = TestWorkspace::new();
    make_nested(&ws, "one");
    make_nested(&ws, "two");
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
    assert_eq!(saved.git.as_ref().unwrap().dirty_files, [], "a submodule counts as a dirty file");
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
    make_nested(&ws, "vendor");
    // A gitlink in the index and a rule for the same directory.
    assert!(git_output(&ws.root(), &["add", "vendor"]).status.success());
    ws.write(".gitignore", "/vendor/\n");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), [".gitignore", "top"]);
}

#[test]
fn the_rules_of_a_nested_repository_apply_below_it() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    make_nested(&ws, "inner");
    ws.write("inner/.gitignore", "*.o\n");
    ws.write("inner/a.o", "1");
    ws.write("b.o", "1");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["b.o", "inner/.gitignore", "inner/file", "top"]);
}

/// Regression: a file that a nested repository tracks was skipped without a report if the repository's rules ignore it.
#[test]
fn a_file_that_a_nested_repository_tracks_is_captured_even_if_ignored() {
    for is_submodule in [false, true] {
        let ws = TestWorkspace::new();
        let library = if is_submodule { ws.outside().join("library") } else { ws.path("r1") };
        std::fs::create_dir_all(library.join("dist")).unwrap();
        std::fs::write(library.join(".gitignore"), "dist/\n*.log\n").unwrap();
        std::fs::write(library.join("dist/app.js"), "v1\n").unwrap();
        git(&library, &["init", "-q"]);
        git(&library, &["add", "-f", "."]);
        git(&library, &["commit", "-q", "-m", "x"]);
        if is_submodule {
            ws.write(".gitignore", "r1/kept.log\n");
            ws.git_init();
            let url = library.to_str().unwrap();
            ws.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "r1"]);
        }
        ws.write("r1/dist/app.js", "v1\nwork\n");
        ws.write("r1/dist/other.js", "made\n");
        ws.write("r1/kept.log", "1\n");
        ws.write("r1/deep/made.log", "1\n");
        std::thread::sleep(std::time::Duration::from_millis(35));
        let saved = ws.save();
        let captured = ws.paths_in_store(&saved.id);
        let inside: Vec<_> = captured.iter().filter(|path| path.starts_with("r1/")).collect();
        assert_eq!(inside, ["r1/.gitignore", "r1/dist/app.js"]);
        assert!(!ws.save_with(&SaveRequest::default()).created);
        ws.remove("r1/dist/app.js");
        ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
        assert_eq!(ws.read("r1/dist/app.js").unwrap(), b"v1\nwork\n");
        assert_eq!(ws.read("r1/dist/other.js").unwrap(), b"made\n");
        // A change of the repository's index is noticed.
        std::thread::sleep(std::time::Duration::from_millis(35));
        ws.write("top", "1");
        ws.save();
        git(&ws.path("r1"), &["add", "-f", "kept.log"]);
        git(&ws.path("r1"), &["rm", "-q", "--cached", "dist/app.js"]);
        let later = ws.paths_in_store(&ws.save().id);
        let inside: Vec<_> = later.iter().filter(|path| path.starts_with("r1/")).collect();
        // The repository no longer tracks `dist/app.js`, but the previous checkpoint held it.
        assert_eq!(inside, ["r1/.gitignore", "r1/dist/app.js", "r1/kept.log"]);
    }
}

#[test]
fn a_dot_git_that_is_a_file_a_symlink_or_empty_is_not_captured() {
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
fn a_bare_repository_is_captured_as_plain_files() {
    let ws = TestWorkspace::new();
    ws.mkdir("mirror.git");
    git(&ws.path("mirror.git"), &["init", "-q", "--bare"]);
    let saved = ws.save();
    assert!(ws.paths_in_store(&saved.id).contains(&"mirror.git/HEAD".to_owned()));
    let on_disk = ws.manifest().0.values().filter(|found| matches!(found, backtrail_testkit::Found::File(..))).count();
    assert_eq!(ws.paths_in_store(&saved.id).len(), on_disk);
}

/// File names alone make no repository, and files in a repository that are not git's own belong to the user.
#[test]
fn files_that_git_did_not_create_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("src/main.c", "1");
    ws.write("src/HEAD", "");
    ws.mkdir("src/objects");
    ws.mkdir("src/refs");
    ws.write("heads/HEAD/m", "1");
    ws.mkdir("heads/objects");
    ws.mkdir("heads/refs");
    ws.write("heads/index", "1");
    ws.write("store/backtrail/format", "anything\n");
    ws.write("store/objects/mine", "1");
    let source = TestWorkspace::new();
    source.write("tree", "0");
    source.git_init();
    git(&ws.path(""), &["clone", "-q", "--bare", source.path("").to_str().unwrap(), "proj"]);
    git(&ws.path("proj"), &["worktree", "add", "-q", "-b", "work", "tree"]);
    for mine in ["notes.txt", ".env", "README", "tree/a", "docs/b"] {
        ws.write(format!("proj/{mine}"), "1");
    }
    let saved = ws.save();
    let captured = ws.paths_in_store(&saved.id);
    let wanted = [
        "heads/HEAD/m",
        "heads/index",
        "proj/.env",
        "proj/README",
        "proj/docs/b",
        "proj/notes.txt",
        "proj/tree/a",
        "proj/tree/tree",
        "src/HEAD",
        "src/main.c",
        "store/backtrail/format",
        "store/objects/mine",
    ];
    assert_eq!(captured, wanted);
    ws.write("src/main.c", "2");
    ws.write("proj/notes.txt", "2");
    let again = ws.save();
    std::fs::remove_file(ws.path("src/main.c")).unwrap();
    std::fs::remove_file(ws.path("proj/notes.txt")).unwrap();
    ws.open().restore(&RestoreRequest::whole(again.id), ws.now()).unwrap();
    assert_eq!((ws.read("src/main.c").unwrap(), ws.read("proj/notes.txt").unwrap()), (b"2".to_vec(), b"2".to_vec()));
}

/// A common layout for dotfiles: the repository is bare by its settings, but it has a checkout.
#[test]
fn a_bare_repository_with_an_index_is_not_captured() {
    let ws = TestWorkspace::new();
    git(&ws.path(""), &["init", "-q", "--bare", "-b", "main", ".cfg"]);
    let checked_out = |words: &[&str]| git(&ws.path(""), &[&["--git-dir=.cfg", "--work-tree=."], words].concat());
    assert_git_stays(&ws, ".cfg", |text| {
        ws.write("rc", text);
        checked_out(&["add", "rc"]);
        checked_out(&["commit", "-q", "-m", text]);
    });
    assert_eq!(ws.read("rc").unwrap(), b"1");
}

/// Settings that include ignored paths do not include git's own files.
#[test]
fn a_repository_in_an_ignored_directory_is_not_captured() {
    for include in ["**/config", "build/gd/*", "build/gd/HEAD", "build/"] {
        let ws = TestWorkspace::new();
        ws.write(".gitignore", "build/\n");
        ws.write("backtrail.toml", format!("[scan]\ninclude = [\"{include}\"]\n"));
        ws.write("build/config", "1");
        ws.mkdir("work");
        git(&ws.path("work"), &["init", "-q", "-b", "main", "--separate-git-dir", "../build/gd"]);
        assert_git_stays(&ws, "build/gd", |text| {
            ws.write("work/a", text);
            git(&ws.path("work"), &["add", "a"]);
            git(&ws.path("work"), &["commit", "-q", "-m", text]);
            git(&ws.path("work"), &["config", "user.name", text]);
        });
        ws.write("work/a", "3");
        let is_captured = ws.paths_in_store(&ws.save().id).contains(&"build/config".to_owned());
        assert_eq!(is_captured, ["**/config", "build/"].contains(&include), "{include}");
    }
}

/// Returns the files of a repository without the checkouts inside it.
fn repository_files(ws: &TestWorkspace, git_directory: &str) -> Manifest {
    let mut found = git_directory_bytes(&ws.path(git_directory));
    found.0.retain(|path, _| !path.starts_with(b"main") && !path.starts_with(b"feature"));
    found
}

/// Checks that a restore leaves the repository unchanged. `work` makes a commit with this text.
fn assert_git_stays(ws: &TestWorkspace, git_directory: &str, work: impl Fn(&str)) {
    assert_git_directories_stay(ws, &[git_directory], work);
}

/// Like [`assert_git_stays`], for a repository that is spread over several directories.
fn assert_git_directories_stay(ws: &TestWorkspace, git_directories: &[&str], work: impl Fn(&str)) {
    work("1");
    let saved = ws.save();
    let captured = ws.paths_in_store(&saved.id);
    let is_of_git = |path: &&String| git_directories.iter().any(|git| path.starts_with(&format!("{git}/HEAD")));
    assert_eq!(captured.iter().find(is_of_git), None, "{captured:?}");
    work("2");
    let before = git_directories.iter().map(|git_directory| repository_files(ws, git_directory)).collect::<Vec<_>>();
    ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
    for (before, git_directory) in before.iter().zip(git_directories) {
        before.assert_same(&repository_files(ws, git_directory), git_directory);
    }
}

#[test]
fn a_repository_with_worktrees_is_not_captured_under_any_name() {
    for place in ["main", ".bare/main", ".bare/feature/x"] {
        let source = TestWorkspace::new();
        source.write("a", "0");
        source.git_init();
        let ws = TestWorkspace::new();
        git(&ws.path(""), &["clone", "-q", "--bare", source.path("").to_str().unwrap(), ".bare"]);
        ws.write(".git", "gitdir: ./.bare\n");
        let tree = ws.path(place);
        git(&ws.path(""), &["worktree", "add", "-q", "-b", "work", tree.to_str().unwrap()]);
        assert_git_stays(&ws, ".bare", |text| {
            ws.write(format!("{place}/a"), text);
            git(&tree, &["add", "a"]);
            git(&tree, &["commit", "-q", "-m", text]);
        });
        assert_eq!(ws.read(format!("{place}/a")).unwrap(), b"1", "the checkout was not restored");
    }
}

#[test]
fn a_separate_git_directory_is_not_captured_under_any_name() {
    for is_link in [false, true] {
        let ws = TestWorkspace::new();
        if is_link {
            git(&ws.path(""), &["init", "-q"]);
            std::fs::rename(ws.path(".git"), ws.path("kept")).unwrap();
            ws.symlink("kept", ".git");
        } else {
            git(&ws.path(""), &["init", "-q", "--separate-git-dir=kept"]);
        }
        assert_git_stays(&ws, "kept", |text| {
            ws.write("a", text);
            git(&ws.path(""), &["add", "a"]);
            git(&ws.path(""), &["commit", "-q", "-m", text]);
        });
    }
}

/// Regression: a restore removed a whole repository with all its commits. The checkpoint had skipped its files as git's
/// own. Once the directory no longer looked like a repository, they were taken for new files.
#[test]
fn a_skipped_repository_stays_if_it_no_longer_looks_like_one() {
    let source = TestWorkspace::new();
    source.write("a", "0");
    source.git_init();
    let cloned = |ws: &TestWorkspace| {
        git(&ws.path(""), &["clone", "-q", "--bare", source.path("").to_str().unwrap(), "kept"]);
        git(&ws.path(""), &["--git-dir=kept", "worktree", "add", "-q", "main"]);
    };
    let beside = |ws: &TestWorkspace| {
        ws.mkdir("main");
        git(&ws.path("main"), &["init", "-q", "--separate-git-dir=../kept"]);
    };
    type Step<'a> = &'a dyn Fn(&TestWorkspace);
    let cases: [(Step<'_>, Step<'_>); 3] = [
        (&cloned, &|ws| drop(git(&ws.path(""), &["--git-dir=kept", "worktree", "remove", "--force", "main"]))),
        (&beside, &|ws| ws.write("kept/HEAD", "")),
        (&beside, &|ws| drop(git(&ws.path(""), &["--git-dir=kept", "config", "core.bare", "true"]))),
    ];
    for (make, end) in cases {
        let ws = TestWorkspace::new();
        make(&ws);
        // The directory is also skipped if an earlier scan has cached it.
        std::thread::sleep(std::time::Duration::from_millis(35));
        ws.save();
        ws.write("other", "1");
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(saved.skipped, [], "a git directory must not be reported");
        assert!(!ws.save_with(&SaveRequest::default()).created);
        end(&ws);
        ws.write("kept/ORIG_HEAD", "new\n");
        ws.write("kept/logs/HEAD", "new\n");
        ws.write("kept/mine", "1");
        let mut before = repository_files(&ws, "kept");
        ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
        before.0.remove(b"mine".as_slice());
        before.assert_same(&repository_files(&ws, "kept"), "a restore");
    }
}

/// A store inside the workspace that has lost its format file still does not belong to the checkpoint.
#[test]
fn a_skipped_store_stays_if_it_no_longer_looks_like_one() {
    let ws = TestWorkspace::new();
    ws.write("store/backtrail/format", "backtrail store 1\n");
    ws.write("store/objects/pack/one", "1");
    ws.write("file", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(saved.skipped, []);
    ws.remove("store/backtrail/format");
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    assert_eq!(ws.read("store/objects/pack/one").unwrap(), b"1");
}

/// The layout of Android's `repo`: the objects are a symlink, and its target is git's own, too.
#[test]
fn a_repository_with_symlinked_objects_is_not_captured_nor_are_the_objects() {
    for is_bare_repository in [false, true] {
        let ws = TestWorkspace::new();
        ws.mkdir("foo");
        let (git_directory, objects) = (".repo/projects/foo.git", ".repo/project-objects/foo.git");
        ws.mkdir(".repo/projects");
        git(&ws.path("foo"), &["init", "-q", "--separate-git-dir", ws.path(git_directory).to_str().unwrap()]);
        ws.mkdir(objects);
        if is_bare_repository {
            git(&ws.path(objects), &["init", "-q", "--bare"]);
            ws.remove(format!("{objects}/objects"));
        }
        ws.rename(format!("{git_directory}/objects"), format!("{objects}/objects"));
        ws.symlink("../../project-objects/foo.git/objects", format!("{git_directory}/objects"));
        assert_git_directories_stay(&ws, &[git_directory, &format!("{objects}/objects")], |text| {
            ws.write("foo/a", text);
            git(&ws.path("foo"), &["add", "a"]);
            git(&ws.path("foo"), &["commit", "-q", "-m", text]);
        });
        git(&ws.path("foo"), &["fsck", "--strict"]);
        assert_eq!(ws.read("foo/a").unwrap(), b"1");
    }
}

/// A restore does not touch objects that another repository of the workspace borrows.
#[test]
fn objects_that_a_repository_borrows_are_not_captured() {
    let upstream = TestWorkspace::new();
    upstream.write("a", "1");
    upstream.git_init();
    let ws = TestWorkspace::new();
    git(&ws.path(""), &["clone", "-q", "--mirror", upstream.path("").to_str().unwrap(), "cache.git"]);
    ws.write("alone", "1");
    let alone = ws.save();
    assert!(ws.paths_in_store(&alone.id).iter().any(|path| path.starts_with("cache.git/objects/")));
    git(&ws.path(""), &["clone", "-q", "--shared", "cache.git", "proj"]);
    let saved = ws.save();
    upstream.write("a", "2");
    upstream.git(&["commit", "-q", "-a", "-m", "two"]);
    git(&ws.path("cache.git"), &["fetch", "-q"]);
    git(&ws.path("proj"), &["pull", "-q"]);
    std::thread::sleep(std::time::Duration::from_millis(35));
    let again = ws.save();
    ws.open().restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
    git(&ws.path("proj"), &["fsck", "--strict"]);
    assert_eq!(ws.read("proj/a").unwrap(), b"1");
    // In the first checkpoint, the repository was plain files: no repository borrowed from it.
    ws.remove("alone");
    let back = ws.open().restore(&RestoreRequest::whole(alone.id), ws.now()).unwrap();
    assert_eq!(ws.read("alone").unwrap(), b"1");
    let paths = |found: &[backtrail::Conflict]| found.iter().map(|found| found.path.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (paths(&back.conflicts), paths(&back.stays)),
        (vec!["cache.git/objects".into()], vec!["proj/.git".into()])
    );
    // Once no repository borrows from it, it is plain files again.
    ws.remove("proj");
    let captured = ws.paths_in_store(&ws.save().id);
    assert!(captured.iter().any(|path| path.starts_with("cache.git/objects/")), "{captured:?}");
    ws.open().restore(&RestoreRequest::whole(again.id), ws.now()).unwrap();
    assert_eq!(ws.read("proj/a").unwrap(), b"2");
}

#[test]
fn a_repository_that_another_one_tracks_is_captured_as_plain_files() {
    let ws = TestWorkspace::new();
    git(&ws.path(""), &["init", "-q"]);
    ws.mkdir("fixture");
    git(&ws.path("fixture"), &["init", "-q"]);
    std::fs::rename(ws.path("fixture/.git"), ws.path("fixture/dotgit")).unwrap();
    git(&ws.path(""), &["add", "fixture"]);
    let saved = ws.save();
    assert!(ws.paths_in_store(&saved.id).contains(&"fixture/dotgit/HEAD".to_owned()));
}

#[test]
fn a_git_directory_is_refused_as_a_workspace() {
    let ws = TestWorkspace::new();
    git(&ws.path(""), &["init", "-q", "--bare"]);
    let error = ws.open().save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProtectedDirectory);
}

#[test]
fn the_files_of_a_nested_repository_that_appears_and_vanishes_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    ws.save();
    make_nested(&ws, "cloned");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("cloned/file")]);
    ws.remove("cloned");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("cloned/file")]);
}

/// Regression: a restore removes its files as new files, but git's own files stay, and that was not reported.
#[test]
fn the_git_directory_of_a_newly_cloned_repository_stays_and_is_reported() {
    let ws = TestWorkspace::new();
    ws.write("top", "1");
    ws.mkdir("empty");
    git(&ws.path("empty"), &["init", "-q"]);
    let saved = ws.save();
    make_nested(&ws, "new/inner");
    ws.write("new/file", "1");
    let source = ws.path("new/inner");
    git(&source, &["worktree", "add", "-q", "../tree"]);
    let bare = ws.path("bare");
    git(&ws.path(""), &["clone", "-q", "--bare", source.to_str().unwrap(), "bare"]);
    git(&bare, &["worktree", "add", "-q", "-b", "other", ws.outside().join("other").to_str().unwrap()]);
    ws.write("bare/notes.txt", "1");
    let before = git_directory_bytes(&ws.path("new/inner/.git"));
    let describe = |found: &[backtrail::Conflict]| -> Vec<String> {
        found.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.reason)).collect()
    };
    let expected = [
        "bare: git's own files in it stay, and so does the directory",
        "new/inner/.git: it belongs to git, so it stays, and so does its directory",
        "new/tree/.git: it belongs to git, so it stays, and so does its directory",
    ];
    let request = RestoreRequest::whole(saved.id);
    let plan = ws.open().plan_restore(&request).unwrap();
    assert_eq!((plan.conflicts.len(), describe(&plan.stays())), (0, expected.map(String::from).to_vec()));
    let done = ws.open().restore(&request, ws.now()).unwrap();
    assert_eq!((done.conflicts.len(), describe(&done.stays)), (0, expected.map(String::from).to_vec()));
    assert_eq!((ws.read("new/file"), ws.read("new/inner/file")), (None, None));
    before.assert_same(&git_directory_bytes(&ws.path("new/inner/.git")), "the repository");
    let again = ws.open().restore(&request, ws.now()).unwrap();
    assert_eq!(
        (again.changes.len(), again.conflicts.len(), again.stays.len()),
        (0, 0, 0),
        "a second restore reports nothing"
    );
    ws.open().undo(ws.now()).unwrap();
    assert_eq!(ws.read("new/inner/file").unwrap(), b"inner\n");
    assert_eq!(ws.open().plan_restore(&RestoreRequest::whole(ws.save().id)).unwrap().stays(), []);
}
