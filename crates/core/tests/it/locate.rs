//! Finding the workspace from the current directory, and its history after a move.

use std::path::{Path, PathBuf};

use backtrail::{ErrorCode, ListFilter, Location, Options, OptionsOf, RestoreRequest, SaveRequest, Start};
use backtrail_testkit::TestWorkspace;

fn locate_around(ws: &TestWorkspace, path: &Path) -> Location {
    let settings = |root: &Path| backtrail::Settings::default().with_workspace(root).unwrap();
    let options = |root: &Path| Options { settings: settings(root), ..Options::default() };
    backtrail::locate(&Start::Around(path.to_owned(), OptionsOf(&options)), &ws.stores(), None).unwrap()
}

fn locate_at(ws: &TestWorkspace, path: &Path) -> Location {
    backtrail::locate(&Start::At(path.to_owned()), &ws.stores(), None).unwrap()
}

#[test]
fn without_a_store_or_repository_the_current_directory_is_the_workspace() {
    let ws = TestWorkspace::new();
    ws.mkdir("a/b");
    assert_eq!(locate_around(&ws, &ws.path("a/b")).root, ws.path("a/b"));
    assert!(!ws.stores().exists(), "locating must create nothing");
}

#[test]
fn the_nearest_repository_is_the_workspace() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.mkdir("a/b");
    assert_eq!(locate_around(&ws, &ws.path("a/b")).root, ws.root());
    ws.write("a/.git", "gitdir: /nowhere\n");
    assert_eq!(locate_around(&ws, &ws.path("a/b")).root, ws.path("a"), "a .git file counts, too");
}

#[test]
fn a_nearer_repository_wins_over_a_workspace_without_a_repository() {
    let ws = TestWorkspace::new();
    ws.write("inner/deep/x", "1");
    ws.save();
    assert_eq!(locate_around(&ws, &ws.path("inner/deep")).root, ws.root());
    ws.mkdir("inner/.git");
    let found = locate_around(&ws, &ws.path("inner/deep"));
    assert_eq!((found.root, found.nearer_repository), (ws.path("inner"), None));
    assert_eq!(locate_around(&ws, &ws.root()).root, ws.root());
    assert_eq!(locate_at(&ws, &ws.root()).root, ws.root());
}

#[test]
fn a_nested_repository_that_the_workspace_captures_belongs_to_it_and_is_reported() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write("a", "1");
    ws.save();
    ws.mkdir("inner/.git");
    let found = locate_around(&ws, &ws.path("inner"));
    assert_eq!((found.root, found.nearer_repository), (ws.root(), Some(ws.path("inner"))));
    assert_eq!(locate_around(&ws, &ws.root()).nearer_repository, None);
    ws.open_at(&ws.path("inner")).save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(
        locate_around(&ws, &ws.path("inner")).root,
        ws.path("inner"),
        "the inner directory has its own store now"
    );
}

/// Regression: an agent in such a directory got checkpoints that had none of its files.
#[test]
fn a_nested_repository_that_the_workspace_skips_is_its_own_workspace() {
    let skipping = [
        (".gitignore", "third/\n"),
        (".gitignore", "third/inner/*\n"),
        ("third/.gitignore", "*\n"),
        (".git/info/exclude", "inner\nplain\n"),
        ("backtrail.toml", "[scan]\nexclude = [\"third\"]\n"),
        ("third/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
    ];
    for (what, bytes) in skipping {
        let ws = TestWorkspace::new();
        ws.git(&["init", "-q"]);
        ws.write("a", "1");
        ws.write(what, bytes);
        ws.save();
        ws.mkdir("third/inner/.git");
        ws.mkdir("third/plain");
        let found = locate_around(&ws, &ws.path("third/inner"));
        assert_eq!((found.root, found.nearer_repository), (ws.path("third/inner"), None), "{what}: {bytes}");
        assert_eq!(locate_around(&ws, &ws.path("third/plain")).root, ws.root(), "{what}: without a .git of its own");
    }
}

#[test]
fn a_nested_repository_with_a_captured_file_belongs_to_the_outer_workspace() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write("inner/held", "1");
    ws.mkdir("inner/.git");
    ws.save();
    ws.write(".gitignore", "inner/\n");
    assert_eq!(locate_around(&ws, &ws.path("inner")).root, ws.root());
    let inner = ws.workspace_path("inner");
    assert!(!ws.open().skips(&inner).unwrap());
    ws.write("backtrail.toml", "[scan]\ninclude = [\"other\"]\n");
    ws.write(".gitignore", "inner/\nother/\nthird/\n");
    ws.mkdir("other");
    ws.mkdir("third");
    assert!(!ws.open().skips(&ws.workspace_path("other")).unwrap(), "the settings include it");
    assert!(ws.open().skips(&ws.workspace_path("third")).unwrap());
    assert!(!ws.open().skips(&backtrail::WorkspacePath::root()).unwrap());
}

#[test]
fn an_explicit_directory_is_the_workspace() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.mkdir("a");
    ws.save();
    assert_eq!(locate_at(&ws, &ws.path("a")).root, ws.path("a"));
}

#[test]
fn a_start_that_is_not_a_directory_is_an_error() {
    let ws = TestWorkspace::new();
    ws.write("file", "1");
    for name in ["file", "nothing"] {
        for start in [Start::At(ws.path(name)), Start::Around(ws.path(name), OptionsOf(&|_| Options::default()))] {
            let error = backtrail::locate(&start, &ws.stores(), None).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Io, "{name}");
        }
    }
}

#[test]
fn symlinks_and_dots_are_resolved() {
    let ws = TestWorkspace::new();
    ws.mkdir("d");
    std::os::unix::fs::symlink(ws.root(), ws.base().join("alias")).unwrap();
    for path in [ws.base().join("alias"), ws.root().join("d/.."), ws.base().join("alias/d/../.")] {
        assert_eq!(locate_at(&ws, &path), locate_at(&ws, &ws.root()), "{}", path.display());
    }
}

#[test]
fn workspaces_of_the_same_name_have_separate_stores() {
    let ws = TestWorkspace::new();
    let mut stores: Vec<PathBuf> = Vec::new();
    for name in ["one/app", "two/app", "app", "App", "a p", "a_p", ".app", "-app", "\u{65e5}", "\u{672c}"] {
        ws.mkdir(name);
        stores.push(locate_at(&ws, &ws.path(name)).store);
    }
    for bytes in [&b"\xff"[..], b"\xfe"] {
        ws.mkdir(bytes);
        stores.push(locate_at(&ws, &ws.path(bytes)).store);
    }
    let count = stores.len();
    assert!(stores.iter().all(|store| store.parent() == Some(&ws.stores())), "{stores:?}");
    stores.sort();
    stores.dedup();
    assert_eq!(stores.len(), count);
}

#[test]
fn the_history_follows_a_moved_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    assert_eq!(locate_around(&ws, &moved).store, locate_at(&ws, &moved).store);
    let workspace = ws.open_at(&moved);
    assert_eq!(workspace.current().unwrap(), Some(first.id));
    assert_eq!(workspace.status(None).unwrap().changes, []);
    std::fs::write(moved.join("a"), "2").unwrap();
    let second = workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    assert_eq!(second.parent, Some(first.id));
    let again = ws.open_at(&moved);
    assert_eq!(again.current().unwrap(), Some(second.id), "opened again after the save");
    assert_eq!(locate_around(&ws, &moved).store, again.store_directory());
}

#[test]
fn a_new_directory_at_the_old_path_of_a_moved_workspace_has_its_own_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    let workspace = ws.open_at(&moved);
    std::fs::write(moved.join("a"), "2").unwrap();
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    std::fs::create_dir(ws.root()).unwrap();
    ws.write("b", "1");
    assert_eq!(
        ws.open().list(&ListFilter::default()).unwrap(),
        [],
        "the new directory lists checkpoints of the moved one"
    );
    let own = ws.open().save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    assert_eq!(workspace.list(&ListFilter::default()).unwrap().len(), 2);
    assert_eq!(ws.open().current().unwrap(), Some(own.id), "opened again after the save");
}

/// The moved workspace has not been used since its move, and the new directory is used first.
#[test]
fn a_moved_workspace_keeps_its_history_if_its_old_path_is_reused_first() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    std::fs::create_dir(ws.root()).unwrap();
    ws.write("b", "1");
    assert_eq!(ws.save().parent, None);
    assert_eq!(ws.open_at(&moved).current().unwrap(), Some(first.id));
    std::fs::write(moved.join("a"), "2").unwrap();
    let second = ws.open_at(&moved).save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    assert_eq!(second.parent, Some(first.id));
}

/// Returns the names of the checkpoints of the workspace at this path.
fn checkpoint_names(ws: &TestWorkspace, path: &Path) -> Vec<String> {
    let all = ws.open_at(path).list(&ListFilter::default()).unwrap();
    all.into_iter().map(|checkpoint| checkpoint.name.unwrap_or_default()).collect()
}

fn save_named(ws: &TestWorkspace, path: &Path, name: &str) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("file"), name).unwrap();
    let request = SaveRequest { name: Some(name.into()), ..SaveRequest::default() };
    ws.open_at(path).save(&request, ws.now()).unwrap();
}

/// Regression: after the former workspace at this path was moved again or deleted, the new directory got its history.
#[test]
fn a_directory_at_a_reused_path_keeps_its_own_history() {
    for moves_on in [false, true] {
        let ws = TestWorkspace::new();
        let (old, far) = (ws.base().join("old"), ws.outside().join("old"));
        save_named(&ws, &ws.root(), "first");
        std::fs::rename(ws.root(), &old).unwrap();
        save_named(&ws, &ws.root(), "second");
        if moves_on {
            std::fs::rename(&old, &far).unwrap();
            assert_eq!(checkpoint_names(&ws, &far), ["first"]);
        } else {
            std::fs::remove_file(old.join("file")).unwrap();
            std::fs::remove_dir(&old).unwrap();
        }
        assert_eq!(checkpoint_names(&ws, &ws.root()), ["second"]);
        save_named(&ws, &ws.root(), "third");
        assert_eq!(checkpoint_names(&ws, &ws.root()), ["third", "second"]);
    }
}

#[test]
fn a_workspace_that_moves_twice_keeps_its_history() {
    let ws = TestWorkspace::new();
    let (second, third) = (ws.base().join("second"), ws.base().join("third"));
    save_named(&ws, &ws.root(), "first");
    std::fs::rename(ws.root(), &second).unwrap();
    save_named(&ws, &second, "second");
    std::fs::rename(&second, &third).unwrap();
    save_named(&ws, &ws.root(), "another");
    assert_eq!(checkpoint_names(&ws, &ws.root()), ["another"]);
    assert_eq!(checkpoint_names(&ws, &third), ["second", "first"]);
}

#[test]
fn a_moved_workspace_that_is_recreated_keeps_its_history() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save_named(&ws, &ws.root(), "first");
    std::fs::rename(ws.root(), &moved).unwrap();
    save_named(&ws, &moved, "second");
    // The old directory still exists, so that the new one can't get its inode.
    std::fs::rename(&moved, ws.outside().join("old")).unwrap();
    std::fs::create_dir(&moved).unwrap();
    assert_eq!(checkpoint_names(&ws, &moved), ["second", "first"]);
}

/// Regression: the moved workspace was taken for a part of the outer one, whose restore removed it.
#[test]
fn a_nested_workspace_is_found_after_a_move() {
    let ws = TestWorkspace::new();
    let (inner, moved) = (ws.path("inner"), ws.path("moved"));
    save_named(&ws, &ws.root(), "outer");
    save_named(&ws, &inner, "inner");
    std::fs::rename(&inner, &moved).unwrap();
    std::fs::create_dir(moved.join("below")).unwrap();
    for start in [moved.clone(), moved.join("below")] {
        assert_eq!(locate_around(&ws, &start), locate_at(&ws, &moved));
    }
    assert_eq!(checkpoint_names(&ws, &moved), ["inner"]);
    assert_eq!(locate_around(&ws, &ws.root()).root, ws.root());
}

/// On some file systems, the device number changes with every mount.
#[test]
fn a_workspace_is_recognized_after_its_device_number_changed() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save_named(&ws, &ws.root(), "first");
    edit_identity(&ws.store(), |known| known["device"] = (known["device"].as_u64().unwrap() + 1).into());
    std::fs::rename(ws.root(), &moved).unwrap();
    assert_eq!(checkpoint_names(&ws, &moved), ["first"]);
    save_named(&ws, &ws.root(), "another");
    assert_eq!(checkpoint_names(&ws, &moved), ["first"]);
}

/// A process that keeps a workspace open knows its path and its store, but does not see later changes to them.
#[test]
fn a_new_directory_at_the_path_of_an_open_workspace_does_not_get_its_history() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save_named(&ws, &ws.root(), "first");
    let kept = ws.open();
    std::fs::rename(ws.root(), &moved).unwrap();
    std::fs::create_dir(ws.root()).unwrap();
    ws.write("file", "another's");
    let error = kept.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert!(matches!(&error, backtrail::Error::StoreOfAnother { owner, .. } if *owner == moved), "{error}");
    assert_eq!(checkpoint_names(&ws, &moved), ["first"]);
}

#[test]
fn a_copy_is_a_separate_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let copy = ws.base().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(ws.path("a"), copy.join("a")).unwrap();
    assert_eq!(ws.open_at(&copy).list(&ListFilter::default()).unwrap(), []);
    ws.open_at(&copy).save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1);
}

/// Returns a workspace that was deleted and whose path is an empty directory, with its checkpoint and its store.
fn deleted_and_recreated() -> (TestWorkspace, backtrail::Checkpoint, PathBuf) {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("d/b", "2");
    let first = ws.save();
    // Created before the old directory is removed, so that it can't get its inode.
    let fresh = ws.base().join("fresh");
    std::fs::create_dir(&fresh).unwrap();
    ws.remove("");
    let store = ws.stores().join(std::fs::read_dir(ws.stores()).unwrap().next().unwrap().unwrap().file_name());
    std::fs::rename(&fresh, ws.root()).unwrap();
    (ws, first, store)
}

#[test]
fn an_empty_directory_continues_the_history_of_a_deleted_workspace() {
    let (ws, first, _) = deleted_and_recreated();
    assert_eq!(locate_at(&ws, &ws.root()).former, None);
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1".to_vec(), b"2".to_vec()));
    ws.write("a", "3");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("a")]);
}

/// Regression: two projects shared one history, and a restore in the second one wrote the files of the first.
#[test]
fn a_recreated_directory_with_files_has_its_own_history_and_reports_the_older_one() {
    let (ws, first, store) = deleted_and_recreated();
    ws.write("b", "1");
    let found = locate_at(&ws, &ws.root());
    let former = found.former.clone().unwrap();
    assert_eq!((former.path.as_path(), &former.store), (ws.root().as_path(), &store));
    let notice = former.notice(&ws.root());
    assert!(notice.contains(&format!("backtrail workspaces --adopt {}", store.display())), "{notice}");
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), []);
    let own = ws.save();
    assert_eq!(own.parent, None);
    let found = locate_at(&ws, &ws.root());
    assert_eq!((found.former, found.store == former.store), (None, false));
    let old = backtrail::locate(&Start::At(ws.root()), &ws.stores(), Some(&former.store)).unwrap();
    let old = backtrail::Workspace::new(old, Options::default());
    assert_eq!(old.current().unwrap(), Some(first.id), "the older history can be read");
    let error = old.restore(&RestoreRequest::whole(first.id), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::AnotherDirectory { .. }), "{error}");
    assert_eq!(ws.read("a"), None);
}

/// A process that keeps a workspace open knows its store, but not that the directory was recreated.
#[test]
fn a_recreated_directory_that_is_filled_while_open_does_not_get_the_history() {
    let (ws, _, _) = deleted_and_recreated();
    let kept = ws.open();
    assert!(kept.has_store().unwrap());
    ws.write("b", "1");
    let error = kept.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::AnotherDirectory { .. }), "{error}");
}

/// Regression: a workspace that moved to another file system has another inode, so it had "nothing saved yet".
#[test]
fn a_copy_of_a_deleted_workspace_reports_its_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let store = ws.store();
    let copy = ws.outside().join("ws");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(ws.path("a"), copy.join("a")).unwrap();
    assert_eq!(locate_at(&ws, &copy).former, None, "the workspace of that name still exists");
    ws.remove("");
    let former = locate_at(&ws, &copy).former.unwrap();
    assert_eq!((former.path.as_path(), &former.store), (ws.root().as_path(), &store));
    std::fs::create_dir(ws.outside().join("unlike")).unwrap();
    assert_eq!(locate_at(&ws, &ws.outside().join("unlike")).former, None);
}

#[test]
fn an_adopted_store_continues_its_history() {
    let (ws, first, old) = deleted_and_recreated();
    ws.write("b", "1");
    let own = locate_at(&ws, &ws.root()).store;
    let adopted = ws.open().adopt(&old, ws.now()).unwrap();
    assert_eq!((adopted.store, adopted.kept), (old.canonicalize().unwrap(), None));
    assert!(!own.exists());
    assert_eq!(ws.open().current().unwrap(), Some(first.id));
    let second = ws.save();
    assert_eq!(second.parent, Some(first.id));
    let again = ws.open().adopt(&old, ws.now()).unwrap();
    assert_eq!(again.kept, None, "the directory has this store already");
}

#[test]
fn an_adoption_keeps_the_previous_store_of_the_directory() {
    let (ws, first, old) = deleted_and_recreated();
    ws.write("b", "1");
    let own = ws.save();
    let journal = ws.store().join("backtrail/journal");
    std::fs::write(&journal, "a restore is under way\n").unwrap();
    let error = ws.open().adopt(&old, ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::HalfRestored { .. }), "{error}");
    std::fs::remove_file(&journal).unwrap();
    let kept = ws.open().adopt(&old, ws.now()).unwrap().kept.unwrap();
    assert_ne!(kept, old);
    assert_eq!(ws.open().current().unwrap(), Some(first.id));
    let listed = backtrail::workspaces(&ws.stores()).unwrap();
    let state =
        |store: &Path| listed.iter().find(|entry| entry.store == store).map(|it| (it.exists, it.is_gone, it.is_kept));
    assert_eq!((state(&old), state(&kept)), (Some((true, false, false)), Some((false, false, true))));
    let location = backtrail::locate(&Start::At(ws.root()), &ws.stores(), Some(&kept)).unwrap();
    let error = backtrail::Workspace::new(location, Options::default()).save(&SaveRequest::default(), ws.now());
    assert!(matches!(error, Err(backtrail::Error::StoreSetAside { .. })), "{error:?}");
    ws.open().adopt(&kept, ws.now()).unwrap();
    assert_eq!(ws.open().current().unwrap(), Some(own.id), "the previous store can be adopted again");
}

#[test]
fn a_store_whose_directory_exists_is_not_adopted() {
    let ws = TestWorkspace::new();
    save_named(&ws, &ws.root(), "first");
    let other = ws.base().join("other");
    std::fs::create_dir(&other).unwrap();
    let store = ws.store();
    let adopt = |root: &Path| ws.open_at(root).adopt(&store, ws.now()).unwrap_err();
    let error = adopt(&other);
    assert!(matches!(&error, backtrail::Error::OwnerIsThere { owner, .. } if *owner == ws.root()), "{error}");
    assert_eq!(error.code(), ErrorCode::ProtectedDirectory);
    let renamed = ws.base().join("renamed");
    std::fs::rename(ws.root(), &renamed).unwrap();
    for directory in [other, ws.root()] {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("file"), "another's").unwrap();
        let error = adopt(&directory);
        assert!(matches!(&error, backtrail::Error::OwnerIsThere { owner, .. } if *owner == renamed), "{error}");
    }
    assert_eq!(checkpoint_names(&ws, &renamed), ["first"]);
    let error = ws.open_at(&renamed).adopt(&ws.outside(), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::NotAStore { .. }), "{error}");
}

/// Changes the identity that a store keeps of its directory. Writes it without a checksum, as older versions do.
fn edit_identity(store: &Path, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) {
    let file = store.join("backtrail/workspace");
    let mut known: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    known.as_object_mut().unwrap().remove("checksum");
    change(known.as_object_mut().unwrap());
    std::fs::write(&file, format!("{known}\n")).unwrap();
}

/// A snapshot of a file system has the same inodes on another file system.
#[test]
fn the_same_inode_on_another_file_system_is_another_directory() {
    let ws = TestWorkspace::new();
    save_named(&ws, &ws.root(), "first");
    let store = ws.store();
    let mut has_id = false;
    edit_identity(&store, |known| {
        has_id = known.contains_key("filesystem");
        known.insert("filesystem".into(), "another".into());
    });
    if !has_id {
        println!("skipped: file systems of this kind have no id");
        return;
    }
    assert_eq!(checkpoint_names(&ws, &ws.root()), [""; 0]);
    assert_eq!(locate_at(&ws, &ws.root()).former.unwrap().store, store);
}

#[test]
fn a_store_of_an_older_version_continues_and_stores_the_new_identity() {
    let ws = TestWorkspace::new();
    save_named(&ws, &ws.root(), "first");
    let file = ws.store().join("backtrail/workspace");
    let before = std::fs::read(&file).unwrap();
    edit_identity(&ws.store(), |known| {
        known.remove("filesystem");
        known.remove("mount").expect("the store keeps the mount");
    });
    assert_eq!(checkpoint_names(&ws, &ws.root()), ["first"]);
    save_named(&ws, &ws.root(), "second");
    assert_eq!(checkpoint_names(&ws, &ws.root()), ["second", "first"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// Behind another mount, the path has another directory. That does not mean that the workspace is gone.
#[test]
fn an_empty_directory_behind_another_mount_does_not_continue_the_history() {
    let (ws, _, store) = deleted_and_recreated();
    edit_identity(&store, |known| {
        let inode = known["mount"]["inode"].as_u64().unwrap();
        known["mount"]["inode"] = (inode + 1).into();
    });
    assert_eq!(checkpoint_names(&ws, &ws.root()), [""; 0]);
    let listed = backtrail::workspaces(&ws.stores()).unwrap();
    assert!(!listed[0].exists && !listed[0].is_gone);
    std::fs::remove_dir(ws.root()).unwrap();
    assert!(!backtrail::workspaces(&ws.stores()).unwrap()[0].is_gone);
}

#[test]
fn an_explicit_store_determines_the_workspace() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    let store = ws.base().join("elsewhere");
    let location = backtrail::locate(&Start::At(ws.root()), &ws.stores(), Some(&store)).unwrap();
    let workspace = backtrail::Workspace::new(location, backtrail::Options::default());
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    let start = Start::Around(ws.path("d"), OptionsOf(&|_| Options::default()));
    let found = backtrail::locate(&start, &ws.stores(), Some(&store)).unwrap();
    assert_eq!(found.root, ws.root());
    assert_eq!(found.store, store);
}

#[test]
fn paths_are_resolved_from_the_current_directory_and_must_be_inside_the_workspace() {
    let ws = TestWorkspace::new();
    ws.mkdir("d/e");
    ws.symlink("../outside", "out");
    let workspace = ws.open();
    let from = |current: &str, named: &str| {
        workspace.path_from(&ws.path(current), Path::new(named)).map(|path| path.to_text().into_owned())
    };
    for (current, named, expected) in [
        ("d", "x", "d/x"),
        ("d/e", "../x", "d/x"),
        ("d", "./e/.", "d/e"),
        ("", ".", ""),
        ("d", "..", ""),
        ("d/e", "../../a b", "a b"),
        ("", "out", "out"),
        ("d", "no/such/thing", "d/no/such/thing"),
    ] {
        assert_eq!(from(current, named).unwrap(), expected, "{named} in {current:?}");
    }
    let absolute = ws.path("d/x");
    assert_eq!(from("", absolute.to_str().unwrap()).unwrap(), "d/x");
    for outside in ["..", "../ws2", "../../../../../../../../../../..", "/etc/passwd"] {
        assert_eq!(from("", outside).unwrap_err().code(), ErrorCode::PathOutsideWorkspace, "{outside}");
    }
}

#[test]
fn protected_directories_are_refused() {
    let ws = TestWorkspace::new();
    let workspace = ws.open();
    workspace.refuse_protected(&[PathBuf::from("/"), ws.home()]).unwrap();
    std::os::unix::fs::symlink(ws.root(), ws.base().join("alias")).unwrap();
    for protected in [ws.root(), ws.base().join("alias")] {
        let error = workspace.refuse_protected(&[ws.home(), protected]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ProtectedDirectory);
    }
}

/// Regression: many file systems give the inode number of a deleted directory to the next one. Compared by the number
/// alone, a new project took over the history of a deleted one.
#[test]
fn another_directory_with_the_same_inode_number_is_not_the_moved_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    let store = ws.open_at(&moved).store_directory().to_owned();
    edit_identity(&store, |known| {
        known["born"] = (known["born"].as_i64().expect("the store keeps the birth time") + 1).into()
    });
    assert_eq!(ws.open_at(&moved).current().unwrap(), None, "a directory with another birth time is another directory");
}
