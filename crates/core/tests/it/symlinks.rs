//! Links are kept as links and never followed.

use backtrail::{ChangeStatus, RestoreRequest, SaveRequest};
use backtrail_testkit::{Found, Manifest, TestWorkspace, blob_id};

#[test]
fn every_kind_of_link_is_kept_by_its_target() {
    let ws = TestWorkspace::new();
    ws.write("d/file", "1");
    let long = "x/".repeat(2_000);
    let targets: [&[u8]; 9] = [
        b"d/file",
        b"d",
        b"nowhere",
        b"loop",
        b"/etc/passwd",
        b"../outside/secret",
        b".",
        b"not-utf8-\xff\n",
        long.as_bytes(),
    ];
    for (number, target) in targets.iter().enumerate() {
        ws.symlink(target, format!("link{number}"));
    }
    ws.symlink("loop", "loop");
    let saved = ws.save();
    let held = ws.tree_in_store(&saved.id);
    for (number, target) in targets.iter().enumerate() {
        let name = format!("link{number}").into_bytes();
        assert!(held.contains(&(name, "120000".into(), blob_id(target))), "link{number}");
    }
    assert_eq!(held.len(), targets.len() + 2, "something behind a link was captured");
    ws.assert_store_is_sound();
}

#[test]
fn nothing_outside_is_read_through_a_link() {
    let ws = TestWorkspace::new();
    std::fs::create_dir(ws.outside().join("d")).unwrap();
    std::fs::write(ws.outside().join("d/secret"), "not yours\n").unwrap();
    let before = Manifest::of(&ws.outside());
    ws.symlink(ws.outside().to_str().unwrap(), "out");
    ws.symlink("../outside/d/secret", "secret");
    ws.save();
    assert!(!ws.is_in_store(b"not yours\n"));
    std::fs::write(ws.outside().join("d/secret"), "changed\n").unwrap();
    assert_eq!(ws.open().status(None).unwrap().changes, [], "a change behind a link is not a change of the workspace");
    std::fs::write(ws.outside().join("d/secret"), "not yours\n").unwrap();
    before.assert_same(&Manifest::of(&ws.outside()), "outside");
}

#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    std::fs::write(ws.outside().join("a"), "outside\n").unwrap();
    ws.save();
    ws.remove("d");
    ws.symlink("../outside", "d");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["d"]);
    assert!(!ws.is_in_store(b"outside\n"));
    let include = vec![ws.workspace_path("d/a")];
    let refused = ws.open().save(&SaveRequest { include, ..Default::default() }, ws.now());
    assert!(refused.is_err(), "a path through a link was included");
}

#[test]
fn a_file_that_becomes_a_link_and_back_changes_its_type_each_time() {
    let ws = TestWorkspace::new();
    ws.write("a", "target");
    ws.save();
    ws.remove("a");
    ws.symlink("target", "a");
    let linked = ws.save();
    assert_eq!(ws.open().show(&linked.id).unwrap().changes[0].status, ChangeStatus::TypeChanged);
    ws.remove("a");
    ws.write("a", "target");
    let back = ws.save();
    assert_eq!(ws.open().show(&back.id).unwrap().changes[0].status, ChangeStatus::TypeChanged);
    assert!(matches!(ws.manifest().0.get(&b"a"[..]), Some(Found::File(..))));
}

#[test]
fn a_link_with_another_target_of_the_same_length_is_a_change() {
    let ws = TestWorkspace::new();
    ws.symlink("one", "link");
    ws.save();
    ws.remove("link");
    ws.symlink("two", "link");
    let saved = ws.save();
    assert_eq!(ws.open().show(&saved.id).unwrap().changes[0].status, ChangeStatus::Modified);
    assert_eq!(ws.tree_in_store(&saved.id)[0].2, blob_id(b"two"));
}

#[test]
fn a_workspace_reached_through_a_link_is_the_same_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    std::os::unix::fs::symlink(ws.root(), ws.base().join("alias")).unwrap();
    let alias = ws.open_at(&ws.base().join("alias"));
    assert_eq!(alias.root(), ws.root());
    assert_eq!(alias.current().unwrap(), Some(first.id));
    let path = alias.path_from(&ws.base().join("alias"), std::path::Path::new("a")).unwrap();
    assert_eq!(path, ws.workspace_path("a"));
}

/// A link in the place of the workspace leads to files that the user did not mean.
#[test]
fn a_link_in_the_place_of_the_workspace_is_not_followed() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let saved = ws.save();
    let workspace = ws.open();
    let root = workspace.root().to_owned();
    let moved = root.with_file_name("moved");
    let elsewhere = TestWorkspace::new();
    elsewhere.write("keep", "mine");
    elsewhere.write("a", "mine too");
    std::fs::rename(&root, &moved).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(""), &root).unwrap();
    let before = elsewhere.manifest();
    let error = workspace.restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap_err();
    assert!(error.to_string().contains("a symbolic link"), "{error}");
    before.assert_same(&elsewhere.manifest(), "a restore through a link");
    assert!(workspace.save(&SaveRequest::default(), ws.now()).is_err());
    std::fs::remove_file(&root).unwrap();
    std::fs::rename(&moved, &root).unwrap();
    workspace.restore(&RestoreRequest::whole(saved.id), ws.now()).unwrap();
}
