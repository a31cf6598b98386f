use serde_json::Value;
use snapbox::str;

use crate::place::{Place, assert_shown};

fn ids(answer: &Value) -> Vec<&str> {
    answer["checkpoints"].as_array().unwrap().iter().map(|checkpoint| checkpoint["id"].as_str().unwrap()).collect()
}

#[test]
fn an_empty_timeline_is_reported_and_no_store_is_created() {
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
    assert!(!place.path("home/backtrail").exists(), "a command that reads created a store");
}

#[test]
fn the_timeline_is_drawn() {
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
fn aliases_and_filters_work() {
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
no checkpoint matches; list all with: backtrail list
--- exit 0

"#]]
    );
}

#[test]
fn turns_lists_the_checkpoints_of_prompts() {
    let place = Place::saved();
    assert_shown!(
        place.run(["list", "--turns"]),
        str![[r#"
--- stderr
no prompt has a checkpoint yet; an agent's hooks take them, see: backtrail install --list
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
fn invalid_times_limits_and_paths_are_refused() {
    assert_shown!(
        Place::new().run(["list", "--since", "soon"]),
        str![[r#"
--- stderr
error: "soon" is not a time
hint: write a duration such as 20m or 7d, or a time: 13:45, yesterday 12:31, 2026-11-15, 2026-11-15T14:30, or as list prints it
--- exit 2

"#]]
    );
    assert_eq!(Place::new().run(["list", "--limit", "many"]).code, 2);
    let (code, word, _) = Place::new().run(["list", "--path", "/etc/passwd", "--json"]).error();
    assert_eq!((code, word.as_str()), (6, "path_outside_workspace"));
}

#[test]
fn grep_without_capitals_ignores_case() {
    let place = Place::saved();
    place.write("a.txt", "2\n");
    place.ok(["save", "Fix the Parser"]);
    let count = |text: &str| place.json(["list", "--grep", text])["checkpoints"].as_array().unwrap().len();
    assert_eq!([count("parser"), count("Parser"), count("PARSER"), count("fix the p")], [1, 1, 0, 1]);
    let help = place.ok(["list", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("a text without capital letters"));
}

#[test]
fn since_accepts_a_time_of_day() {
    let place = Place::saved();
    let count = |since: &str| place.json(["list", "--since", since])["checkpoints"].as_array().unwrap().len();
    // A time of day means its last occurrence, within the last 24 hours.
    let earlier = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC) - jiff::Span::new().hours(1);
    let later = &earlier + jiff::Span::new().hours(2);
    assert_eq!(count(&earlier.strftime("%H:%M").to_string()), 1);
    assert_eq!(count(&later.strftime("%H:%M").to_string()), 1, "a time later than now is of yesterday");
    assert_eq!(count(&later.strftime("%Y-%m-%dT%H:%M").to_string()), 0);
    assert_eq!(place.run(["list", "--since", "25:00", "--json"]).error().1, "usage");
}

#[test]
fn the_error_for_a_time_before_all_checkpoints_names_the_oldest() {
    let place = Place::saved();
    let id = place.id("@");
    for word in ["ago:1h", "at:2020-01-01"] {
        let (exit, code, message) = place.run(["show", word, "--json"]).error();
        assert_eq!((exit, code.as_str()), (3, "unknown_checkpoint"));
        assert!(message.contains(word) && message.contains(&format!("{} was taken", &id[..8])), "{message}");
    }
    assert_eq!(Place::new().run(["show", "ago:1h", "--json"]).error().1, "unknown_checkpoint");
}

#[test]
fn a_hint_names_the_option_for_safety_checkpoints() {
    let place = Place::saved();
    place.write("lost", "unsaved\n");
    place.ok(["restore", "@"]);
    let run = place.run(["list", "--path", "lost"]);
    let command = run.stderr.trim().rsplit(" with: backtrail ").next().unwrap();
    assert_eq!(command, "list --all --path lost", "{}", run.shown());
    assert!(place.ok(command.split(' ')).contains("safety"));
    assert_eq!(place.run(["list"]).stderr, "");
}

#[test]
fn the_error_for_a_stray_argument_names_the_option() {
    let place = Place::saved();
    let hint = |word: &str| place.run(["list", word, "--json"]).json()["error"]["hint"].as_str().unwrap().to_owned();
    assert_eq!(hint("5"), "to list the last 5: backtrail list -n 5");
    assert_eq!(
        hint("a.txt"),
        "for changes of a path: backtrail list --path a.txt; for a text: backtrail list --grep a.txt"
    );
    assert_eq!(hint("--gerp"), "a similar argument exists: '--grep'");
}

#[test]
fn errors_for_unknown_checkpoints_have_a_hint() {
    let place = Place::new();
    let hint = |place: &Place, words: &[&str]| {
        let run = place.run(words.iter().chain(&["--json"]));
        assert_eq!(run.code, 3, "{}", run.shown());
        run.json()["error"]["hint"].as_str().unwrap().to_owned()
    };
    let first = "nothing saved yet; take the first checkpoint with: backtrail save";
    for words in [&["restore", "@"][..], &["show", "latest"], &["history", "a.txt"], &["rewind"]] {
        assert_eq!(hint(&place, words), first, "{words:?}");
    }
    let place = Place::saved();
    assert_eq!(hint(&place, &["restore", "13:00"]), "for a time, write: at:13:00");
    assert_eq!(hint(&place, &["status", "--since", "20m"]), "for a duration, write: ago:20m");
    assert_eq!(hint(&place, &["show", "nonsense"]), "list the checkpoints with: backtrail list");
    assert!(place.run(["list", "--turns"]).stderr.contains("backtrail install --list"));
    assert_eq!(place.json(["list", "--since", "yesterday"])["checkpoints"].as_array().unwrap().len(), 1);
}

/// Regression: most times that the list prints were refused as addresses.
#[test]
fn every_printed_time_is_an_address() {
    let place = Place::saved();
    let first = place.id("@");
    for printed in ["just now", "0 s ago"] {
        assert_eq!(place.id(&format!("at:{printed}")), first, "{printed}");
        let until = place.json(["list", "--until", printed]);
        assert_eq!(ids(&until), [first.as_str()], "{printed}");
    }
    let clock = place.ok(["history", "a.txt"]);
    let line = clock.lines().find(|line| line.contains("added")).unwrap();
    let time = line.split("  ").next().unwrap();
    assert_eq!(place.id(&format!("at:{time}")), first, "{time}");
    assert_eq!(ids(&place.json(["list", "--since", time, "--until", time])), [first.as_str()], "{time}");
}

#[test]
fn until_ends_the_list() {
    let place = Place::saved();
    let first = place.id("@");
    assert_eq!(ids(&place.json(["list", "--until", "2999-01-01"])), [first.as_str()]);
    assert_eq!(ids(&place.json(["list", "--until", "2000-01-01"])), [""; 0]);
    assert_eq!(ids(&place.json(["list", "--until", "20m"])), [""; 0]);
    assert_eq!(place.run(["list", "--until", "soon"]).code, 2);
}

#[test]
fn contents_finds_what_added_and_what_removed_a_text() {
    let place = Place::saved();
    place.write("b.rs", "fn needle() {}\n");
    place.ok(["save", "added"]);
    let added = place.id("@");
    place.write("other", "x\n");
    place.ok(["save", "between"]);
    place.write("b.rs", "// moved\nfn needle() {}\n");
    place.ok(["save", "kept"]);
    place.remove("b.rs");
    place.ok(["save", "removed"]);
    let removed = place.id("@");
    assert_eq!(ids(&place.json(["list", "--contents", "fn needle"])), [removed.as_str(), &added]);
    assert_eq!(ids(&place.json(["list", "--contents", "fn needle", "--limit", "1"])), [removed.as_str()]);
    assert_eq!(ids(&place.json(["list", "--contents", "fn needle", "--path", "other"])), [""; 0]);
    assert_eq!(ids(&place.json(["list", "--contents", "FN NEEDLE"])), [""; 0]);
    assert_eq!(place.run(["list", "--contents", ""]).code, 2);
}

#[test]
fn globs_select_checkpoints_by_changed_paths() {
    let place = Place::saved();
    place.write("docs/guide.md", "1\n");
    place.ok(["save", "docs"]);
    let docs = place.id("@");
    place.write("src.rs", "1\n");
    place.ok(["save", "code"]);
    let code = place.id("@");
    assert_eq!(ids(&place.json(["list", "--glob", "*.md"])), [docs.as_str()]);
    assert_eq!(ids(&place.json(["list", "--glob", "*.md", "--glob", "*.rs"])), [code.as_str(), &docs]);
    assert_eq!(ids(&place.json(["list", "--glob", "docs"])), [docs.as_str()]);
}

#[test]
fn paths_that_exist_nowhere_are_refused_with_the_nearest_one() {
    let place = Place::saved();
    place.write("docs/guide.md", "1\n");
    place.ok(["save", "docs"]);
    for words in [
        &["list", "--path", "docs/giude.md"][..],
        &["diff", "--", "docs/giude.md"],
        &["history", "docs/giude.md"],
        &["show", "@", "docs/giude.md"],
        &["cat", "@", "docs/giude.md"],
        &["restore", "@", "docs/giude.md"],
        &["blame", "docs/giude.md"],
    ] {
        let run = place.run(std::iter::once(&"--json").chain(words));
        assert_eq!((run.error().0, run.error().1.as_str()), (3, "unknown_path"), "{words:?}");
        assert!(run.stderr.contains("hint: did you mean docs/guide.md?"), "{words:?}: {}", run.stderr);
    }
    let moved = place.run(["--json", "history", "guide.md"]);
    assert!(moved.stderr.contains("did you mean docs/guide.md?"), "the same name in another directory");
    let pattern = place.run(["--json", "diff", "--", "*.md"]);
    assert_eq!(pattern.code, 3);
    assert!(pattern.stderr.contains("literally") && pattern.stderr.contains("--glob"), "{}", pattern.stderr);
    place.remove("docs/guide.md");
    place.ok(["save", "gone"]);
    for words in [&["list", "--path", "docs/guide.md"][..], &["diff", "--", "docs/guide.md"], &["history", "docs"]] {
        assert_eq!(place.run(words.iter().copied()).code, 0, "{words:?}: a path of the past is known");
    }
}

#[test]
fn brief_answers_have_numbers_instead_of_lists() {
    let place = Place::saved();
    let brief = place.json(["list", "--brief"]);
    let checkpoint = &brief["checkpoints"][0];
    assert_eq!(checkpoint["changed_count"], 2);
    assert!(checkpoint.get("files_changed").is_none(), "{checkpoint}");
    assert_eq!(place.run(["list", "--brief"]).code, 2, "only for programs");
}

#[test]
fn safety_checkpoints_can_be_left_out_of_json() {
    let place = Place::saved();
    let first = place.id("@");
    place.write("a.txt", "unsaved\n");
    place.ok(["restore", "@"]);
    assert_eq!(ids(&place.json(["list"])).len(), 2);
    assert_eq!(ids(&place.json(["list", "--no-safety"])), [first.as_str()]);
}
