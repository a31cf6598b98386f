//! Finding the workspace from where somebody stands, and its history after it was moved.

use std::path::{Path, PathBuf};

use backtrail::{ErrorCode, ListFilter, Location, Options, OptionsOf, SaveRequest, Start};
use backtrail_testkit::TestWorkspace;

fn around(ws: &TestWorkspace, path: &Path) -> Location {
    backtrail::locate(&Start::Around(path.to_owned(), OptionsOf(&|_| Options::default())), &ws.stores(), None).unwrap()
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
fn the_nearest_store_wins_over_a_nearer_repository_and_says_so() {
    let ws = TestWorkspace::new();
    ws.write("inner/x", "1");
    ws.save();
    ws.mkdir("inner/.git");
    let found = around(&ws, &ws.path("inner"));
    assert_eq!(found.root, ws.root());
    assert_eq!(found.nearer_repository, Some(ws.path("inner")));
    assert_eq!(around(&ws, &ws.root()).nearer_repository, None);
    ws.open_at(&ws.path("inner")).save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(around(&ws, &ws.path("inner")).root, ws.path("inner"), "with a store of its own");
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
    let identity = ws.store().join("backtrail/workspace");
    let text = std::fs::read_to_string(&identity).unwrap();
    std::fs::write(&identity, text.replace("\"device\":", "\"device\":1")).unwrap();
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

#[test]
fn a_workspace_made_anew_under_its_path_keeps_its_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    // Kept aside, so that the new directory can't get the old one's inode.
    std::fs::rename(ws.root(), ws.outside().join("old")).unwrap();
    std::fs::create_dir(ws.root()).unwrap();
    ws.write("a", "2");
    let second = ws.save();
    assert_eq!(second.parent, Some(first.id));
    assert_eq!(second.files_changed, [ws.workspace_path("a")]);
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
    let identity = ws.open_at(&moved).store_directory().join("backtrail/workspace");
    let text = std::fs::read_to_string(&identity).unwrap();
    let born = text.find("\"born\":").expect("the file system keeps birth times") + "\"born\":".len();
    std::fs::write(&identity, format!("{}1{}", &text[..born], &text[born..])).unwrap();
    assert_eq!(ws.open_at(&moved).current().unwrap(), None, "a directory made at another time is another one");
}
