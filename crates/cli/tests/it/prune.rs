use snapbox::str;

use crate::place::{Place, assert_shown};

/// Returns a workspace with three automatic checkpoints. The settings keep one of them.
fn place_to_prune() -> Place {
    let place = Place::saved();
    for number in 0..3 {
        place.write("a.txt", format!("{number}\n"));
        place.ok(["save", "--kind", "automatic", &format!("number {number}")]);
    }
    place.user_settings("[retention]\nautomatic = 1\n");
    place
}

#[test]
fn a_dry_run_gives_the_reasons() {
    let place = place_to_prune();
    let run = place.run(["prune", "--dry-run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let assert_lines_start_with = |text: &str, starts: &[&str]| {
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), starts.len(), "{text}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{text}");
        }
    };
    let gone = "  delete  automatic  only the last 1";
    assert_lines_start_with(
        &run.text(),
        &[gone, gone, "  keep    1  the workspace stands on it", "  keep    1  manual checkpoints stay"],
    );
    let all = place.ok(["prune", "--dry-run", "--verbose"]);
    assert_lines_start_with(&all, &["  keep    automatic  ", gone, gone, "  keep    manual  "]);
    assert!(run.stderr.contains("name each with --verbose"), "{}", run.stderr);
    assert_eq!(place.run(["prune", "--verbose", "--json"]).error().1, "usage");
    assert!(run.stderr.starts_with("would delete 2 and keep 2; the store takes "), "{}", run.stderr);
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 4);
}

#[test]
fn a_dry_run_in_json_has_a_verdict_for_each_checkpoint() {
    let place = place_to_prune();
    let [newest, middle] = [place.id("@"), place.id("@~1")];
    let answer = place.json(["prune", "--dry-run"]);
    let keys: Vec<_> = answer.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["deleted", "kept", "bytes_before", "bytes_after", "verdicts", "would_lose", "not_applied"]);
    assert_eq!((&answer["kept"], answer["deleted"].as_array().unwrap().len()), (&2.into(), 2));
    assert!(answer["deleted"].as_array().unwrap().contains(&middle.into()));
    assert!(answer["bytes_before"].as_u64().unwrap() > 0);
    assert_eq!(answer["bytes_before"], answer["bytes_after"]);
    let first = &answer["verdicts"][0];
    assert_eq!((&first["id"], &first["keep"]), (&newest.into(), &true.into()));
    assert!(!first["reason"].as_str().unwrap().is_empty());
}

#[test]
fn prune_applies_the_retention_policy() {
    let place = place_to_prune();
    let run = place.run(["prune"]);
    assert!(run.text().starts_with("deleted 2 checkpoints, kept 2; the store takes "), "{}", run.shown());
    let answer = place.json(["prune"]);
    let keys: Vec<_> = answer.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["deleted", "kept", "bytes_before", "bytes_after", "not_applied"]);
    assert_eq!((&answer["deleted"], &answer["kept"]), (&serde_json::json!([]), &2.into()));
    assert_eq!(place.json(["verify"])["ok"], true);
}

#[test]
fn no_store_is_created_before_the_first_checkpoint() {
    let place = Place::new();
    assert_shown!(
        place.run(["prune"]),
        str![[r#"
deleted 0 checkpoints, kept 0; the store takes 0 B, before 0 B
--- exit 0

"#]]
    );
    place.ok(["prune", "--dry-run"]);
    assert!(!place.path("home/backtrail").exists());
}

/// Returns a workspace with two safety checkpoints, and the id of the older one, which holds the only copy of some
/// work.
fn place_with_unsaved_work() -> (Place, String) {
    let place = Place::saved();
    for text in ["unsaved work\n", "newer\n"] {
        place.write("work.txt", text);
        place.ok(["restore", "@"]);
    }
    let safety = place.json(["list", "--kind", "safety"])["checkpoints"][1]["id"].as_str().unwrap().to_owned();
    (place, safety)
}

#[test]
fn unsaved_work_is_kept_whatever_the_limits() {
    let (place, safety) = place_with_unsaved_work();
    place.user_settings("[retention]\nsafety = 0\nmax_age = \"0s\"\n[checkpoints]\nmax_checkpoints = 0\n");
    let shown = place.ok(["prune", "--dry-run"]);
    assert!(shown.contains("no other checkpoint has all of its contents; it stays for 7d at least"), "{shown}");
    assert_eq!(place.json(["prune"])["deleted"], serde_json::json!([]));
    assert_eq!(place.ok(["cat", &safety, "work.txt"]), "unsaved work\n");
}

#[test]
fn a_dry_run_names_the_contents_that_would_be_lost() {
    let (place, safety) = place_with_unsaved_work();
    place.user_settings("[retention]\nsafety = 0\nunsaved = \"0s\"\n");
    let run = place.run(["prune", "--dry-run"]);
    let line = format!("would be lost: {} has the only copy of work.txt", &safety[..8]);
    assert!(run.stderr.contains(&line), "{}", run.shown());
    let answer = place.json(["prune", "--dry-run"]);
    assert_eq!(answer["would_lose"], serde_json::json!([{ "id": safety, "paths": ["work.txt"] }]));
    assert_eq!(place.json(["prune"])["deleted"], serde_json::json!([safety]));
}

#[test]
fn a_limit_that_cannot_be_met_is_reported_once() {
    let place = Place::saved();
    place.user_settings("[retention]\nmax_bytes = 1\n");
    place.write("a.txt", "changed\n");
    let saved = place.run(["save", "--kind", "step"]);
    assert_eq!(saved.code, 0, "{}", saved.shown());
    assert_eq!(saved.stderr.matches("max_bytes is 1 bytes").count(), 1, "{}", saved.shown());
    let pruned = place.run(["prune"]);
    assert_eq!(pruned.stderr.matches("max_bytes is 1 bytes").count(), 1, "{}", pruned.shown());
    let answer = place.json(["prune"]);
    assert_eq!((&answer["deleted"], &answer["not_applied"][0]["key"]), (&serde_json::json!([]), &"max_bytes".into()));
    let answer = place.json(["prune", "--dry-run"]);
    assert_eq!(answer["not_applied"][0]["key"], "max_bytes");
}
