use snapbox::str;

use crate::place::{Place, assert_shown};

/// Returns a workspace with a checkpoint of each of these kinds, and their ids, oldest first. The workspace stands on
/// the last one.
fn place_with(kinds: &[&str]) -> (Place, Vec<String>) {
    let place = Place::new();
    let save = |(number, kind): (usize, &&str)| {
        place.write("a", format!("{number}\n"));
        place.ok(["save", "--kind", kind, &format!("number {number}")]);
        place.id("@")
    };
    let ids = kinds.iter().enumerate().map(save).collect();
    (place, ids)
}

fn listed(place: &Place) -> Vec<String> {
    let answer = place.json(["list"]);
    answer["checkpoints"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().into()).collect()
}

#[test]
fn a_checkpoint_is_deleted_by_its_address() {
    let (place, ids) = place_with(&["manual", "manual"]);
    assert_shown!(
        place.run(["delete", "@~1"]),
        str![[r#"
deleted [ID] "number 0"
--- stderr
take it back with: backtrail undo (within 1d)
reclaim the space now, for good, with: backtrail prune
--- exit 0

"#]]
    );
    assert_eq!(listed(&place), ids[1..]);
    assert_eq!(place.run(["show", &ids[0], "--json"]).error().0, 3);
}

#[test]
fn several_checkpoints_are_deleted_at_once() {
    let (place, ids) = place_with(&["manual", "step", "manual"]);
    let answer = place.json(["rm", &ids[0], &ids[1][..8], &ids[0]]);
    assert_eq!(answer, serde_json::json!({ "deleted": [ids[0], ids[1]] }));
    assert_eq!(listed(&place), ids[2..]);
}

#[test]
fn an_unknown_address_deletes_nothing() {
    let (place, ids) = place_with(&["manual", "manual"]);
    let (code, word, _) = place.run(["delete", &ids[0], "nonsense", "--json"]).error();
    assert_eq!((code, word.as_str()), (3, "unknown_checkpoint"));
    assert_eq!(listed(&place).len(), 2);
}

#[test]
fn feature_checkpoints_need_force() {
    let (place, ids) = place_with(&["feature", "manual"]);
    assert_shown!(
        place.run(["delete", &ids[0]]),
        str![[r#"
--- stderr
error: [ID] is a feature checkpoint, which is kept forever
hint: delete it anyway with --force
--- exit 6

"#]]
    );
    assert_eq!(place.run(["delete", "--dry-run", &ids[0], "--json"]).error().1, "feature_checkpoint");
    assert_eq!(place.json(["delete", "--older-than", "0s"])["deleted"], serde_json::json!([]));
    assert_eq!(place.json(["delete", "--force", &ids[0]])["deleted"], serde_json::json!([ids[0]]));
}

#[test]
fn checkpoints_are_deleted_by_age_and_kind() {
    let (place, ids) = place_with(&["step", "manual", "step", "manual"]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_shown!(
        place.run(["delete", "--older-than", "0s", "--kind", "step", "--dry-run"]),
        str![[r#"
would delete 2 checkpoints
  [ID] "number 0"
  [ID] "number 2"
--- stderr
nothing was deleted; without --dry-run they are deleted
--- exit 0

"#]]
    );
    assert_eq!(listed(&place).len(), 4);
    assert_shown!(
        place.run(["delete", "--older-than", "1h"]),
        str![[r#"
deleted nothing
--- exit 0

"#]]
    );
    let deleted = place.json(["delete", "--older-than", "0s", "--kind", "step"])["deleted"].clone();
    assert_eq!(deleted, serde_json::json!([ids[0], ids[2]]));
    assert_eq!(place.json(["delete", "--older-than", "0s"])["deleted"], serde_json::json!([ids[1]]));
    assert_eq!(listed(&place), ids[3..], "the checkpoint that the workspace stands on stays");
}

#[test]
fn invalid_arguments_are_refused() {
    let (place, ids) = place_with(&["manual", "manual"]);
    for words in [
        &["delete"][..],
        &["delete", "--kind", "step"],
        &["delete", &ids[0], "--kind", "step"],
        &["delete", &ids[0], "--older-than", "1d"],
        &["delete", "--older-than", "soon"],
        &["delete", "--older-than", "1d", "--kind", "purple"],
    ] {
        assert_eq!(place.run(words.iter().chain(&["--json"])).error().1, "usage", "{words:?}");
    }
    assert_eq!(listed(&place).len(), 2);
}

#[test]
fn no_store_is_created_before_the_first_checkpoint() {
    let place = Place::new();
    assert_eq!(place.json(["delete", "--older-than", "1d"])["deleted"], serde_json::json!([]));
    assert_eq!(place.run(["delete", "@", "--json"]).error().0, 3);
    assert!(!place.path("home/backtrail").exists());
}

#[test]
fn deleting_by_age_names_the_contents_that_are_lost() {
    let place = Place::saved();
    for text in ["unsaved work\n", "newer\n"] {
        place.write("work.txt", text);
        place.ok(["restore", "@"]);
    }
    let safety = place.json(["list", "--kind", "safety"])["checkpoints"][1]["id"].as_str().unwrap().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(5));
    for words in [&["--dry-run"][..], &["--yes"]] {
        let words = ["delete", "--older-than", "0s", "--kind", "safety"].iter().chain(words);
        let run = place.run(words.copied());
        let line = format!("{} has the only copy of work.txt", &safety[..8]);
        assert!(run.code == 0 && run.stderr.contains(&line), "{}", run.shown());
    }
    assert!(place.run(["show", &safety, "--json"]).error().0 == 3);
}

#[test]
fn a_deleted_checkpoint_is_listed_in_the_bin_and_undo_brings_it_back() {
    let (place, ids) = place_with(&["manual", "manual", "manual"]);
    place.ok(["delete", &ids[1]]);
    assert_eq!(place.run(["show", &ids[1], "--json"]).error().0, 3);
    let bin = place.json(["list", "--deleted"])["checkpoints"].clone();
    assert_eq!((bin.as_array().unwrap().len(), bin[0]["id"].as_str()), (1, Some(ids[1].as_str())));
    assert!(bin[0]["kept_until"].as_str().unwrap() > bin[0]["deleted"].as_str().unwrap());
    let shown = place.ok(["list", "--deleted"]);
    assert!(shown.contains("\"number 1\", deleted just now, kept until "), "{shown}");
    let planned = place.json(["undo", "--dry-run"]);
    assert_eq!((&planned["applied"], &planned["undeleted"]), (&false.into(), &serde_json::json!([ids[1]])));

    let undone = place.json(["undo"]);
    assert_eq!((&undone["applied"], &undone["changes"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(undone["undeleted"], serde_json::json!([ids[1]]));
    assert_eq!(listed(&place).len(), 3);
    assert_eq!(place.json(["redo"])["deleted"], serde_json::json!([ids[1]]));
    let undone = place.ok(["undo"]);
    assert!(undone.contains("took back the deletion of") && undone.contains("1 checkpoint is back"), "{undone}");
}

#[test]
fn delete_now_goes_around_the_bin_and_empties_it() {
    let (place, ids) = place_with(&["manual", "manual", "manual", "manual"]);
    place.ok(["delete", &ids[0], &ids[1]]);
    assert_eq!(place.json(["delete", "--now", &ids[2]])["deleted"], serde_json::json!([ids[2]]));
    assert_eq!(place.json(["list", "--deleted"])["checkpoints"].as_array().unwrap().len(), 2);
    assert_eq!(place.json(["delete", "--now", &ids[1][..8]])["deleted"], serde_json::json!([ids[1]]));
    assert_eq!(place.json(["delete", "--now"])["deleted"], serde_json::json!([ids[0]]));
    assert_eq!(place.json(["undo"])["applied"], false);
}
