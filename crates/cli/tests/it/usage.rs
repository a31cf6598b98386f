//! Invalid command lines.

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn unknown_commands_and_options_are_refused() {
    let place = Place::new();
    assert_shown!(
        place.run(["frobnicate"]),
        str![[r#"
--- stderr
error: unrecognized subcommand 'frobnicate'
hint: see the commands with: backtrail --help
--- exit 2

"#]]
    );
    assert_shown!(
        place.run(["sav"]),
        str![[r#"
--- stderr
error: unrecognized subcommand 'sav'
hint: a similar subcommand exists: 'save'
--- exit 2

"#]]
    );
    assert_shown!(
        place.run(["save", "--jsno", "--json"]),
        str![[r#"
{"error":{"code":"usage","message":"unexpected argument '--jsno' found","hint":"a similar argument exists: '--json'"}}
--- stderr
error: unexpected argument '--jsno' found
hint: a similar argument exists: '--json'
--- exit 2

"#]]
    );
    assert_shown!(
        place.run(["save", "-m"]),
        str![[r#"
--- stderr
error: a value is required for '--message <MESSAGE>' but none was supplied
hint: see: backtrail save --help
--- exit 2

"#]]
    );
    assert_shown!(
        place.run(["-w", "", "list"]),
        str![[r#"
--- stderr
error: a value is required for '--workspace <DIR>' but none was supplied
hint: see: backtrail list --help
--- exit 2

"#]]
    );
}

#[test]
fn json_after_two_dashes_is_a_path() {
    let place = Place::saved();
    let run = place.run(["diff", "--no-such", "--", "--json"]);
    assert_eq!((run.code, run.text().as_str()), (2, ""));
}

#[test]
fn global_options_work_in_any_position() {
    let place = Place::saved();
    let workspace = place.path("ws");
    let workspace = workspace.to_str().unwrap();
    let expected = place.ok(["list", "--json"]);
    let home = place.path("home");
    for words in [
        ["--json", "-w", workspace, "list"],
        ["-w", workspace, "list", "--json"],
        ["list", "--workspace", workspace, "--json"],
    ] {
        assert_eq!(place.run_in(&home, words).text(), expected, "{words:?}");
    }
}

#[test]
fn a_missing_workspace_is_reported() {
    let place = Place::saved();
    assert_shown!(
        place.run(["save", "-w", "missing"]),
        str![[r#"
--- stderr
error: can't find the workspace [ROOT]/ws/missing: no such file or directory
hint: if it was deleted, create the directory again and restore the files there with: backtrail restore @
--- exit 1

"#]]
    );
    assert_shown!(
        place.run(["save", "-w", "a.txt"]),
        str![[r#"
--- stderr
error: [ROOT]/ws/a.txt is not a directory
--- exit 1

"#]]
    );
    assert!(!place.path("ws/missing").exists());
}

#[test]
fn errors_for_invalid_addresses_name_the_expected_form() {
    let place = Place::saved();
    for (word, expected) in [
        ("ago:soon", "such as ago:20m"),
        ("at:noon", "such as at:14:30"),
        ("step:x", "a number after step:"),
        ("@x", "@~N where N is a number"),
        ("before:ago:x", "such as ago:20m"),
        ("", "an id, a name, or a word such as @"),
    ] {
        let (code, _, message) = place.run(["--json", "show", word]).error();
        assert!(code == 3 && message.contains(expected), "{word:?}: {message}");
    }
}

#[test]
fn errors_stay_on_one_line() {
    let place = Place::saved();
    let run = place.run(["show", "two\nlines\x1b[31m"]);
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    assert!(!run.stderr.contains('\x1b'), "{:?}", run.stderr);
}

#[test]
fn a_prefix_of_an_id_needs_four_characters() {
    let place = Place::saved();
    let id = place.id("@");
    let (code, word, message) = place.run(["show", &id[..3], "--json"]).error();
    assert_eq!((code, word.as_str()), (3, "unknown_checkpoint"));
    assert!(message.ends_with("write at least the first four characters of an id"), "{message}");
    assert_eq!(place.id(&id[..4]), id);
}

#[test]
fn words_of_other_tools_get_the_right_answer() {
    let place = Place::saved();
    let hint = |words: &[&str]| {
        let run = place.run(std::iter::once(&"--json").chain(words));
        assert_eq!(run.code, 2, "{}", run.shown());
        run.stderr
    };
    for (words, part) in [
        (&["stash"][..], "backtrail save, then backtrail restore"),
        (&["reflog"], "backtrail list --all"),
        (&["checkout", "abcd"], "backtrail restore ID"),
        (&["reset", "--hard"], "backtrail restore @"),
        (&["commit", "-m", "x"], "backtrail save MESSAGE"),
        (&["list", "-p"], "backtrail show ID --patch"),
        (&["log", "-S", "x"], "backtrail list --contents TEXT"),
        (&["diff", "-p"], "backtrail diff"),
        (&["diff", "--cached"], "no staging area"),
        (&["status", "--short"], "backtrail status --json"),
        (&["save", "-am", "x"], "save takes all files"),
        (&["restore", "--source=abcd", "a.txt"], "backtrail restore ID PATH"),
    ] {
        assert!(hint(words).contains(part), "{words:?}: {}", hint(words));
    }
    assert!(hint(&["sav"]).contains("'save'"), "a typing mistake still gets the nearest word");
}
