//! `--log`, `BACKTRAIL_LOG` and the log file.

use std::{fs, io::Write, path::PathBuf, process::Stdio};

use serde_json::{Value, json};

use crate::{owners::Owner, place::Place};

fn log_file(place: &Place) -> PathBuf {
    place.path("home/backtrail/log/backtrail.log")
}

fn log(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(log_file(place)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the commands and operations in the log.
fn operations(place: &Place) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    log(place).iter().map(|line| format!("{}: {}", text(&line["command"]), text(&line["operation"]))).collect()
}

#[test]
fn the_level_decides_what_is_printed_to_stderr() {
    let place = Place::saved();
    let printed = |level: &str| {
        let run = place.run(["--log", level, "save", "--allow-empty"]);
        assert!(run.text().starts_with("saved "), "{}", run.shown());
        let has = |word: &str| run.stderr.lines().any(|line| line.split_whitespace().nth(1) == Some(word));
        (has("INFO"), has("DEBUG"), run.stderr.contains("scan{"), run.stderr.contains("save{store="))
    };
    assert_eq!(printed("error"), (false, false, false, false));
    assert_eq!(printed("warn"), (false, false, false, false));
    assert_eq!(printed("info"), (true, false, false, true));
    assert_eq!(printed("debug"), (true, true, true, true));
    assert_eq!(printed("trace"), (true, true, true, true));
    place.write("new-file", "1\n");
    let traced = place.run(["save", "--log", "trace"]);
    assert!(traced.stderr.contains("TRACE") && traced.stderr.contains("new-file"), "{}", traced.shown());
    let failed = place.run(["--log", "error", "show", "nope"]);
    assert!(
        failed.stderr.contains("ERROR") && failed.stderr.contains("code=\"unknown_checkpoint\""),
        "{}",
        failed.shown()
    );
    assert_eq!(place.run(["save"]).stderr.lines().filter(|line| line.contains("INFO")).count(), 0);
}

#[test]
fn the_option_wins_over_the_variable() {
    let mut place = Place::saved();
    place.set("BACKTRAIL_LOG", "Debug");
    assert!(place.run(["status"]).stderr.contains("DEBUG status{"));
    assert_eq!(place.run(["status", "--log", "error"]).stderr, "");
    place.set("BACKTRAIL_LOG", "");
    assert_eq!(place.run(["status"]).stderr, "");
}

#[test]
fn an_unknown_level_is_a_usage_error() {
    let mut place = Place::saved();
    let (exit, code, message) = place.run(["--json", "list", "--log", "loud"]).error();
    assert_eq!((exit, code.as_str()), (2, "usage"));
    assert!(message.contains("--log") && message.contains("trace"), "{message}");
    place.set("BACKTRAIL_LOG", "loud");
    let (exit, code, message) = place.run(["--json", "list"]).error();
    assert_eq!((exit, code.as_str()), (2, "usage"));
    assert_eq!(message, "BACKTRAIL_LOG is \"loud\", but must be error, warn, info, debug or trace");
    assert_eq!(place.run(["--log", "warn", "list"]).code, 0);
    assert_eq!(place.run(["--help"]).code, 0);
}

#[test]
fn stdout_stays_data() {
    let mut place = Place::saved();
    place.set("BACKTRAIL_LOG", "trace");
    assert!(place.json(["status"])["changes"].is_array());
    assert_eq!(place.run(["cat", "@", "a.txt"]).text(), "one\ntwo\n");
}

/// A closed stderr must not fail a command.
#[test]
fn a_closed_stderr_is_not_an_error() {
    let place = Place::saved();
    let script = format!("{} --log trace save --allow-empty 2>&-", env!("CARGO_BIN_EXE_backtrail"));
    let done = place.shell(&script).output().unwrap();
    assert!(done.status.success() && done.stdout.starts_with(b"saved "), "{done:?}");
}

#[test]
fn an_operation_that_writes_is_one_line_of_the_log_file() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    for words in
        [&["list"][..], &["status"], &["diff"], &["show", "@"], &["verify"], &["doctor"], &["doctor", "--report"]]
    {
        place.ok(words);
    }
    place.ok(["restore", "@", "--dry-run"]);
    assert_eq!(operations(&place), ["save: save"], "reading adds nothing");
    place.ok(["restore", "@"]);
    place.ok(["undo"]);
    place.ok(["pin", "@"]);
    place.ok(["prune"]);
    assert_eq!(place.run(["restore", "nope"]).code, 3);
    let expected = ["save: save", "restore: restore", "undo: undo", "pin: pin", "prune: prune", "restore: -"];
    assert_eq!(operations(&place), expected);
    let lines = log(&place);
    let store = place.store().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!((&lines[0]["store"], &lines[0]["code"]), (&json!(store), &Value::Null));
    assert_eq!((&lines[0]["details"]["changes"], &lines[0]["events"]), (&json!(2), &json!(["store_created"])));
    assert_eq!(lines[5]["code"], "unknown_checkpoint");
    assert!(lines.iter().all(|line| line["milliseconds"].is_u64() && line["version"] == env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_demo_is_not_in_the_log_file() {
    let place = Place::saved();
    place.ok(["demo"]);
    assert_eq!(operations(&place), ["save: save"]);
}

#[test]
fn a_log_is_no_reason_to_create_a_home() {
    let place = Place::new();
    for words in [&["undo"][..], &["recover"], &["prune"], &["list"], &["status"], &["doctor", "--report"]] {
        assert_eq!(place.run(words).code, 0, "{words:?}");
    }
    assert_eq!(place.run(["restore", "nope"]).code, 3);
    let elsewhere = place.path("elsewhere").display().to_string();
    place.ok(["save", "--store", &elsewhere]);
    assert!(!place.path("home/backtrail").exists());
}

#[test]
fn a_log_that_cannot_be_written_fails_no_command() {
    for script in [
        "rm -r $BACKTRAIL_HOME/log && : > $BACKTRAIL_HOME/log",
        "rm $BACKTRAIL_HOME/log/backtrail.log && mkdir $BACKTRAIL_HOME/log/backtrail.log",
        "rm $BACKTRAIL_HOME/log/backtrail.log && mkfifo $BACKTRAIL_HOME/log/backtrail.log",
        "rm $BACKTRAIL_HOME/log/backtrail.log && ln -s /dev/full $BACKTRAIL_HOME/log/backtrail.log",
    ] {
        let place = Place::saved();
        assert!(place.shell(script).status().unwrap().success(), "{script}");
        place.write("a.txt", "changed\n");
        let run = place.run(["save"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{script}: {}", run.shown());
        let report = place.run(["doctor", "--report"]);
        assert_eq!((report.code, report.stderr.as_str()), (0, ""), "{script}: {}", report.shown());
    }
}

#[test]
fn a_home_that_cannot_be_written_can_be_read() {
    let place = Place::saved();
    let owner = Owner::of(&place);
    owner.run(&place, "chmod -R a-w $BACKTRAIL_HOME; $backtrail save --allow-empty --store ../elsewhere");
    for words in ["--help", "list", "status", "diff", "show @", "doctor", "doctor --report", "verify"] {
        owner.run(&place, &format!("$backtrail {words}"));
    }
    assert_eq!(operations(&place), ["save: save"]);
    owner.run(&place, "chmod -R u+w $BACKTRAIL_HOME");
}

fn hook(place: &Place, prompt: &str) -> (String, String) {
    let payload =
        json!({"session_id": "s", "cwd": place.path("ws"), "hook_event_name": "UserPromptSubmit", "prompt": prompt});
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn hooks_are_recorded_and_print_nothing() {
    let mut place = Place::saved();
    for level in ["trace", "loud"] {
        place.set("BACKTRAIL_LOG", level);
        assert_eq!(hook(&place, "a secret prompt"), (String::new(), String::new()), "{level}");
    }
    assert_eq!(operations(&place), ["save: save", "hook claude prompt: save", "hook claude prompt: save"]);
    assert!(!fs::read_to_string(log_file(&place)).unwrap().contains("secret"));
}
