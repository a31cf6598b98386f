//! Malicious and invalid calls. Each is refused with an error, and no file of the user changes.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use super::client::Client;
use crate::place::Place;

/// Returns every file below a directory with its bytes. For a symlink these are its target.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let bytes = if kind.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if kind.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path.display().to_string(), bytes);
        }
    }
    found
}

/// Returns the checkpoints, as plain git lists them.
fn refs(place: &Place) -> String {
    let output = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(place.store())
        .args(["for-each-ref", "--format=%(refname) %(objectname)"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn bad_paths(place: &Place) -> Vec<String> {
    let outside = place.path("outside").display().to_string();
    let root = place.path("ws").display().to_string();
    let mut paths: Vec<String> = [
        "..",
        "../",
        "../outside",
        "../outside/secret.txt",
        "dir/..",
        "dir/../..",
        "dir/../../outside",
        "./../outside",
        "a.txt/..",
        "/",
        "/etc",
        "/etc/passwd",
        "/tmp",
        "/proc/self/environ",
        "//etc/passwd",
        "\0",
        "a\0b",
        "a.txt\0",
        "dir/\0/b",
        "",
        "/..",
        "/../etc/passwd",
        "....//....//etc/../../..",
        "../ws/a.txt",
        "..\u{2f}outside",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend([outside.clone(), format!("{outside}/secret.txt"), format!("{root}/../outside"), format!("{root}x")]);
    paths.extend([format!("{root}/../../../../../../etc/passwd"), format!("{root}/dir/../../outside")]);
    paths.push("x/".repeat(3_000));
    paths.push("a".repeat(1_000_000));
    paths.push("../".repeat(1_000));
    paths
}

fn bad_addresses() -> Vec<String> {
    let mut words: Vec<String> = [
        "",
        "-",
        "--",
        "--force",
        "-w",
        "--store=/tmp",
        "--plan",
        "-rf",
        "@x",
        "@~x",
        "@~-1",
        "@~99999999999999999999",
        "@~18446744073709551615",
        "step:",
        "step:x",
        "step:-1",
        "before:",
        "before:-x",
        "ago:",
        "ago:soon",
        "at:",
        "at:noon",
        "nope",
        "HEAD",
        "main",
        "refs/heads/main",
        "refs/checkpoints/x",
        "../x",
        "/etc/passwd",
        "\0",
        "a\0b",
        "$(id)",
        "`id`",
        "; rm -rf /",
        "| cat",
        "%s%n",
        "0000000000000000000000000000000000000000",
        "....",
        "ÿ",
        "\u{202e}abcd",
        "@{u}",
        "@^",
        "HEAD~1",
        ":/",
        "stash@{0}",
        "zzzz",
        "*",
        "?",
        "[a-f]*",
        "\n",
        " ",
    ]
    .map(str::to_owned)
    .to_vec();
    words.push("before:".repeat(10_000));
    words.push("a".repeat(1_000_000));
    words.push("before:".repeat(70));
    words
}

fn bad_plans(other: &str) -> Vec<Value> {
    let mut plans: Vec<Value> = [
        "",
        "-",
        "--plan",
        "0",
        "00000000000000000000000000000000",
        "ffffffffffffffffffffffffffffffff",
        "@",
        "latest",
        "../x",
        "\0",
        "undefined",
        "null",
        "*",
    ]
    .map(Value::from)
    .to_vec();
    plans.extend([
        json!("f".repeat(1_000_000)),
        json!(null),
        json!(1),
        json!(["x"]),
        json!({}),
        json!(true),
        json!(other),
    ]);
    plans
}

#[test]
fn hostile_calls_are_refused_and_change_nothing() {
    let place = Place::saved();
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/secret.txt"), "outside the workspace").unwrap();
    symlink(place.path("outside"), place.path("ws/link")).unwrap();
    symlink("/etc/passwd", place.path("ws/passwd")).unwrap();
    place.ok(["save", "with links"]);
    place.write("a.txt", "unsaved work\n");

    // A plan of another workspace that looks the same.
    let another = Place::saved();
    another.write("a.txt", "unsaved work\n");
    let foreign = another.json(["restore", "@", "--dry-run"])["plan"].as_str().unwrap().to_owned();
    // A plan of this workspace that this server did not show.
    let unseen = place.json(["restore", "@", "--dry-run"])["plan"].as_str().unwrap().to_owned();

    let mut calls: Vec<(&str, Value)> = Vec::new();
    for path in bad_paths(&place) {
        calls.push(("file_history", json!({ "path": path })));
        calls.push(("checkpoint_diff", json!({ "paths": [path] })));
        calls.push(("restore_plan", json!({ "checkpoint": "@", "paths": ["a.txt", path] })));
        calls.push(("checkpoint_list", json!({ "path": path })));
    }
    for word in bad_addresses() {
        calls.push(("checkpoint_show", json!({ "checkpoint": word })));
        calls.push(("checkpoint_diff", json!({ "from": word })));
        calls.push(("restore_plan", json!({ "checkpoint": word })));
        calls.push(("workspace_status", json!({ "since": word })));
    }
    for plan in bad_plans(&foreign).into_iter().chain([json!(unseen)]) {
        calls.push(("restore_apply", json!({ "plan": plan })));
    }
    // Paths through a symlink to the outside.
    for path in ["link/secret.txt", "link/new.txt", "passwd/x", "link/../outside/secret.txt"] {
        calls.push(("restore_plan", json!({ "checkpoint": "@", "paths": [path] })));
        calls.push(("file_history", json!({ "path": path })));
    }
    // Unknown arguments and invalid values.
    for (tool, arguments) in [
        ("checkpoint_save", json!({ "force": true })),
        ("checkpoint_save", json!({ "workspace": "/etc" })),
        ("checkpoint_save", json!({ "store": "/tmp/x" })),
        ("checkpoint_save", json!({ "include": ["/etc/passwd"] })),
        ("checkpoint_save", json!({ "attach": { "x": "/etc/passwd" } })),
        ("checkpoint_save", json!({ "kind": "safety" })),
        ("checkpoint_save", json!({ "kind": "session" })),
        ("checkpoint_save", json!({ "kind": "step" })),
        ("checkpoint_save", json!({ "kind": 1 })),
        ("checkpoint_save", json!({ "name": "@" })),
        ("checkpoint_save", json!({ "name": "" })),
        ("checkpoint_save", json!({ "name": "-rf" })),
        ("checkpoint_save", json!({ "name": "latest" })),
        ("checkpoint_save", json!({ "name": "a".repeat(40) })),
        ("checkpoint_save", json!({ "name": "x".repeat(201) })),
        ("checkpoint_save", json!({ "message": "x".repeat(2_000_000) })),
        ("checkpoint_save", json!({ "description": "x".repeat(100_000) })),
        ("checkpoint_save", json!({ "session": "x".repeat(100_000) })),
        ("checkpoint_save", json!({ "metadata": { "x": "y".repeat(100_000) } })),
        ("checkpoint_save", json!({ "metadata": "x" })),
        ("checkpoint_save", json!({ "metadata": ["x"] })),
        ("checkpoint_save", json!({ "step": -1 })),
        ("checkpoint_save", json!({ "step": 1.5 })),
        ("checkpoint_save", json!({ "step": "1" })),
        ("checkpoint_save", json!({ "message": ["x"] })),
        ("checkpoint_list", json!({ "limit": 0 })),
        ("checkpoint_list", json!({ "limit": 101 })),
        ("checkpoint_list", json!({ "limit": -1 })),
        ("checkpoint_list", json!({ "limit": 18_446_744_073_709_551_615_u64 })),
        ("checkpoint_list", json!({ "cursor": "x" })),
        ("checkpoint_list", json!({ "cursor": "-1" })),
        ("checkpoint_list", json!({ "cursor": "9".repeat(500) })),
        ("checkpoint_list", json!({ "since": "soon" })),
        ("checkpoint_list", json!({ "since": "x".repeat(10_000) })),
        ("checkpoint_list", json!({ "kind": "everything" })),
        ("checkpoint_list", json!({ "grep": "x".repeat(10_000) })),
        ("checkpoint_list", json!({ "all": true })),
        ("checkpoint_diff", json!({ "max_bytes": 0 })),
        ("checkpoint_diff", json!({ "max_bytes": 1_000_001 })),
        ("checkpoint_diff", json!({ "paths": vec!["a.txt"; 1_001] })),
        ("checkpoint_diff", json!({ "paths": "a.txt" })),
        ("checkpoint_diff", json!({ "paths": [1] })),
        ("checkpoint_show", json!({})),
        ("checkpoint_show", json!({ "checkpoint": null })),
        ("checkpoint_show", json!({ "checkpoint": 1 })),
        ("file_history", json!({})),
        ("file_history", json!({ "path": "never-there" })),
        ("file_history", json!({ "path": ["a.txt"] })),
        ("restore_plan", json!({})),
        ("restore_plan", json!({ "checkpoint": "@", "only": "everything" })),
        ("restore_plan", json!({ "checkpoint": "@", "git": true })),
        ("restore_plan", json!({ "checkpoint": "@", "plan": "x" })),
        ("restore_plan", json!({ "checkpoint": "@", "exact": "yes" })),
        ("restore_plan", json!({ "checkpoint": "@", "paths": ["never-there"] })),
        ("restore_apply", json!({})),
        ("restore_apply", json!({ "plan": "x", "force": true })),
        ("restore_apply", json!({ "checkpoint": "@" })),
        ("undo", json!({ "all": true })),
        ("undo", json!({ "steps": 5 })),
    ] {
        calls.push((tool, arguments));
    }
    assert!(calls.len() >= 200, "{}", calls.len());

    let (before, outside, checkpoints) = (tree(&place.path("ws")), tree(&place.path("outside")), refs(&place));
    let mut client = Client::start(&place);
    let codes = ["usage", "path_outside_workspace", "unknown_checkpoint", "unknown_path", "plan_changed"];
    for (tool, arguments) in calls {
        let (code, message, _) = client.refused(tool, arguments);
        assert!(codes.contains(&code.as_str()), "{tool}: {code}: {message}");
        assert!(message.len() < 6_000, "{tool}: {} bytes of message", message.len());
    }
    assert_eq!(tree(&place.path("ws")), before);
    assert_eq!(tree(&place.path("outside")), outside);
    assert_eq!(refs(&place), checkpoints, "no checkpoint was added or removed");
    assert!(!client.received.contains("root:") && !client.received.contains("outside the workspace\n"));

    // The server still works.
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    client.ok("restore_apply", json!({ "plan": plan["plan"] }));
    client.ok("undo", json!({}));
    assert_eq!(tree(&place.path("ws")), before, "the restore is undone");
    assert_eq!(place.json(["verify"])["ok"], true);
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn arguments_that_are_not_an_object_are_refused() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    for arguments in [json!([]), json!("x"), json!(1), json!([["plan", "x"]])] {
        let answer = client.call("checkpoint_save", arguments.clone());
        assert!(answer["error"]["code"].is_i64() || answer["result"]["isError"] == true, "{arguments}: {answer}");
    }
    let answer = client.ask("tools/call", json!({ "arguments": {} }));
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    let deep = "[".repeat(100) + &"]".repeat(100);
    client.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"checkpoint_save","arguments":{{"metadata":{{"x":{deep}}}}}}}}}"#
    ));
    client.ok("checkpoint_list", json!({}));
}

#[test]
fn a_symlink_to_the_outside_is_not_followed_and_is_restored_as_a_symlink() {
    let place = Place::saved();
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/b.txt"), "not yours").unwrap();
    let mut client = Client::start(&place);
    // A symlink to the outside replaces the directory that the checkpoint holds.
    fs::remove_file(place.path("ws/dir/b.txt")).unwrap();
    fs::remove_dir(place.path("ws/dir")).unwrap();
    symlink(place.path("outside"), place.path("ws/dir")).unwrap();
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    client.ok("restore_apply", json!({ "plan": plan["plan"] }));
    assert_eq!(fs::read_to_string(place.path("outside/b.txt")).unwrap(), "not yours");
    assert_eq!(fs::read_to_string(place.path("ws/dir/b.txt")).unwrap(), "b\n");
    client.ok("undo", json!({}));
    assert_eq!(fs::read_link(place.path("ws/dir")).unwrap(), place.path("outside"));
    assert_eq!(fs::read_to_string(place.path("outside/b.txt")).unwrap(), "not yours");
}
