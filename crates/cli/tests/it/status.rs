use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn before_the_first_checkpoint_all_files_are_added() {
    let place = Place::new();
    for number in 10..35 {
        place.write(format!("f{number}"), "1\n");
    }
    assert_shown!(
        place.run(["status"]),
        str![[r#"
nothing saved yet
  added  f10  +1
  added  f11  +1
  added  f12  +1
  added  f13  +1
  added  f14  +1
  added  f15  +1
  added  f16  +1
  added  f17  +1
  added  f18  +1
  added  f19  +1
  added  f20  +1
  added  f21  +1
  added  f22  +1
  added  f23  +1
  added  f24  +1
  added  f25  +1
  added  f26  +1
  added  f27  +1
  added  f28  +1
  added  f29  +1
  and 5 more
--- stderr
take the first checkpoint with: backtrail save
--- exit 0

"#]]
    );
    assert_eq!(place.json(["status"])["checkpoint"], serde_json::Value::Null);
    assert!(!place.path("home/backtrail").exists(), "a command that reads created a store");
}

#[test]
fn status_lists_the_changes() {
    let place = Place::saved();
    assert_shown!(
        place.run(["status"]),
        str![[r#"
nothing changed since [ID] "first" ([WHEN])
--- exit 0

"#]]
    );
    place.write("a.txt", "one\nzwei\n");
    place.write("new", "n\n");
    place.write("binary", b"\0\x01");
    place.remove("dir/b.txt");
    assert_shown!(
        place.run(["status"]),
        str![[r#"
4 changes since [ID] "first" ([WHEN])
  modified  a.txt  +1 −1
  added     binary  binary
  deleted   dir/b.txt  −1
  added     new  +1
--- stderr
see them with: backtrail diff; keep them with: backtrail save
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["status", "--quiet"]),
        str![[r#"
4 changes since [ID] "first" ([WHEN])
  modified  a.txt  +1 −1
  added     binary  binary
  deleted   dir/b.txt  −1
  added     new  +1
--- exit 0

"#]]
    );
}

#[test]
fn exit_code_reports_changes_if_requested() {
    let place = Place::saved();
    assert_eq!(place.run(["status", "--exit-code"]).code, 0);
    place.write("a.txt", "changed\n");
    assert_eq!(place.run(["status", "--exit-code"]).code, 1);
    assert_eq!(place.run(["status", "--exit-code", "--json"]).json()["changes"][0]["path"], "a.txt");
    assert_eq!(place.run(["status"]).code, 0);
}

#[test]
fn since_compares_with_another_checkpoint() {
    let place = Place::saved();
    let first = place.id("@");
    place.write("a.txt", "changed\n");
    place.ok(["save"]);
    let since = place.json(["status", "--since", &first]);
    assert_eq!(since["checkpoint"]["id"], first);
    assert_eq!(since["changes"][0]["status"], "modified");
    assert_eq!(place.run(["status", "--since", "nonsense"]).code, 3);
}

/// A saved file that can't be saved any more counts as changed.
#[test]
fn saved_files_that_would_be_skipped_now_are_reported() {
    let place = Place::new();
    place.write("a", "1\n");
    place.write("src/m", "1\n");
    place.write("large", "1\n");
    place.ok(["save", "one"]);
    assert_eq!(place.run(["status", "--exit-code"]).code, 0);
    std::fs::remove_file(place.path("ws/a")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(place.path("ws/a")).status().unwrap().success());
    let run = place.run(["status"]);
    assert!(run.text().starts_with("nothing that can be saved changed since"), "{}", run.shown());
    place.write("src/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    place.write("large", "much\n".repeat(100));
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    let run = place.run(["status", "--exit-code"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    for (path, reason) in [("a", "special file"), ("large", "too large")] {
        let line = format!("{path} was saved, and would be left out now: {reason}");
        assert!(run.stderr.contains(&line), "{}", run.shown());
    }
    let answer: serde_json::Value = serde_json::from_str(&place.ok(["status", "--json"])).unwrap();
    assert_eq!(answer["skipped"].as_array().unwrap().len(), 2, "the files in src stay captured: {answer}");
    assert!(place.run(["save", "two"]).stderr.contains("not protected any more: "));
    place.write("b", "1\n");
    assert!(!place.run(["save", "three"]).stderr.contains("not protected any more"));
}
