//! `bisect`: the first checkpoint for which a command fails.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snapbox::str;

use crate::place::{Place, Run, assert_shown};

const TEST: &str = "! grep -q broken code";

/// Returns a workspace with six checkpoints, the first one empty. From number 4 on, `code` is broken.
fn place() -> (Place, Vec<String>) {
    let place = Place::new();
    place.write("kept", "k\n");
    let save = |number: usize| {
        let broken = if number >= 4 { "broken\n" } else { "" };
        place.write("code", format!("{number}\n{broken}"));
        place.ok(["save", &format!("number {number}")]);
        place.id("@")
    };
    let ids = (1..=6).map(save).collect();
    (place, ids)
}

fn bisect(place: &Place, options: &[&str], script: &str) -> (Run, Value) {
    let words = ["bisect", "--json"].into_iter().chain(options.iter().copied()).chain(["--", "sh", "-c", script]);
    let run = place.run(words);
    let answer = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    (run, answer)
}

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read_to_string(place.path("ws").join(name)).ok()
}

#[test]
fn the_answer_names_the_checkpoint_and_its_changes() {
    let (place, _) = place();
    assert_shown!(
        place.run(["bisect", "--", "sh", "-c", TEST]),
        str![[r#"
first bad: [ID] "number 4"
last good: [ID] "number 3"
  code | 3 ++-
  1 file +2 −1
--- stderr
1: [ID] "number 1" good
2: [ID] "number 6" bad
3: [ID] "number 4" bad
4: [ID] "number 3" good
take it back with: backtrail revert [ID]
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["bisect", "--bad", "@~4", "--", "sh", "-c", TEST]),
        str![[r#"
nothing to find: the command passes at the bad end
--- stderr
1: [ID] "number 1" good
2: [ID] "number 2" good
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["bisect", "--good", "@~1", "--", "sh", "-c", TEST]),
        str![[r#"
the command already fails at the good end: [ID] "number 5"
  code | 2 +-
  1 file +1 −1
--- stderr
1: [ID] "number 5" bad
take it back with: backtrail revert [ID]
--- exit 0

"#]]
    );
}

#[test]
fn changes_of_the_command_do_not_reach_the_next_state() {
    let (place, ids) = place();
    // Each state must have `kept`, `code` and `dir/x` again, whatever the command did to them.
    place.write("dir/x", "x\n");
    place.ok(["save", "with a directory"]);
    let script = "test -f kept && test \"$(cat kept)\" = k || exit 130; test ! -L code || exit 130; \
        r=0; grep -q broken code && r=1; \
        rm kept code; mkdir kept; touch kept/in; ln -s /etc/hostname code; rm -rf dir; touch dir; exit $r";
    let (run, answer) = bisect(&place, &[], script);
    assert_eq!((run.code, &answer["first_bad"]), (0, &Value::from(ids[3].as_str())), "{}", run.shown());
    assert_eq!((read(&place, "kept").as_deref(), read(&place, "dir/x").as_deref()), (Some("k\n"), Some("x\n")));
}

#[test]
fn a_linked_directory_is_never_written_to_by_a_checkpoint() {
    let (place, _) = place();
    place.write("vendor/own", "by hand\n");
    place.ok(["save", "with vendor"]);
    place.write(".gitignore", "vendor2\n");
    place.write("vendor2/own", "skipped\n");
    place.ok(["save", "ignored"]);
    let (_, answer) = bisect(&place, &["--link", "vendor2"], "test -e vendor2/own || exit 130; test ! -e vendor");
    assert_eq!(answer["changes"][0]["path"], "vendor/own", "{answer}");
    assert_eq!(read(&place, "vendor2/own").as_deref(), Some("skipped\n"));
    let run = place.run(["bisect", "--link", "vendor", "--", "true"]);
    assert!(run.code == 2 && run.stderr.contains("can't link \"vendor\""), "{}", run.shown());
}

/// An ignored directory is skipped because of the rule, not because a tool can rebuild it. It is linked all the same.
#[test]
fn rebuildable_directories_that_git_ignores_are_linked() {
    let (place, ids) = place();
    place.write(".gitignore", "node_modules/\nlogs\nignored-file\n");
    place.write("package.json", "{}\n");
    place.write("node_modules/lib", "x\n");
    place.write("logs/today", "x\n");
    place.write("ignored-file", "x\n");
    let (run, answer) = bisect(&place, &[], &format!("test -e node_modules/lib && test ! -e logs || exit 130; {TEST}"));
    assert_eq!(answer["first_bad"], ids[3].as_str(), "{}", run.shown());
}

#[test]
fn failures_have_their_exit_status() {
    let (place, _) = place();
    let run = place.run(["bisect", "--", "./no-such-program"]);
    assert_eq!(run.code, 127, "{}", run.shown());
    let (run, answer) = bisect(&place, &[], "kill -9 $$");
    assert_eq!((run.code, &answer["error"]["code"]), (1, &Value::from("io")), "{}", run.shown());
    let (run, answer) = bisect(&place, &[], "exit 125");
    assert_eq!((run.code, &answer["error"]["code"]), (2, &Value::from("usage")), "{}", run.shown());
    let (run, _) = bisect(&place, &["--good", "@", "--bad", "@~1"], TEST);
    assert_eq!(run.code, 2, "{}", run.shown());
    let (run, _) = bisect(&place, &["--good", "nothing"], TEST);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert_eq!(Place::new().run(["bisect", "--", "true"]).code, 3);
}

#[test]
fn the_command_runs_in_the_same_subdirectory() {
    let (place, _) = place();
    place.write("sub/x", "x\n");
    place.ok(["save", "sub"]);
    let words = ["bisect", "--json", "--good", "@", "--", "sh", "-c", "test -e x"];
    let run = place.run_in(&place.path("ws/sub"), words);
    let answer: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    assert_eq!(answer["first_bad"], Value::Null, "{}", run.shown());
}

#[test]
fn unsaved_work_comes_back_after_a_search_in_place() {
    let (place, ids) = place();
    place.write("code", "unsaved, broken\n");
    place.write("new", "n\n");
    let (run, answer) = bisect(&place, &["--in-place"], &format!("touch junk; {TEST}"));
    assert_eq!(answer["first_bad"], ids[3].as_str(), "{}", run.shown());
    assert_eq!(answer["tested"][1]["checkpoint"], Value::Null, "the files on disk: {answer}");
    assert_eq!(read(&place, "code").as_deref(), Some("unsaved, broken\n"));
    assert_eq!((read(&place, "new").as_deref(), read(&place, "junk")), (Some("n\n"), None));
    assert_eq!(place.json(["recover"])["outcome"], "nothing");
}

#[test]
fn unsaved_work_comes_back_after_a_killed_search_in_place() {
    let (place, ids) = place();
    place.write("code", "unsaved\n");
    let ready = place.path("ready");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", ready.display());
    let words = ["bisect", "--in-place", "--", "sh", "-c", &script];
    let mut child = place.command_with_default_signals(words).spawn().unwrap();
    let began = Instant::now();
    while !ready.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the command did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left: i32 = fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    assert_eq!(read(&place, "code").as_deref(), Some("1\n"), "the files are those of {}", ids[0]);
    let warned = place.run(["status"]).stderr;
    assert!(warned.contains("backtrail recover"), "{warned}");
    // Neither retention nor another `try` may let go of the way back.
    place.ok(["try", "--", "true"]);
    let recovered = place.json(["recover"]);
    assert_eq!(recovered["recovered"], true, "{recovered}");
    assert_eq!(read(&place, "code").as_deref(), Some("unsaved\n"));
    assert_eq!(place.json(["recover"])["outcome"], "nothing");
}
