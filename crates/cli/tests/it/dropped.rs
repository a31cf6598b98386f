//! A file that checkpoints held and can't hold any more is reported by every command that takes or shows a checkpoint.

use std::fs;

use serde_json::{Value, json};
use snapbox::str;

use crate::{
    hooks::checkpoints,
    place::{Place, assert_shown},
};

pub(crate) static LARGE: [u8; 200_000] = [b'g'; 200_000];

/// Returns a workspace with saved files, `grown.bin` and `two.bin`, that are below the size limit.
pub(crate) fn before_growing() -> Place {
    let place = Place::saved();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = \"100KiB\"\n");
    for name in ["grown.bin", "two.bin"] {
        place.write(name, "small\n");
    }
    place.ok(["save", "small"]);
    place
}

/// Returns a workspace whose saved file `grown.bin` is now above the size limit.
pub(crate) fn grown() -> Place {
    let place = before_growing();
    place.write("grown.bin", LARGE);
    place
}

fn dropped(answer: &Value) -> &Value {
    &answer["dropped"]
}

pub(crate) fn too_large(path: &str) -> Value {
    json!([{ "path": path, "reason": "too large" }])
}

#[test]
fn save_list_and_show_report_a_dropped_file() {
    let place = grown();
    assert_shown!(
        place.run(["save", "grown"]),
        str![[r#"
saved [ID] "grown" (1 not protected any more)
--- stderr
warning: not protected any more: grown.bin (too large, 200 kB)
to capture larger files, raise max_file_bytes, now 100KiB, under [scan] in backtrail.toml
--- exit 0

"#]]
    );
    let listed = place.ok(["list"]);
    assert!(listed.lines().next().unwrap().contains("(1 not protected) grown"), "{listed}");
    assert!(!listed.lines().nth(1).unwrap().contains("not protected"), "{listed}");
    let shown = place.ok(["show", "@"]);
    assert!(shown.contains("unprotected  grown.bin (too large) from here on\n"), "{shown}");
    assert!(!place.ok(["show", "@~1"]).contains("unprotected"));
}

#[test]
fn save_names_the_first_three_dropped_files() {
    let place = before_growing();
    let names = ["1.bin", "2.bin", "3.bin", "4.bin", "5.bin"];
    names.iter().for_each(|name| place.write(name, "small\n"));
    place.ok(["save", "five"]);
    names.iter().for_each(|name| place.write(name, LARGE));
    let run = place.run(["save", "--json", "grown"]);
    let warnings: Vec<&str> = run.stderr.lines().filter(|line| line.contains("not protected any more")).collect();
    assert_eq!(warnings.len(), 4, "{}", run.stderr);
    assert_eq!(warnings[3], "warning: and 2 more are not protected any more (list all with --json)");
    assert_eq!(dropped(&run.json()).as_array().unwrap().len(), 5);
}

#[test]
fn only_the_first_checkpoint_without_a_file_counts_it_as_dropped() {
    let place = grown();
    let answer = place.json(["save", "grown"]);
    assert_eq!((dropped(&answer), &answer["created"]), (&too_large("grown.bin"), &true.into()));
    assert_eq!(answer["checkpoint"]["dropped"], 1);
    let again = place.json(["save", "again"]);
    assert_eq!((dropped(&again), &again["created"]), (&json!([]), &false.into()));
    let counts: Vec<Value> = checkpoints(&place).iter().map(|checkpoint| checkpoint["dropped"].clone()).collect();
    assert_eq!(counts, [0, 0, 1]);
}

#[test]
fn the_default_message_names_the_dropped_file() {
    let place = grown();
    let answer = place.json(["save"]);
    assert_eq!(answer["checkpoint"]["message"], "not protected any more: grown.bin");
}

#[test]
fn step_and_try_report_a_dropped_file() {
    let place = grown();
    assert_eq!(dropped(&place.json(["step"])), &too_large("grown.bin"));
    assert_eq!(dropped(&place.json(["step"])), &json!([]));
    place.write("two.bin", LARGE);
    let run = place.run(["try", "--json", "--", "sh", "-c", "exit 1"]);
    let answer: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    assert_eq!((dropped(&answer), &answer["not_taken_back"]), (&too_large("two.bin"), &json!([])));
    assert!(run.stderr.contains("warning: not protected any more: two.bin"), "{}", run.stderr);
}

#[test]
fn a_pipeline_step_reports_what_its_checkpoints_dropped() {
    let place = grown();
    let grow = "head -c 200000 /dev/zero > two.bin";
    let pipeline = format!("steps:\n  - name: one\n    run: {grow}\n    checkpoint: true\n  - run: 'true'\n");
    fs::write(place.path("pipe.yaml"), pipeline).unwrap();
    let run = place.run(["pipeline", "--json", "../pipe.yaml"]);
    let answer = run.json();
    let mut expected = too_large("grown.bin");
    expected.as_array_mut().unwrap().extend(too_large("two.bin").as_array().unwrap().clone());
    assert_eq!(dropped(&answer["steps"][0]), &expected, "{}", run.shown());
    assert_eq!(dropped(&answer["steps"][1]), &json!([]));
    assert!(run.stderr.contains("not protected any more: two.bin"), "{}", run.stderr);
}

/// Regression: the output was "nothing to do: the files are those of" the prompt, although a file differed and its old
/// content was lost.
#[test]
fn rewind_names_files_that_cannot_be_restored() {
    let place = grown();
    let first = place.id("@");
    place.ok(["save", "--kind", "turn", "prompt"]);
    place.write("grown.bin", [b'h'; 210_000]);
    for words in [&["rewind", "--turn"][..], &["rewind", "--turn", "--dry-run"], &["restore", "@"]] {
        let run = place.run(words);
        let warning =
            format!("can't be restored: grown.bin (too large); the last checkpoint with it is {}", &first[..8]);
        assert!(run.stderr.contains(&warning), "{}", run.shown());
        assert!(!run.text().contains("nothing to do") && !run.stderr.contains("nothing changed"), "{}", run.shown());
    }
    let answer = place.json(["rewind", "--turn", "--dry-run"]);
    assert_eq!(answer["not_restored"], too_large("grown.bin"));
    fs::remove_file(place.path("ws/grown.bin")).unwrap();
    assert_eq!(place.json(["restore", "@"]).get("not_restored"), None, "the file no longer exists");
}

#[test]
fn doctor_reports_a_dropped_file_until_it_is_captured_again() {
    let place = grown();
    let failing = |place: &Place| -> Vec<String> {
        let checks = place.json(["doctor"])["checks"].as_array().unwrap().clone();
        let failing = checks.iter().filter(|check| check["ok"] == false && check["name"] == "protected");
        failing.map(|check| check["detail"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ["not protected: grown.bin (too large)"];
    assert_eq!(failing(&place), expected, "before the save that drops it");
    place.ok(["save", "grown"]);
    assert_eq!(failing(&place), expected);
    place.write("grown.bin", "small again\n");
    assert_eq!(failing(&place), [""; 0], "the next save captures it");
    place.ok(["save", "small again"]);
    assert_eq!(failing(&place), [""; 0]);
}
