use snapbox::str;

use crate::place::{Place, assert_shown};

const NO_ARGUMENTS: [&str; 0] = [];

#[test]
fn the_overview_before_the_first_checkpoint_creates_no_store() {
    let place = Place::new();
    place.write("a", "1\n");
    assert_shown!(
        place.run(NO_ARGUMENTS),
        str![[r#"
workspace  [ROOT]/ws
store      nothing saved yet
unsaved    1 added
  added  a  +1

next
  backtrail save "a message"      take a checkpoint
  backtrail demo                  see a save, an accident and a restore in a temporary directory
--- exit 0

"#]]
    );
    assert!(!place.path("home/backtrail").exists(), "the overview created a store");
}

/// Regression: a scan of `/` took minutes, although it is never intended.
#[test]
fn protected_directories_are_not_scanned() {
    let place = Place::new();
    for words in [&["-w", "/"][..], &["status", "-w", "/"], &["diff", "-w", "/"]] {
        let run = place.run(words);
        assert_eq!(run.code, 6, "{words:?}: {}", run.shown());
        assert!(run.stderr.contains("go to the directory of a project"), "{}", run.stderr);
    }
    let doctor = place.run(["doctor", "-w", "/"]);
    assert!(doctor.text().contains("protected") && !doctor.text().contains("captured"), "{}", doctor.shown());
    let home = place.path("home");
    assert_eq!(place.run_in(&home, ["save", "--force"]).code, 0);
    assert_eq!(place.run_in(&home, ["status"]).code, 0, "--force is not needed again");
}

#[test]
fn the_overview_lists_unsaved_changes() {
    let place = Place::saved();
    for number in 10..25 {
        place.write(format!("f{number}"), "1\n");
    }
    assert_shown!(
        place.run(NO_ARGUMENTS),
        str![[r#"
workspace  [ROOT]/ws
store      [ROOT]/home/backtrail/stores/ws-[HASH]
unsaved    15 added since [ID] "first" ([WHEN])
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
  and 5 more

checkpoints
@ [ID]  [WHEN] manual  first  2 files +3

next
  backtrail diff                  see the unsaved changes line by line
  backtrail save "a message"      take a checkpoint
  backtrail restore @             go back to the last checkpoint; unsaved changes are kept
  backtrail list                  see all checkpoints
  backtrail ui                    see all of it in the browser
--- exit 0

"#]]
    );
}

#[test]
fn the_overview_lists_the_last_ten_checkpoints() {
    let place = Place::saved();
    for number in 0..12 {
        place.ok(["save", "--allow-empty", &format!("number {number}")]);
    }
    assert_shown!(
        place.run(NO_ARGUMENTS),
        str![[r#"
workspace  [ROOT]/ws
store      [ROOT]/home/backtrail/stores/ws-[HASH]
unsaved    nothing since [ID] "number 11" ([WHEN])

checkpoints
@ [ID]  [WHEN] manual  number 11  0 files
● [ID]  [WHEN] manual  number 10  0 files
● [ID]  [WHEN] manual  number 9   0 files
● [ID]  [WHEN] manual  number 8   0 files
● [ID]  [WHEN] manual  number 7   0 files
● [ID]  [WHEN] manual  number 6   0 files
● [ID]  [WHEN] manual  number 5   0 files
● [ID]  [WHEN] manual  number 4   0 files
● [ID]  [WHEN] manual  number 3   0 files
● [ID]  [WHEN] manual  number 2   0 files

next
  backtrail list                  see all checkpoints
  backtrail show @                see what the last checkpoint changed
  backtrail ui                    see all of it in the browser
--- exit 0

"#]]
    );
}

#[test]
fn the_overview_offers_undo_after_a_restore() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    place.ok(["restore", "@"]);
    let text = place.ok(NO_ARGUMENTS);
    assert!(text.contains("next\n  backtrail undo "), "{text}");
    place.ok(["save", "--allow-empty", "on"]);
    let text = place.ok(NO_ARGUMENTS);
    assert!(!text.contains("backtrail undo"), "{text}");
}

#[test]
fn the_overview_has_no_json() {
    let place = Place::saved();
    assert_eq!(place.run(["--json"]).error().0, 2);
}
