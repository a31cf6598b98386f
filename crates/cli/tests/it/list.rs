use serde_json::Value;
use snapbox::str;

use crate::place::{Place, assert_shown};

fn ids(answer: &Value) -> Vec<&str> {
    answer["checkpoints"].as_array().unwrap().iter().map(|checkpoint| checkpoint["id"].as_str().unwrap()).collect()
}

#[test]
fn nothing_saved_yet() {
    let place = Place::new();
    assert_shown!(
        place.run(["list"]),
        str![[r#"
--- stderr
nothing saved yet; take the first checkpoint with: backtrail save
--- exit 0

"#]]
    );
    assert_eq!(place.ok(["list", "--json"]), "{\"checkpoints\":[]}\n");
    assert!(!place.path("home/backtrail").exists(), "a command that reads made a store");
}

#[test]
fn reads_as_a_timeline() {
    let place = Place::saved();
    place.write("a.txt", "one\n2\n");
    place.ok(["save", "--name", "mark", "second\x1b[31m\nwith more lines"]);
    place.remove("a.txt");
    place.ok(["save", "--kind", "step", "--step", "7", &"long words ".repeat(20)]);
    assert_shown!(
        place.run(["list"]),
        str![[r#"
@ [ID]  [WHEN] step 7  long words long words long words long words long words …  1 file −2
● [ID]  [WHEN] manual  [mark] second\x1b[31m                                     1 file +1 −1
● [ID]  [WHEN] manual  first                                                     2 files +3
--- exit 0

"#]]
    );
}

#[test]
fn aliases_and_filters_select() {
    let place = Place::saved();
    let first = place.id("@");
    place.write("dir/c", "c\n");
    place.ok(["save", "fix (a.b)*", "--kind", "step", "--session", "s1"]);
    let second = place.id("@");
    for word in ["list", "ls", "log"] {
        assert_eq!(ids(&place.json([word])), [second.as_str(), &first], "{word}");
    }
    let selected: [(&[&str], &[&str]); 8] = [
        (&["--limit", "1"], &[&second]),
        (&["--kind", "manual"], &[&first]),
        (&["--session", "s1"], &[&second]),
        (&["--path", "dir/c"], &[&second]),
        (&["--path", "dir"], &[&second, &first]),
        (&["--grep", "(a.b)*"], &[&second]),
        (&["--since", "1h"], &[&second, &first]),
        (&["--since", "2999-01-01T00:00:00Z"], &[]),
    ];
    for (words, expected) in selected {
        assert_eq!(ids(&place.json(["list"].iter().chain(words).copied())), expected, "{words:?}");
    }
    assert_shown!(
        place.run(["list", "--grep", "nothing of the sort"]),
        str![[r#"
--- stderr
no checkpoint fits; see all of them with: backtrail list
--- exit 0

"#]]
    );
}

#[test]
fn turns_are_those_of_prompts() {
    let place = Place::saved();
    assert_shown!(
        place.run(["list", "--turns"]),
        str![[r#"
--- stderr
no checkpoint fits; see all of them with: backtrail list
--- exit 0

"#]]
    );
    place.ok(["save", "ask", "--kind", "turn", "--allow-empty"]);
    let turn = place.id("@");
    assert_eq!(ids(&place.json(["list", "--turns"])), [&turn]);
    assert_shown!(
        place.run(["list", "--turns"]),
        str![[r#"
@ [ID]  [WHEN] prompt  ask  0 files
--- exit 0

"#]]
    );
}

#[test]
fn times_that_are_none() {
    assert_shown!(
        Place::new().run(["list", "--since", "soon"]),
        str![[r#"
--- stderr
error: "soon" is no time
hint: write a duration such as 20m or 7d, or a time such as 2026-11-15T14:30:00Z
--- exit 2

"#]]
    );
    assert_eq!(Place::new().run(["list", "--limit", "many"]).code, 2);
    let (code, word, _) = Place::new().run(["list", "--path", "/etc/passwd", "--json"]).error();
    assert_eq!((code, word.as_str()), (6, "path_outside_workspace"));
}
