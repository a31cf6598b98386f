use std::fs;

use snapbox::{IntoData, str};

use crate::place::{Place, assert_shown, raw};

#[test]
fn there_is_nothing_before_the_first_checkpoint() {
    let place = Place::saved();
    let (code, word, message) = place.run(["show", "before:@", "--json"]).error();
    assert_eq!((code, word.as_str()), (3, "unknown_checkpoint"));
    assert_eq!(message, "there is nothing before @: it is the first");
    place.write("a.txt", "changed\n");
    place.ok(["save"]);
    let (_, _, message) = place.run(["show", "before:before:@", "--json"]).error();
    assert_eq!(message, "there is nothing before before:@: it is the first");
}

#[test]
fn show_prints_the_whole_record() {
    let place = Place::saved();
    fs::write(place.path("chat"), "12345").unwrap();
    place.write("a.txt", "one\n");
    place.write("new\x1b[31m", "n\n");
    place.remove("dir/b.txt");
    let words = "--description more --name mark --agent claude --session s-1 --session-number 2 --tokens 900 --step 4 \
                 --meta k=v --attach chat=../chat";
    place.ok(["save", "-m", "subject\n\nbody \x07"].into_iter().chain(words.split(' ')));
    let run = place.run(["show", "mark"]);
    let shown = run.shown();
    let time = shown.lines().find(|line| line.starts_with("time")).unwrap();
    assert!(time.contains("([WHEN])"), "{time}");
    let without_time: String = shown.lines().filter(|line| *line != time).map(|line| format!("{line}\n")).collect();
    snapbox::assert_data_eq!(
        without_time,
        str![[r#"
checkpoint [ID40]
kind         manual
name         mark
parent       [ID40]
agent        claude
session      s-1
session no.  2
tokens       900
step         4
attachment   chat (5 B)
metadata     k = v

    subject

    body \x07

    more

3 changes +1 −2
  modified  a.txt  −1
  deleted   dir/b.txt  −1
  added     new\x1b[31m  +1
--- exit 0

"#]]
        .raw()
    );
}

#[test]
fn json_has_checkpoint_and_changes() {
    let place = Place::saved();
    place.write(raw(b"x\xff"), "x\n");
    fs::create_dir(place.path("ws/empty")).unwrap();
    place.ok(["save"]);
    let shown = place.json(["show", "@"]);
    let keys: Vec<_> = shown.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["checkpoint", "changes"]);
    assert_eq!(
        shown["changes"][0].to_string(),
        r#"{"path":"empty/","status":"added","insertions":0,"deletions":0,"binary":false}"#
    );
    assert_eq!(
        shown["changes"][1].to_string(),
        r#"{"path":"x�","status":"added","insertions":1,"deletions":0,"binary":false,"path_base64":"eP8="}"#
    );
}

#[test]
fn unknown_checkpoints_are_refused() {
    let place = Place::saved();
    assert_shown!(
        place.run(["show", "nonsense"]),
        str![[r#"
--- stderr
error: no checkpoint fits "nonsense"
hint: see them with: backtrail list
--- exit 3

"#]]
    );
    for word in ["", "@~1", "before:@", "step:3", "ago:1h", "HEAD"] {
        let (code, error, _) = place.run(["show", word, "--json"]).error();
        assert_eq!((code, error.as_str()), (3, "unknown_checkpoint"), "{word:?}");
    }
    assert_eq!(place.run(["show", "-x"]).code, 2);
    assert_eq!(place.run(["show"]).code, 2);
}
