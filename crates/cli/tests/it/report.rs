//! `doctor --report`.

use std::{fs, io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::place::Place;

/// Fills a place with secrets, wherever the user or an agent can put text.
fn place_with_secrets() -> Place {
    let place = Place::new();
    place.user_settings("[pipelines]\nagent = \"run --key SECRET {prompt}\"\n[scan]\nexclude = [\"SECRET.tmp\"]\n");
    place.write("backtrail.toml", "[scan]\ninclude = [\"SECRET.log\"]\n[state]\nfeatures = \"SECRET.json\"\n");
    place.write("SECRET.txt", "SECRET\n");
    place.write("SECRET-dir/.env", "KEY=SECRET\n");
    let words = ["save", "SECRET", "--name", "SECRET", "--description", "SECRET", "--session", "SECRET"];
    place.ok(words.into_iter().chain(["--agent", "SECRET", "--meta", "k=SECRET", "--kind", "step", "--step", "1"]));
    place.write("SECRET.txt", "SECRET again\n");
    assert_eq!(place.run(["try", "-m", "SECRET", "--", "sh", "-c", "echo SECRET > SECRET.new; exit 3"]).code, 3);
    place.ok(["restore", "SECRET", "SECRET.txt"]);
    place.ok(["undo"]);
    assert_eq!(place.run(["restore", "SECRET-unknown"]).code, 3);
    assert_eq!(place.run(["cat", "@", "SECRET-unknown"]).code, 3);
    assert_eq!(place.run(["save", "--include", "SECRET-unknown"]).code, 3);
    let prompt = json!({
        "session_id": "SECRET", "cwd": place.path("ws"), "hook_event_name": "UserPromptSubmit", "prompt": "SECRET",
    });
    hook(&place, &["claude"], prompt.to_string().as_bytes());
    hook(&place, &["claude"], b"[SECRET");
    hook(&place, &["SECRET"], b"{}");
    place
}

fn hook(place: &Place, words: &[&str], payload: &[u8]) {
    let mut command = place.command(&place.path("ws"), ["hook"].iter().chain(words));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A hook of an unknown agent does not read its payload.
    drop(child.stdin.take().unwrap().write_all(payload));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_report_has_no_secrets_and_no_paths() {
    let place = place_with_secrets();
    let (text, answer) = (place.ok(["doctor", "--report"]), place.ok(["--json", "doctor", "--report"]));
    let log = fs::read_to_string(place.path("home/backtrail/log/backtrail.log")).unwrap();
    let root = place.path("").display().to_string();
    for (name, shown) in [("text", text), ("json", answer), ("log", log)] {
        assert!(!shown.contains("SECRET"), "{name}: {shown}");
        assert!(!shown.contains(&root), "{name}: {shown}");
        for operation in ["save", "restore", "undo", "unknown_checkpoint"] {
            assert!(shown.contains(operation), "{name} lacks {operation}: {shown}");
        }
    }
}

#[test]
fn a_report_tells_what_happened() {
    let place = place_with_secrets();
    let report = place.json(["doctor", "--report"]);
    assert_eq!(report["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["system"]["kernel"].as_str().unwrap().starts_with("Linux "), "{report}");
    assert!(report["system"]["git"].as_str().unwrap().starts_with(|c: char| c.is_ascii_digit()), "{report}");
    let variables = report["variables"].as_array().unwrap();
    assert!(variables.contains(&json!("BACKTRAIL_HOME")) && variables.contains(&json!("GIT_CONFIG_NOSYSTEM")));
    let setting = |name: &str| {
        let settings = report["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["name"] == name).unwrap();
        (found["value"].as_str().unwrap().to_owned(), found["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(setting("pipelines.agent"), ("(set)".into(), "the user's file".into()));
    assert_eq!(setting("scan.include"), ("(set)".into(), "the workspace's file".into()));
    assert_eq!(setting("retention.step"), ("100".into(), "default".into()));
    let words = |list: &str, key: &str| -> Vec<String> {
        let list = report[list].as_array().unwrap().iter();
        list.map(|line| line[key].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(words("operations", "operation"), ["restore", "restore", "undo"]);
    assert_eq!(report["operations"][1]["paths"], 1);
    assert!(words("events", "event").contains(&"checkpoint_restored".to_owned()));
    assert_eq!(words("hooks", "agent"), ["claude", "unknown"]);
    assert!(words("log", "command").contains(&"try".to_owned()));
    assert_eq!(report["workspace"]["checkpoints"]["turn"], 1);
    assert_eq!((&report["problem"], &report["workspace"]["has_git"]), (&Value::Null, &json!(false)));
}

#[test]
fn only_lines_about_the_workspace_are_reported() {
    let place = Place::saved();
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("other/a"), "1\n").unwrap();
    assert_eq!(place.run_in(&place.path("other"), ["save"]).code, 0);
    let lines = |directory: &str| {
        let run = place.run_in(&place.path(directory), ["--json", "doctor", "--report"]);
        run.json()["log"].as_array().unwrap().iter().map(|line| line["store"].clone()).collect::<Vec<_>>()
    };
    let (here, there) = (lines("ws"), lines("other"));
    assert_eq!((here.len(), there.len()), (1, 1));
    assert_ne!(here, there);
}

#[test]
fn a_report_works_where_nothing_else_does() {
    let mut place = Place::saved();
    let gone = place.run(["-w", "missing", "--json", "doctor", "--report"]);
    assert_eq!(gone.code, 0, "{}", gone.shown());
    assert_eq!((&gone.json()["problem"], &gone.json()["workspace"]), (&json!("io"), &Value::Null));
    fs::write(place.store().join("backtrail/ops"), "junk\n").unwrap();
    assert_eq!(place.json(["doctor", "--report"])["workspace"]["has_damaged_operations"], true);
    place.unset("HOME");
    place.unset("BACKTRAIL_HOME");
    let homeless = place.run(["doctor", "--report"]);
    assert_eq!(homeless.code, 0, "{}", homeless.shown());
    assert!(homeless.text().contains("the workspace can't be examined: usage"), "{}", homeless.shown());
}
