//! Finding the workspace from where somebody stands, and its history after it was moved.

use std::path::{Path, PathBuf};

use backtrail::{ErrorCode, ListFilter, Location, Options, OptionsOf, RestoreRequest, SaveRequest, Start};
use backtrail_testkit::TestWorkspace;

fn around(ws: &TestWorkspace, path: &Path) -> Location {
    let settings = |root: &Path| backtrail::Settings::default().with_workspace(root).unwrap();
    let options = |root: &Path| Options { settings: settings(root), ..Options::default() };
    backtrail::locate(&Start::Around(path.to_owned(), OptionsOf(&options)), &ws.stores(), None).unwrap()
}

fn at(ws: &TestWorkspace, path: &Path) -> Location {
    backtrail::locate(&Start::At(path.to_owned()), &ws.stores(), None).unwrap()
}

#[test]
fn without_store_and_repository_it_is_where_one_stands() {
    let ws = TestWorkspace::new();
    ws.mkdir("a/b");
    assert_eq!(around(&ws, &ws.path("a/b")).root, ws.path("a/b"));
    assert!(!ws.stores().exists(), "looking makes nothing");
}

#[test]
fn the_nearest_repository_is_the_workspace() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.mkdir("a/b");
    assert_eq!(around(&ws, &ws.path("a/b")).root, ws.root());
    ws.write("a/.git", "gitdir: /nowhere\n");
    assert_eq!(around(&ws, &ws.path("a/b")).root, ws.path("a"), "a .git file counts, too");
}

#[test]
fn a_nearer_repository_wins_over_a_workspace_that_is_none() {
    let ws = TestWorkspace::new();
    ws.write("inner/deep/x", "1");
    ws.save();
    assert_eq!(around(&ws, &ws.path("inner/deep")).root, ws.root());
    ws.mkdir("inner/.git");
    let found = around(&ws, &ws.path("inner/deep"));
    assert_eq!((found.root, found.nearer_repository), (ws.path("inner"), None));
    assert_eq!(around(&ws, &ws.root()).root, ws.root());
    assert_eq!(at(&ws, &ws.root()).root, ws.root());
}

#[test]
fn a_repository_that_the_outer_one_captures_belongs_to_it_and_is_named() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write("a", "1");
    ws.save();
    ws.mkdir("inner/.git");
    let found = around(&ws, &ws.path("inner"));
    assert_eq!((found.root, found.nearer_repository), (ws.root(), Some(ws.path("inner"))));
    assert_eq!(around(&ws, &ws.root()).nearer_repository, None);
    ws.open_at(&ws.path("inner")).save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(around(&ws, &ws.path("inner")).root, ws.path("inner"), "with a store of its own");
}

/// An agent in such a directory got checkpoints without a file of it.
#[test]
fn a_repository_that_the_outer_one_skips_is_a_workspace_of_its_own() {
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
        let found = around(&ws, &ws.path("third/inner"));
        assert_eq!((found.root, found.nearer_repository), (ws.path("third/inner"), None), "{what}: {bytes}");
        assert_eq!(around(&ws, &ws.path("third/plain")).root, ws.root(), "{what}: without a .git of its own");
    }
}

#[test]
fn a_repository_that_a_checkpoint_holds_a_file_of_belongs_to_the_outer_one() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write("inner/held", "1");
    ws.mkdir("inner/.git");
    ws.save();
    ws.write(".gitignore", "inner/\n");
    assert_eq!(around(&ws, &ws.path("inner")).root, ws.root());
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
fn a_directory_that_is_named_is_the_workspace() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.mkdir("a");
    ws.save();
    assert_eq!(at(&ws, &ws.path("a")).root, ws.path("a"));
}

#[test]
fn what_is_no_directory_is_an_error() {
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
fn links_and_dots_lead_to_one_spelling() {
    let ws = TestWorkspace::new();
    ws.mkdir("d");
    std::os::unix::fs::symlink(ws.root(), ws.base().join("alias")).unwrap();
    for path in [ws.base().join("alias"), ws.root().join("d/.."), ws.base().join("alias/d/../.")] {
        assert_eq!(at(&ws, &path), at(&ws, &ws.root()), "{}", path.display());
    }
}

#[test]
fn workspaces_of_one_name_have_stores_of_their_own() {
    let ws = TestWorkspace::new();
    let mut stores: Vec<PathBuf> = Vec::new();
    for name in ["one/app", "two/app", "app", "App", "a p", "a_p", ".app", "-app", "\u{65e5}", "\u{672c}"] {
        ws.mkdir(name);
        stores.push(at(&ws, &ws.path(name)).store);
    }
    for bytes in [&b"\xff"[..], b"\xfe"] {
        ws.mkdir(bytes);
        stores.push(at(&ws, &ws.path(bytes)).store);
    }
    let count = stores.len();
    assert!(stores.iter().all(|store| store.parent() == Some(&ws.stores())), "{stores:?}");
    stores.sort();
    stores.dedup();
    assert_eq!(stores.len(), count);
}

#[test]
fn the_history_follows_a_workspace_that_is_moved() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    assert_eq!(around(&ws, &moved).store, at(&ws, &moved).store);
    let workspace = ws.open_at(&moved);
    assert_eq!(workspace.current().unwrap(), Some(first.id));
    assert_eq!(workspace.status(None).unwrap().changes, []);
    std::fs::write(moved.join("a"), "2").unwrap();
    let second = workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    assert_eq!(second.parent, Some(first.id));
    let again = ws.open_at(&moved);
    assert_eq!(again.current().unwrap(), Some(second.id), "opened once more after the save");
    assert_eq!(around(&ws, &moved).store, again.store_directory());
}

#[test]
fn a_new_directory_under_the_old_name_of_a_moved_workspace_does_not_write_into_its_history() {
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
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), [], "it shows nothing of the other's");
    let own = ws.open().save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    assert_eq!(workspace.list(&ListFilter::default()).unwrap().len(), 2);
    assert_eq!(ws.open().current().unwrap(), Some(own.id), "opened once more after the save");
}

/// The one that was moved has not been used since, and the new directory comes first.
#[test]
fn a_workspace_that_is_renamed_keeps_its_history_although_another_gets_its_name() {
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

/// The names of the checkpoints of the workspace at this path.
fn names(ws: &TestWorkspace, path: &Path) -> Vec<String> {
    let all = ws.open_at(path).list(&ListFilter::default()).unwrap();
    all.into_iter().map(|checkpoint| checkpoint.name.unwrap_or_default()).collect()
}

fn save(ws: &TestWorkspace, path: &Path, name: &str) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("file"), name).unwrap();
    let request = SaveRequest { name: Some(name.into()), ..SaveRequest::default() };
    ws.open_at(path).save(&request, ws.now()).unwrap();
}

/// Where the one that had the name before went out of sight, by whichever way, the history that it left was taken for
/// the new directory's.
#[test]
fn a_directory_under_a_name_that_another_had_keeps_its_own_history() {
    for moves_on in [false, true] {
        let ws = TestWorkspace::new();
        let (old, far) = (ws.base().join("old"), ws.outside().join("old"));
        save(&ws, &ws.root(), "first");
        std::fs::rename(ws.root(), &old).unwrap();
        save(&ws, &ws.root(), "second");
        if moves_on {
            std::fs::rename(&old, &far).unwrap();
            assert_eq!(names(&ws, &far), ["first"]);
        } else {
            std::fs::remove_file(old.join("file")).unwrap();
            std::fs::remove_dir(&old).unwrap();
        }
        assert_eq!(names(&ws, &ws.root()), ["second"]);
        save(&ws, &ws.root(), "third");
        assert_eq!(names(&ws, &ws.root()), ["third", "second"]);
    }
}

#[test]
fn a_workspace_that_moves_twice_takes_its_history_along() {
    let ws = TestWorkspace::new();
    let (second, third) = (ws.base().join("second"), ws.base().join("third"));
    save(&ws, &ws.root(), "first");
    std::fs::rename(ws.root(), &second).unwrap();
    save(&ws, &second, "second");
    std::fs::rename(&second, &third).unwrap();
    save(&ws, &ws.root(), "another");
    assert_eq!(names(&ws, &ws.root()), ["another"]);
    assert_eq!(names(&ws, &third), ["second", "first"]);
}

#[test]
fn a_workspace_that_moved_and_was_made_anew_there_has_its_history() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save(&ws, &ws.root(), "first");
    std::fs::rename(ws.root(), &moved).unwrap();
    save(&ws, &moved, "second");
    // Kept aside, so that the new directory can't get the old one's inode.
    std::fs::rename(&moved, ws.outside().join("old")).unwrap();
    std::fs::create_dir(&moved).unwrap();
    assert_eq!(names(&ws, &moved), ["second", "first"]);
}

/// It fell to the workspace around it, which removed it in a restore.
#[test]
fn a_workspace_in_another_is_found_after_a_move() {
    let ws = TestWorkspace::new();
    let (inner, moved) = (ws.path("inner"), ws.path("moved"));
    save(&ws, &ws.root(), "outer");
    save(&ws, &inner, "inner");
    std::fs::rename(&inner, &moved).unwrap();
    std::fs::create_dir(moved.join("below")).unwrap();
    for start in [moved.clone(), moved.join("below")] {
        assert_eq!(around(&ws, &start), at(&ws, &moved));
    }
    assert_eq!(names(&ws, &moved), ["inner"]);
    assert_eq!(around(&ws, &ws.root()).root, ws.root());
}

/// The number of a device changes when it is mounted again, on some file systems.
#[test]
fn a_workspace_is_known_on_a_device_with_another_number() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save(&ws, &ws.root(), "first");
    remember(&ws.store(), |known| known["device"] = (known["device"].as_u64().unwrap() + 1).into());
    std::fs::rename(ws.root(), &moved).unwrap();
    assert_eq!(names(&ws, &moved), ["first"]);
    save(&ws, &ws.root(), "another");
    assert_eq!(names(&ws, &moved), ["first"]);
}

/// Whoever keeps a workspace open for long knows its path and its store, and not what happens to them meanwhile.
#[test]
fn another_directory_that_takes_the_path_of_an_open_workspace_does_not_get_its_history() {
    let ws = TestWorkspace::new();
    let moved = ws.base().join("moved");
    save(&ws, &ws.root(), "first");
    let kept = ws.open();
    std::fs::rename(ws.root(), &moved).unwrap();
    std::fs::create_dir(ws.root()).unwrap();
    ws.write("file", "another's");
    let error = kept.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert!(matches!(&error, backtrail::Error::StoreOfAnother { owner, .. } if *owner == moved), "{error}");
    assert_eq!(names(&ws, &moved), ["first"]);
}

#[test]
fn a_copy_is_another_workspace() {
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

/// The workspace is gone, and an empty directory has its path. Gives its checkpoint and its store.
fn deleted_and_made_again() -> (TestWorkspace, backtrail::Checkpoint, PathBuf) {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("d/b", "2");
    let first = ws.save();
    // Made before the old one goes, so that it can't get its inode.
    let fresh = ws.base().join("fresh");
    std::fs::create_dir(&fresh).unwrap();
    ws.remove("");
    let store = ws.stores().join(std::fs::read_dir(ws.stores()).unwrap().next().unwrap().unwrap().file_name());
    std::fs::rename(&fresh, ws.root()).unwrap();
    (ws, first, store)
}

#[test]
fn an_empty_directory_continues_the_history_of_a_deleted_one() {
    let (ws, first, _) = deleted_and_made_again();
    assert_eq!(at(&ws, &ws.root()).former, None);
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1".to_vec(), b"2".to_vec()));
    ws.write("a", "3");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("a")]);
}

/// Two projects shared one history, and going back in the second brought the files of the first.
#[test]
fn another_directory_with_files_has_a_history_of_its_own_and_learns_of_the_older() {
    let (ws, first, store) = deleted_and_made_again();
    ws.write("b", "1");
    let found = at(&ws, &ws.root());
    let former = found.former.clone().unwrap();
    assert_eq!((former.path.as_path(), &former.store), (ws.root().as_path(), &store));
    let notice = former.notice(&ws.root());
    assert!(notice.contains(&format!("backtrail workspaces --adopt {}", store.display())), "{notice}");
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), []);
    let own = ws.save();
    assert_eq!(own.parent, None);
    let found = at(&ws, &ws.root());
    assert_eq!((found.former, found.store == former.store), (None, false));
    let old = backtrail::locate(&Start::At(ws.root()), &ws.stores(), Some(&former.store)).unwrap();
    let old = backtrail::Workspace::new(old, Options::default());
    assert_eq!(old.current().unwrap(), Some(first.id), "it can be looked at");
    let error = old.restore(&RestoreRequest::whole(first.id), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::AnotherDirectory { .. }), "{error}");
    assert_eq!(ws.read("a"), None);
}

/// Whoever keeps a workspace open for long knows its store, and not that the directory was made anew.
#[test]
fn a_directory_that_is_filled_while_a_workspace_is_open_does_not_get_its_history() {
    let (ws, _, _) = deleted_and_made_again();
    let kept = ws.open();
    assert!(kept.has_store().unwrap());
    ws.write("b", "1");
    let error = kept.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::AnotherDirectory { .. }), "{error}");
}

/// Moved to another file system, it has other numbers: it had "nothing saved yet".
#[test]
fn a_copy_of_a_workspace_that_is_gone_learns_of_its_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let store = ws.store();
    let copy = ws.outside().join("ws");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(ws.path("a"), copy.join("a")).unwrap();
    assert_eq!(at(&ws, &copy).former, None, "the one of that name is still there");
    ws.remove("");
    let former = at(&ws, &copy).former.unwrap();
    assert_eq!((former.path.as_path(), &former.store), (ws.root().as_path(), &store));
    std::fs::create_dir(ws.outside().join("unlike")).unwrap();
    assert_eq!(at(&ws, &ws.outside().join("unlike")).former, None);
}

#[test]
fn a_store_is_adopted() {
    let (ws, first, old) = deleted_and_made_again();
    ws.write("b", "1");
    let own = at(&ws, &ws.root()).store;
    let adopted = ws.open().adopt(&old, ws.now()).unwrap();
    assert_eq!((adopted.store, adopted.kept), (old.canonicalize().unwrap(), None));
    assert!(!own.exists());
    assert_eq!(ws.open().current().unwrap(), Some(first.id));
    let second = ws.save();
    assert_eq!(second.parent, Some(first.id));
    let again = ws.open().adopt(&old, ws.now()).unwrap();
    assert_eq!(again.kept, None, "it has it already");
}

#[test]
fn a_store_that_the_directory_has_is_kept() {
    let (ws, first, old) = deleted_and_made_again();
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
    assert_eq!(ws.open().current().unwrap(), Some(own.id), "and back");
}

#[test]
fn a_store_whose_directory_is_there_is_not_adopted() {
    let ws = TestWorkspace::new();
    save(&ws, &ws.root(), "first");
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
    assert_eq!(names(&ws, &renamed), ["first"]);
    let error = ws.open_at(&renamed).adopt(&ws.outside(), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::NotAStore { .. }), "{error}");
}

/// Changes what a store remembers of its directory. Without a checksum, as older versions write it.
fn remember(store: &Path, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) {
    let file = store.join("backtrail/workspace");
    let mut known: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    known.as_object_mut().unwrap().remove("checksum");
    change(known.as_object_mut().unwrap());
    std::fs::write(&file, format!("{known}\n")).unwrap();
}

/// As a snapshot of a file system has it: the same numbers, on another one.
#[test]
fn the_same_numbers_on_another_file_system_are_another_directory() {
    let ws = TestWorkspace::new();
    save(&ws, &ws.root(), "first");
    let store = ws.store();
    let mut has_id = false;
    remember(&store, |known| {
        has_id = known.contains_key("filesystem");
        known.insert("filesystem".into(), "another".into());
    });
    if !has_id {
        println!("not tried: nothing tells file systems of this kind apart");
        return;
    }
    assert_eq!(names(&ws, &ws.root()), [""; 0]);
    assert_eq!(at(&ws, &ws.root()).former.unwrap().store, store);
}

#[test]
fn a_store_of_an_older_version_goes_on_and_learns_the_new_numbers() {
    let ws = TestWorkspace::new();
    save(&ws, &ws.root(), "first");
    let file = ws.store().join("backtrail/workspace");
    let before = std::fs::read(&file).unwrap();
    remember(&ws.store(), |known| {
        known.remove("filesystem");
        known.remove("mount").expect("the mount is remembered");
    });
    assert_eq!(names(&ws, &ws.root()), ["first"]);
    save(&ws, &ws.root(), "second");
    assert_eq!(names(&ws, &ws.root()), ["second", "first"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// Seen through another mount, the directory at the path is not the one that was there: nothing says that it is gone.
#[test]
fn an_empty_directory_behind_another_mount_does_not_continue_the_history() {
    let (ws, _, store) = deleted_and_made_again();
    remember(&store, |known| known["mount"]["inode"] = 1.into());
    assert_eq!(names(&ws, &ws.root()), [""; 0]);
    let listed = backtrail::workspaces(&ws.stores()).unwrap();
    assert!(!listed[0].exists && !listed[0].is_gone);
    std::fs::remove_dir(ws.root()).unwrap();
    assert!(!backtrail::workspaces(&ws.stores()).unwrap()[0].is_gone);
}

#[test]
fn a_store_that_is_named_knows_its_workspace() {
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
fn paths_that_a_caller_names() {
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
fn directories_that_nobody_means_are_refused() {
    let ws = TestWorkspace::new();
    let workspace = ws.open();
    workspace.refuse_protected(&[PathBuf::from("/"), ws.home()]).unwrap();
    std::os::unix::fs::symlink(ws.root(), ws.base().join("alias")).unwrap();
    for protected in [ws.root(), ws.base().join("alias")] {
        let error = workspace.refuse_protected(&[ws.home(), protected]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ProtectedDirectory);
    }
}

/// A deleted project's inode number is given to the next directory on many file systems: with nothing but the number, a
/// new project took over the history of the deleted one.
#[test]
fn another_directory_with_the_same_inode_number_is_not_the_moved_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let moved = ws.base().join("moved");
    std::fs::rename(ws.root(), &moved).unwrap();
    let store = ws.open_at(&moved).store_directory().to_owned();
    remember(&store, |known| known["born"] = (known["born"].as_i64().expect("birth times are kept") + 1).into());
    assert_eq!(ws.open_at(&moved).current().unwrap(), None, "a directory made at another time is another one");
}
