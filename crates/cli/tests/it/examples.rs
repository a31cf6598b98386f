//! Runs every example in `examples/` without a network, and checks the result.

use std::{fs, path::Path, process::Command};

use crate::place::Place;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Runs an example in the workspace of a new place. Returns the place and the output.
fn run(name: &str) -> (Place, String) {
    let mut place = Place::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_backtrail")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    place.set("PATH", &path);
    let template = place.command(&place.path(""), ["x"]);
    let mut command = Command::new("sh");
    command.arg(format!("{EXAMPLES}/{name}.sh")).arg(place.path("ws")).env_clear().current_dir(place.path(""));
    command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {shown}");
    (place, shown)
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path("ws").join(name)).unwrap_or_default()
}

#[test]
fn every_example_has_a_test() {
    let names = fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".sh")).collect();
    names.sort();
    let expected = [
        "autonomous-loop.sh",
        "coding-agent.sh",
        "context-tracker.sh",
        "error-recoverer.sh",
        "parallel-attempts.sh",
        "stand-in-model.sh",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_autonomous_loop_works_through_its_list() {
    let (place, shown) = run("autonomous-loop");
    assert!(shown.contains("rolled back"), "the failed attempt at divide was not rolled back: {shown}");
    assert_eq!(read(&place, "calc.sh").lines().count(), 4, "{shown}");
    assert_eq!(read(&place, "scratch.tmp"), "", "a file of the failed attempt is still there");
    assert_eq!(read(&place, "progress.md"), "# Progress\n- add: done\n- subtract: done\n- divide: done\n");
    let features = place.json(["list", "--kind", "feature"]);
    let features = features["checkpoints"].as_array().unwrap();
    let names: Vec<&str> = features.iter().map(|made| made["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["divide", "subtract", "add"]);
    let tokens: Vec<u64> = features.iter().map(|made| made["context"]["token_usage"].as_u64().unwrap()).collect();
    assert_eq!(tokens, [4000, 2000, 1000], "divide took two attempts");
    assert_eq!(features[1]["feature_state"]["completed"], serde_json::json!(["add", "subtract"]));
    assert_eq!(features[1]["feature_state"]["current"], "divide");
    assert_eq!(place.json(["list", "--kind", "session"])["checkpoints"].as_array().unwrap().len(), 1);
    assert_eq!(place.json(["list", "--kind", "automatic"])["checkpoints"].as_array().unwrap().len(), 4);
}

#[test]
fn the_error_recoverer_survives_every_failure() {
    let (place, shown) = run("error-recoverer");
    for word in ["failed with 3", "failed with 124", "failed with 1,", "a good migration: succeeded"] {
        assert!(shown.contains(word), "{word:?} not in {shown}");
    }
    assert_eq!((read(&place, "schema"), read(&place, "data")), ("schema 2\n".into(), "row\n".into()));
}

#[test]
fn the_coding_agent_can_take_back_each_step() {
    let (place, shown) = run("coding-agent");
    let steps = place.json(["list", "--kind", "step"]);
    assert_eq!(steps["checkpoints"].as_array().unwrap().len(), 5, "{shown}");
    assert_eq!(read(&place, "a.txt"), "one\n");
}

#[test]
fn the_context_tracker_restores_its_context() {
    let (place, shown) = run("context-tracker");
    let second = place.json(["show", "second"])["checkpoint"].clone();
    assert_eq!(second["context"], serde_json::json!({"session_number": 5, "token_usage": 45000}), "{shown}");
    assert_eq!(second["feature_state"], serde_json::json!({"current": "auth-002", "completed": ["auth-001"]}));
    assert_eq!(second["metadata"]["model"], "example");
    let conversation = place.ok(["cat", "second", "--attachment", "conversation"]);
    assert_eq!(conversation.lines().count(), 2);
}

#[test]
fn the_best_of_the_parallel_attempts_is_adopted() {
    let (place, shown) = run("parallel-attempts");
    for (number, passed) in [(1, 0), (2, 3), (3, 2)] {
        assert!(shown.contains(&format!("attempt {number} passes {passed} of 3 checks")), "{shown}");
    }
    let words = read(&place, "words.sh");
    assert!(words.starts_with("# Functions for words and lines.\n"), "the edit made meanwhile is lost: {words}");
    assert!(words.ends_with("shout() { echo \"$*\" | tr '[:lower:]' '[:upper:]'; }\n"), "{words}");
    assert!(shown.contains("merged with later edits: words.sh"), "{shown}");
    assert_eq!(place.json(["forks"])["forks"].as_array().unwrap().len(), 3);
    place.ok(["undo"]);
    assert!(!read(&place, "words.sh").contains("shout"), "the adoption can be undone");
}
