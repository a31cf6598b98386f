//! `blame`: the lines of a file with their origins, for people.

use snapbox::str;

use crate::{
    conversation::{SESSION, hook, prompt},
    place::{Place, assert_shown},
};

#[test]
fn each_line_has_a_gutter() {
    let place = Place::saved();
    place.write("a.txt", "one\ntwo\nthree \x1b[31m\n");
    place.ok(["save", "second"]);
    place.write("a.txt", "one\nunsaved\ttab\ntwo\nthree \x1b[31m\n");
    assert_shown!(
        place.run(["blame", "a.txt"]),
        str![[r#"
 [ID]  manual  [WHEN] 1 │ one
 unsaved                     2 │ unsaved	tab
 [ID]  manual  [WHEN] 3 │ two
 [ID]  manual  [WHEN] 4 │ three \x1b[31m
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["annotate", "a.txt", "@~1", "-L", "2,2"]),
        str![[r#"
 [ID]  manual  [WHEN] 2 │ two
--- exit 0

"#]]
    );
}

#[test]
fn the_prompt_stands_where_its_lines_begin() {
    let place = Place::new();
    place.write("a", "1\n2\n");
    prompt(&place, "claude", 1);
    let tool = |event: &str| {
        serde_json::json!({ "session_id": SESSION, "hook_event_name": event, "cwd": place.path("ws"),
            "tool_name": "Write", "tool_input": { "file_path": place.path("ws/a") }, "tool_use_id": "t" })
    };
    hook(&place, "claude", &tool("PreToolUse"));
    place.write("a", "1\nx\ny\n2\n");
    hook(&place, "claude", &tool("PostToolUse"));
    let text = place.ok(["blame", "a"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("prompt 1 ") && lines[1].ends_with("prompt 1  2 │ x"), "{text}");
    assert!(lines[2].contains("prompt 1 ") && !lines[2].contains("prompt 1  3"), "{text}");
}

#[test]
fn lines_of_a_deleted_checkpoint_are_marked() {
    let place = Place::saved();
    place.write("a.txt", "one\ntwo\nthree\n");
    place.ok(["save", "second"]);
    place.write("a.txt", "one\ntwo\nthree\nfour\n");
    place.ok(["save", "third"]);
    place.ok(["delete", "@~1"]);
    let run = place.run(["blame", "a.txt", "-L", "3,3"]);
    assert!(run.text().starts_with(&format!("≈{}", &place.id("@")[..8])), "{}", run.shown());
    assert!(run.stderr.contains("≈ marks lines"), "{}", run.shown());
}

#[test]
fn a_file_that_is_only_saved_is_hinted_at() {
    let place = Place::saved();
    place.remove("a.txt");
    assert_shown!(
        place.run(["blame", "a.txt"]),
        str![[r#"
--- stderr
error: a.txt is not in the workspace
hint: the last checkpoint has it: backtrail blame a.txt @
--- exit 3

"#]]
    );
    assert_eq!(place.run(["blame", "a.txt", "@"]).code, 0);
    for words in [["-L", "3"], ["-L", "0,1"], ["-L", "2,1"], ["-L", "9,9"]] {
        assert_eq!(place.run(["blame", "a.txt", "@", words[0], words[1]]).code, 2, "{words:?}");
    }
}
