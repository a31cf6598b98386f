use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

/// Returns a place with the workspaces `ws` and `other`, each with a checkpoint.
fn two_workspaces() -> Place {
    let place = Place::saved();
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("b"), "1\n").unwrap();
    assert_eq!(place.run_in(&other, ["save", "theirs"]).code, 0);
    place
}

fn paths(place: &Place) -> Vec<String> {
    let answer = place.json(["workspaces"]);
    answer["workspaces"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().into()).collect()
}

fn text(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().into()
}

#[test]
fn all_workspaces_with_a_store_are_listed() {
    let place = two_workspaces();
    let run = place.run(["workspaces"]);
    let shown = run.shown();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("1 checkpoint  [WHEN] [ROOT]/other"), "{shown}");
    assert!(lines[1].starts_with("  store  [ROOT]/home/backtrail/stores/other-"), "{shown}");
    assert!(lines[2].ends_with("1 checkpoint  [WHEN] [ROOT]/ws"), "{shown}");
    let answer = place.json(["workspaces"]);
    let entry = answer["workspaces"][1].as_object().unwrap();
    assert_eq!(
        entry.keys().collect::<Vec<_>>(),
        ["path", "exists", "store", "bytes", "checkpoints", "newest"],
        "{answer}"
    );
    let store = fs::canonicalize(entry["store"].as_str().unwrap()).unwrap();
    assert!(store.starts_with(place.path("home/backtrail/stores")));
    assert_eq!(entry["newest"], place.json(["show", "@"])["checkpoint"]["timestamp"]);
    assert_eq!((&entry["exists"], &entry["checkpoints"]), (&true.into(), &1.into()));
}

#[test]
fn a_workspace_without_a_checkpoint_is_listed() {
    let place = Place::new();
    place.ok(["init"]);
    let answer = place.json(["workspaces"]);
    assert_eq!(answer["workspaces"][0]["newest"], serde_json::Value::Null);
    assert_eq!(answer["workspaces"][0]["checkpoints"], 0);
}

#[test]
fn no_workspaces_are_reported() {
    let place = Place::new();
    assert_shown!(
        place.run(["workspaces"]),
        str![[r#"
--- stderr
no workspace has a store yet; take a checkpoint with: backtrail save
--- exit 0

"#]]
    );
    assert_eq!(place.json(["workspaces", "--prune"]).to_string(), r#"{"workspaces":[]}"#);
}

#[test]
fn prune_removes_the_stores_of_deleted_workspaces() {
    let place = two_workspaces();
    fs::remove_file(place.path("other/b")).unwrap();
    fs::remove_dir(place.path("other")).unwrap();
    let run = place.run(["workspaces"]);
    assert!(run.text().lines().next().unwrap().ends_with("other  (gone)"), "{}", run.shown());
    assert!(run.stderr.contains("workspaces --prune"), "{}", run.stderr);
    assert_eq!(paths(&place).len(), 2, "listing removes nothing");
    let run = place.run(["workspaces", "--prune", "--json"]);
    assert_eq!(run.json()["workspaces"].as_array().unwrap().len(), 1);
    assert!(run.stderr.contains("removed the store of"), "{}", run.stderr);
    assert_eq!(paths(&place), [text(&place, "ws")]);
    assert_eq!(place.json(["verify"])["checkpoints"], 1);
}

#[test]
fn a_workspace_whose_parent_is_missing_is_not_pruned() {
    let place = Place::saved();
    let inner = place.path("disk/inner");
    fs::create_dir_all(&inner).unwrap();
    assert_eq!(place.run_in(&inner, ["save", "x"]).code, 0);
    fs::remove_dir(&inner).unwrap();
    fs::remove_dir(place.path("disk")).unwrap();
    let run = place.run(["workspaces", "--prune"]);
    assert!(run.text().contains("inner  (not available now)"), "{}", run.shown());
    assert_eq!(paths(&place).len(), 2);
}

#[test]
fn forget_removes_the_store_and_keeps_the_files() {
    let place = two_workspaces();
    let other = text(&place, "other");
    for words in [["workspaces", "--forget", "../other/"].as_slice(), &["forget-workspace", "../other"]] {
        let run = place.run(words);
        assert_eq!(run.code, 2, "{}", run.shown());
        assert!(run.stderr.contains("1 checkpoint") && run.stderr.contains("--yes"), "{}", run.stderr);
    }
    assert_eq!(paths(&place).len(), 2);
    let answer = place.json(["workspaces", "--forget", "../other/", "--yes"]);
    assert_eq!(answer, serde_json::json!({ "forgotten": other }));
    assert_eq!(paths(&place), [text(&place, "ws")]);
    assert_eq!(fs::read(place.path("other/b")).unwrap(), b"1\n");
    let (code, word, _) = place.run(["forget-workspace", "../other", "--yes", "--json"]).error();
    assert_eq!((code, word.as_str()), (2, "usage"));
}

#[test]
fn a_deleted_workspace_can_be_forgotten() {
    let place = two_workspaces();
    let other = text(&place, "other");
    std::os::unix::fs::symlink(place.path(""), place.path("link")).unwrap();
    fs::remove_file(place.path("other/b")).unwrap();
    fs::remove_dir(place.path("other")).unwrap();
    let answer = place.json(["forget-workspace", "../link/other", "--yes"]);
    assert_eq!(answer, serde_json::json!({ "forgotten": other }));
}

#[test]
fn a_moved_workspace_can_be_forgotten() {
    let place = two_workspaces();
    let other = text(&place, "other");
    fs::rename(place.path("other"), place.path("moved")).unwrap();
    let answer = place.json(["workspaces", "--forget", "../moved", "--yes"]);
    assert_eq!(answer, serde_json::json!({ "forgotten": other }));
    assert_eq!(paths(&place), [text(&place, "ws")]);
}

/// Regression: forgetting the directory at a path removed the store of the workspace that had the path before.
#[test]
fn forget_keeps_the_store_of_the_workspace_that_had_the_path_before() {
    let place = two_workspaces();
    std::fs::rename(place.path("ws"), place.path("renamed")).unwrap();
    std::fs::create_dir(place.path("ws")).unwrap();
    let run = place.run_in(&place.path("ws"), ["workspaces", "--forget", ".", "--yes"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    place.write("b.txt", "1\n");
    place.ok(["save", "anew"]);
    let known = place.json(["workspaces"]);
    let entries = known["workspaces"].as_array().unwrap();
    let path = place.path("ws");
    let of_path: Vec<_> = entries.iter().filter(|entry| entry["path"] == path.to_str().unwrap()).collect();
    assert_eq!(of_path.iter().filter(|entry| entry["exists"] == true).count(), 1, "{known}");
    place.ok(["workspaces", "--forget", ".", "--yes"]);
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 0);
    let run = place.run_in(&place.path("renamed"), ["list", "--json"]);
    assert_eq!(run.json()["checkpoints"].as_array().unwrap().len(), 1, "{}", run.shown());
}

#[test]
fn the_store_of_the_current_directory_is_not_pruned() {
    let place = two_workspaces();
    std::fs::create_dir(place.path("far")).unwrap();
    std::fs::rename(place.path("ws"), place.path("far/ws")).unwrap();
    let run = place.run_in(&place.path("far/ws"), ["workspaces", "--prune"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.text().contains("moved to"), "{}", run.shown());
    let run = place.run_in(&place.path("far/ws"), ["list", "--json"]);
    assert_eq!(run.json()["checkpoints"].as_array().unwrap().len(), 1, "{}", run.shown());
}

#[test]
fn invalid_arguments_are_refused() {
    let place = Place::saved();
    for words in [&["workspaces", "--yes"][..], &["workspaces", "--prune", "--forget", "."], &["forget-workspace"]] {
        assert_eq!(place.run(words.iter().chain(&["--json"])).error().1, "usage", "{words:?}");
    }
}

#[test]
fn a_renamed_workspace_is_not_pruned() {
    let place = two_workspaces();
    fs::rename(place.path("other"), place.path("renamed")).unwrap();
    let run = place.run(["workspaces", "--prune", "--yes"]);
    assert!(run.text().contains("/other  (moved to "), "{}", run.shown());
    assert!(run.text().contains("/renamed)"), "{}", run.shown());
    let answer = place.json(["workspaces"]);
    assert_eq!(answer["workspaces"][0]["moved_to"], text(&place, "renamed"), "{answer}");
    assert_eq!(answer["workspaces"][1].get("moved_to"), None, "{answer}");
    assert_eq!(place.run_in(&place.path("renamed"), ["save"]).code, 0);
    assert_eq!(paths(&place), [text(&place, "renamed"), text(&place, "ws")], "a save records the new path");
}

#[test]
fn a_workspace_with_an_interrupted_restore_is_not_forgotten() {
    let place = two_workspaces();
    fs::write(place.store().join("backtrail/journal"), "what is under way\n").unwrap();
    let known = fs::read_to_string(place.store().join("backtrail/workspace")).unwrap();
    let directory = if known.contains("/other") { "../other" } else { "." };
    let run = place.run(["workspaces", "--forget", directory, "--yes", "--json"]);
    let (code, word, message) = run.error();
    assert_eq!((code, word.as_str()), (4, "conflict"), "{}", run.shown());
    let name = text(&place, if directory == "." { "ws" } else { "other" });
    assert!(message.contains(&format!("a restore of {name} was interrupted")), "{message}");
    assert!(run.stderr.contains("backtrail recover"), "{}", run.stderr);
    assert_eq!(paths(&place).len(), 2);
}
