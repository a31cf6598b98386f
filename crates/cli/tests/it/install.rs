//! `install` adds our entries to an agent's files and removes nothing. `uninstall` restores the files byte for byte.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{install_samples::SAMPLES, place::Place};

/// Returns every file in the home and the workspace, except for the program's own files.
fn files(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for top in ["home", "ws"] {
        collect(&place.path(top), &mut found);
    }
    found.retain(|(path, _)| !path.starts_with(place.path("home/backtrail")));
    found.sort();
    found
}

fn collect(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => {
                found.push((path.clone(), b"directory".to_vec()));
                collect(&path, found);
            }
            kind if kind.is_symlink() => {
                found.push((path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()))
            }
            _ => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
}

fn write_file(place: &Place, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = place.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// Parses a JSON document that may have comments and trailing commas. An empty document is `Null`.
fn json(bytes: &[u8]) -> Value {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let text = text.trim_start_matches('\u{feff}');
    let mut plain = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                let end = end.unwrap() + 2;
                plain.push_str(&rest[..end]);
                end
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").unwrap() + 2,
            '}' | ']' => {
                let kept = plain.trim_end();
                plain.truncate(kept.strip_suffix(',').unwrap_or(kept).len());
                plain.push(character);
                1
            }
            other => {
                plain.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    if plain.trim().is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {plain}"))
    }
}

/// Returns whether the new document contains everything of the old one.
fn includes(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (_, Value::Null) => true,
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|other| includes(other, value)))
        }
        (Value::Array(new), Value::Array(old)) => {
            let mut rest = new.iter();
            old.iter().all(|value| rest.any(|other| includes(other, value)))
        }
        (new, old) => new == old,
    }
}

/// Tries one sample of every file. The unit tests of the planner try every sample in every variant, without starting
/// the program.
#[test]
fn uninstall_restores_the_same_bytes() {
    let mut tried: Vec<&str> = Vec::new();
    for (agent, file, text) in SAMPLES {
        if tried.contains(file) {
            continue;
        }
        tried.push(file);
        let place = Place::new();
        let path = write_file(&place, file, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let before = files(&place);
        place.ok(["install", agent]);
        let installed = fs::read(&path).unwrap();
        assert_ne!(installed, text.as_bytes(), "nothing added to {file}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "{file}");
        if file.ends_with("json") {
            assert!(includes(&json(&installed), &json(text.as_bytes())), "{file}");
        }
        let once = files(&place);
        place.ok(["install", agent]);
        assert!(once == files(&place), "the second install changed something: {file}");
        place.ok(["uninstall", agent]);
        assert!(before == files(&place), "{file}\n--- left ---\n{}", fs::read_to_string(&path).unwrap());
        place.ok(["uninstall", agent]);
        assert!(before == files(&place), "the second uninstall changed something: {file}");
    }
}

#[test]
fn uninstall_leaves_nothing_behind_for_any_agent_and_reach() {
    let agents =
        ["claude", "codex", "gemini", "qwen", "cursor", "copilot", "cline", "opencode", "kilo", "kimi", "pi", "droid"];
    for agent in agents {
        for reach in ["--user", "--project", "--shared"] {
            let place = Place::new();
            let before = files(&place);
            let answer = place.json(["install", agent, reach]);
            let made: Vec<&str> =
                answer["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
            assert!(!made.is_empty(), "{agent} {reach}");
            let top = place.path(if reach == "--user" { "home" } else { "ws" });
            assert!(made.iter().any(|path| Path::new(path).starts_with(&top)), "{agent} {reach}: {made:?}");
            // Kimi Code reads hooks only from the user's own configuration.
            let called = if agent == "kimi" && reach != "--user" { "mcp".to_owned() } else { format!("hook {agent}") };
            assert!(files(&place).iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(&called)));
            place.ok(["uninstall", agent, reach]);
            assert!(before == files(&place), "{agent} {reach}");
        }
    }
}

/// The installations for the user, for this project and for another project have their entries in the same file of
/// Claude Code.
#[test]
fn installations_in_one_file_do_not_affect_each_other() {
    let own = "{\n  \"numStartups\": 3\n}\n";
    for document in [None, Some(own)] {
        let place = Place::new();
        fs::create_dir(place.path("other")).unwrap();
        let path = place.path("home/.claude.json");
        if let Some(document) = document {
            fs::write(&path, document).unwrap();
        }
        let before = files(&place);
        let run = |directory: &str, words: &[&str]| {
            let done = place.run_in(&place.path(directory), words.iter().copied());
            assert_eq!(done.code, 0, "{}", done.shown());
        };
        let has = |keys: &[&str]| {
            let document = fs::read(&path).map(|bytes| json(&bytes)).unwrap_or_default();
            keys.iter().fold(&document, |value, key| &value[*key])["backtrail"].is_object()
        };
        let (here, there) = (place.path("ws"), place.path("other"));
        let (here, there) = (here.to_str().unwrap(), there.to_str().unwrap());
        let present =
            || (has(&["mcpServers"]), has(&["projects", here, "mcpServers"]), has(&["projects", there, "mcpServers"]));
        run("ws", &["install", "claude", "--project"]);
        run("ws", &["uninstall", "claude"]);
        assert_eq!(present(), (false, true, false));
        run("ws", &["install", "claude"]);
        run("other", &["install", "claude", "--project"]);
        assert_eq!(present(), (true, true, true));
        run("ws", &["uninstall", "claude", "--project"]);
        assert_eq!(present(), (true, false, true));
        run("ws", &["uninstall", "claude"]);
        assert_eq!(present(), (false, false, true));
        run("other", &["uninstall", "claude", "--project"]);
        let left = fs::read_to_string(&path).unwrap_or_default();
        assert!(before == files(&place), "{document:?}: {left:?}");
    }
}

#[test]
fn later_edits_of_the_user_are_kept() {
    let place = Place::new();
    let text = "{\n  // mine\n  \"model\": \"opus\" // best\n}\n";
    let path = write_file(&place, "home/.claude/settings.json", text);
    place.ok(["install", "claude"]);
    let edited = fs::read_to_string(&path).unwrap().replacen("{\n", "{\n  \"theme\": \"dark\", // new\n", 1);
    fs::write(&path, &edited).unwrap();
    place.ok(["install", "claude"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    place.ok(["uninstall", "claude"]);
    let expected = text.replacen("{\n", "{\n  \"theme\": \"dark\", // new\n", 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn a_hook_that_the_user_added_beside_ours_is_kept() {
    let place = Place::new();
    place.ok(["install", "claude"]);
    let path = place.path("home/.claude/settings.json");
    let mut document = json(&fs::read(&path).unwrap());
    let mine = serde_json::json!({ "type": "command", "command": "./mine.sh" });
    document["hooks"]["Stop"][0]["hooks"].as_array_mut().unwrap().push(mine.clone());
    fs::write(&path, serde_json::to_string(&document).unwrap()).unwrap();
    place.ok(["uninstall", "claude"]);
    let left = json(&fs::read(&path).unwrap());
    assert_eq!(left, serde_json::json!({ "hooks": { "Stop": [{ "hooks": [mine] }] } }));
}

#[test]
fn install_updates_the_path_of_a_moved_program() {
    let place = Place::new();
    let path = write_file(&place, "home/.gemini/settings.json", "{\"a\": 1}\n");
    place.ok(["install", "gemini"]);
    let installed = fs::read_to_string(&path).unwrap();
    let program = env!("CARGO_BIN_EXE_backtrail");
    assert!(installed.contains(program));
    fs::write(&path, installed.replace(program, "/old/place/backtrail")).unwrap();
    place.ok(["install", "gemini"]);
    let again = fs::read_to_string(&path).unwrap();
    assert!(again.contains(program) && !again.contains("/old/place"), "{again}");
    assert_eq!(again.matches("BeforeTool").count(), 1);
    place.ok(["uninstall", "gemini"]);
    assert_eq!(json(&fs::read(&path).unwrap()), serde_json::json!({ "a": 1 }));
}

/// Files with entries that the user wrote before the installation: agent, path, text. The entries call this program and
/// have more keys than an installation writes. `backtrail` means the program on the user's PATH.
const ENTRIES_OF_THE_USER: [(&str, &str, &str); 6] = [
    (
        "cursor",
        "home/.cursor/mcp.json",
        "{\"mcpServers\": {\"backtrail\": {\"command\":\"backtrail\",\"args\":[\"mcp\"],\"env\":{\"BACKTRAIL_HOME\":\"/x\"}}}}\n",
    ),
    (
        "cursor",
        "home/.cursor/hooks.json",
        "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"backtrail hook cursor\", \"timeout\": 77}]}}",
    ),
    (
        "claude",
        "home/.claude/settings.json",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [ { \"type\": \"command\", \"command\": \"backtrail hook claude\", \"timeout\": 77 } ] } // mine\n    ]\n  }\n}\n",
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        "{\n  \"mcpServers\": {\n    \"backtrail\": { \"env\": { \"A\": \"1\" }, \"command\": \"backtrail\", \"args\": [ \"mcp\" ] }\n  }\n}\n",
    ),
    (
        "opencode",
        "home/.config/opencode/opencode.json",
        "{\"mcp\": {\"backtrail\": {\"type\": \"local\", \"command\": [\"backtrail\", \"mcp\"], \"enabled\": false}}}",
    ),
    (
        "codex",
        "home/.codex/config.toml",
        "model = 'm'\n[mcp_servers.backtrail] # mine\nargs = [ 'mcp' ]\ncommand = 'backtrail' # that\n\n[mcp_servers.backtrail.env]\nBACKTRAIL_HOME = '/x'\n",
    ),
];

/// Regression: install replaced such entries, without the other keys that the user had written. Uninstall removed them.
#[test]
fn entries_of_the_user_keep_their_keys_and_are_never_removed() {
    for (agent, file, text) in ENTRIES_OF_THE_USER {
        let place = Place::new();
        let path = write_file(&place, file, text);
        let read = || fs::read_to_string(&path).unwrap();
        let before = files(&place);
        place.ok(["install", agent]);
        let installed = read();
        let mut expected = text.to_owned();
        for (before, behind) in [("\"", " hook"), (": \"", "\""), (":\"", "\""), ("[\"", "\""), ("'", "'")] {
            let [old, new] =
                ["backtrail", env!("CARGO_BIN_EXE_backtrail")].map(|word| format!("{before}{word}{behind}"));
            expected = expected.replace(&old, &new.replace('\'', "\""));
        }
        if file.ends_with("toml") {
            assert_eq!(installed, expected);
        } else {
            assert!(includes(&json(installed.as_bytes()), &json(expected.as_bytes())), "{installed}\n{expected}");
        }
        place.ok(["install", agent]);
        assert_eq!(read(), installed, "the second install changed something");
        for time in ["first", "second"] {
            let answer = place.json(["uninstall", agent]);
            assert!(answer["notes"].to_string().contains("your own"), "{answer}");
            assert!(before == files(&place), "{file}, the {time} uninstall:\n{}", read());
        }
        // The entries are also kept if the rest of the file changed in between.
        place.ok(["install", agent]);
        let space = if file.ends_with("toml") { "\n# new\n" } else { "\n " };
        fs::write(&path, format!("{space}{}", read())).unwrap();
        place.ok(["uninstall", agent]);
        assert_eq!(read().trim(), format!("{space}{text}").trim());
    }
}

/// The same regression for keys that the user added to entries of an installation.
#[test]
fn keys_that_the_user_added_to_our_entries_are_kept() {
    let place = Place::new();
    let before = files(&place);
    let (hooks, servers) = (place.path("home/.cursor/hooks.json"), place.path("home/.cursor/mcp.json"));
    place.ok(["install", "cursor"]);
    let edit = |path: &Path, edit: &dyn Fn(&mut Value)| {
        let mut document = json(&fs::read(path).unwrap());
        edit(&mut document);
        fs::write(path, serde_json::to_string_pretty(&document).unwrap()).unwrap();
        document
    };
    let program = env!("CARGO_BIN_EXE_backtrail");
    let more = |document: &mut Value| document["mcpServers"]["backtrail"]["env"] = serde_json::json!({ "A": "1" });
    let with_env = edit(&servers, &more);
    let with_timeout = edit(&hooks, &|document| document["hooks"]["stop"][0]["timeout"] = 77.into());
    let answer = place.json(["install", "cursor"]);
    assert!(answer["files"].as_array().unwrap().iter().all(|file| file["change"] == "unchanged"), "{answer}");
    assert_eq!(
        (json(&fs::read(&servers).unwrap()), json(&fs::read(&hooks).unwrap())),
        (with_env.clone(), with_timeout.clone())
    );
    // The program moves: the call changes, and nothing else.
    for path in [&servers, &hooks] {
        fs::write(path, fs::read_to_string(path).unwrap().replace(program, "/old/place/backtrail")).unwrap();
    }
    place.ok(["install", "cursor"]);
    assert_eq!((json(&fs::read(&servers).unwrap()), json(&fs::read(&hooks).unwrap())), (with_env, with_timeout));
    place.ok(["uninstall", "cursor"]);
    assert!(before == files(&place), "{:?}", files(&place));

    place.ok(["install", "codex"]);
    let path = place.path("home/.codex/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    let edited = format!("{}\n[mcp_servers.backtrail.env]\nA = '1'\n", text.replace(program, "/old/place/backtrail"));
    fs::write(&path, edited).unwrap();
    place.ok(["install", "codex"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}\n[mcp_servers.backtrail.env]\nA = '1'\n"));
    place.ok(["uninstall", "codex"]);
    assert!(before == files(&place), "{:?}", files(&place));
}

/// Another version may have written other values beside the call. They are updated if the user did not change them.
#[test]
fn unchanged_entries_of_another_version_are_updated() {
    for text in [None, Some("{\n  \"a\": 1\n}\n")] {
        let place = Place::new();
        let path = place.path("home/.claude/settings.json");
        if let Some(text) = text {
            write_file(&place, "home/.claude/settings.json", text);
        }
        let before = files(&place);
        place.ok(["install", "claude"]);
        let now = fs::read_to_string(&path).unwrap();
        let receipts = place.path("home/backtrail/installed.json");
        fs::write(&path, now.replace("\"timeout\": 20", "\"timeout\": 15")).unwrap();
        let noted = fs::read_to_string(&receipts).unwrap();
        fs::write(&receipts, noted.replace(r#"\"timeout\": 20"#, r#"\"timeout\": 15"#)).unwrap();
        place.ok(["install", "claude"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), now);
        place.ok(["uninstall", "claude"]);
        assert!(before == files(&place), "{:?}", files(&place));
    }
}

#[test]
fn a_hook_script_that_the_user_changed_is_kept() {
    let place = Place::new();
    place.ok(["install", "cline"]);
    let path = place.path("home/.cline/hooks/PreToolUse");
    let changed = fs::read_to_string(&path).unwrap().replace("exec ", "BACKTRAIL_HOME=/x exec ");
    fs::write(&path, &changed).unwrap();
    let answer = place.json(["install", "cline"]);
    assert!(answer["notes"].to_string().contains("changed after the installation"), "{answer}");
    assert_eq!(fs::read_to_string(&path).unwrap(), changed);
}

#[test]
fn a_symlinked_file_stays_a_symlink() {
    let place = Place::new();
    write_file(&place, "home/dotfiles/claude.json", "{\n\t\"a\": 1\n}");
    fs::create_dir(place.path("home/.claude")).unwrap();
    symlink("../dotfiles/claude.json", place.path("home/.claude/settings.json")).unwrap();
    let before = files(&place);
    place.ok(["install", "claude"]);
    assert!(fs::read_to_string(place.path("home/dotfiles/claude.json")).unwrap().contains("hook claude"));
    assert!(fs::symlink_metadata(place.path("home/.claude/settings.json")).unwrap().is_symlink());
    place.ok(["uninstall", "claude"]);
    assert!(before == files(&place));
}

#[test]
fn invalid_files_are_refused_and_nothing_is_written() {
    let cases: [(&str, &str, &[u8]); 9] = [
        ("claude", "home/.claude/settings.json", b"{\"hooks\": {\"PreToolUse\": ["),
        ("claude", "home/.claude.json", b"{\"mcpServers\": {\"a\": 1,, }}"),
        ("claude", "home/.claude/settings.json", b"[]"),
        ("claude", "home/.claude/settings.json", b"{\"hooks\": []}"),
        ("claude", "home/.claude/settings.json", b"{\"hooks\": {\"Stop\": {}}}"),
        ("claude", "home/.claude/settings.json", b"{\"a\": \"\xff\"}"),
        ("codex", "home/.codex/config.toml", b"[mcp_servers\n"),
        ("codex", "home/.codex/config.toml", b"mcp_servers = 3\n"),
        ("cline", "home/.cline/hooks/PreToolUse", b"#!/bin/sh\n./mine\n"),
    ];
    for (agent, file, bytes) in cases {
        let place = Place::new();
        write_file(&place, file, bytes);
        let before = files(&place);
        let run = place.run(["--json", "install", agent]);
        let (code, word, message) = run.error();
        assert_eq!((code, word.as_str()), (2, "settings"), "{message}");
        assert!(message.contains(file.trim_start_matches("home/")), "{message}");
        assert!(before == files(&place), "{file}");
    }
}

#[test]
fn an_mcp_server_of_the_user_is_left_alone() {
    let place = Place::new();
    let own = r#"{"mcpServers": {"backtrail": {"command": "my-own", "args": []}}}"#;
    let path = write_file(&place, "home/.claude.json", own);
    let answer = place.json(["install", "claude"]);
    assert!(answer["notes"].to_string().contains("which stays"), "{answer}");
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
    place.ok(["uninstall", "claude"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
}

#[test]
fn a_failed_install_changes_nothing() {
    let place = Place::new();
    write_file(&place, "home/.codex/hooks.json", "{}");
    // The second file can't be written: a directory has its name.
    fs::create_dir(place.path("home/.codex/config.toml")).unwrap();
    let before = files(&place);
    assert_eq!(place.run(["install", "codex"]).code, 1);
    assert!(before == files(&place));
}

#[test]
fn agents_are_listed_with_their_files() {
    let place = Place::new();
    place.ok(["install", "codex"]);
    let answer = place.json(["install", "--list"]);
    let agents = answer["agents"].as_array().unwrap();
    let codex = agents.iter().find(|agent| agent["agent"] == "codex").unwrap();
    assert_eq!(codex["installed"].as_array().unwrap().len(), 2, "{codex}");
    let text = place.ok(["install", "--list"]);
    assert!(text.contains("Claude Code") && text.contains(".codex/hooks.json"), "{text}");
    let (code, word, message) = place.run(["--json", "install", "no-such-agent"]).error();
    assert_eq!((code, word.as_str()), (2, "usage"), "{message}");
    let (code, _, _) = place.run(["--json", "install"]).error();
    assert_eq!(code, 2);
}

#[test]
fn a_dry_run_shows_the_edit() {
    let place = Place::new();
    let before = files(&place);
    let text = place.ok(["install", "claude", "--dry-run"]);
    assert!(text.contains("would be created") && text.contains("hook claude"), "{text}");
    assert!(before == files(&place));
    write_file(&place, "home/.claude/settings.json", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n");
    let text = place.ok(["install", "claude", "--dry-run"]);
    assert!(text.contains("+\t\"hooks\": {") && !text.contains("\\t"), "{text}");
}

#[test]
fn install_takes_the_first_checkpoint_and_tries_the_command() {
    let place = Place::new();
    place.write("a", "1\n");
    let answer = place.json(["install", "claude"]);
    assert_eq!(answer["rehearsal"]["ok"], true, "{answer}");
    assert!(answer["rehearsal"]["command"].as_str().unwrap().ends_with("hook claude"));
    let first = place.json(["list"])["checkpoints"].clone();
    assert_eq!((first.as_array().unwrap().len(), &first[0]["id"]), (1, &answer["checkpoint"]));
    let again = place.json(["install", "claude"]);
    assert_eq!(again["checkpoint"], Value::Null);
    let text = place.ok(["install", "codex"]);
    assert!(text.contains("it took a checkpoint") && text.contains("trust the hooks"), "{text}");

    let shared = place.run(["install", "gemini", "--shared"]);
    assert!(shared.stderr.contains("the test of `backtrail hook gemini`"), "{}", shared.shown());
}

#[test]
fn installing_from_the_home_directory_takes_no_checkpoint_of_it() {
    let place = Place::new();
    let run = place.run_in(&place.path("home"), ["install", "claude"]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("the first checkpoint was not taken"), "{}", run.shown());
    assert!(!place.path("home/backtrail/stores").exists());
}

/// Regression: concurrent runs overwrote each other's receipts, so that some were lost.
#[test]
fn concurrent_runs_lose_no_receipt() {
    let place = Place::saved();
    let agents = ["claude", "codex", "gemini", "qwen", "cursor", "copilot"];
    for words in ["install", "uninstall"] {
        let start = |agent: &&str| {
            let mut command = place.command(&place.path("ws"), [words, agent, "--quiet"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = agents.iter().map(start).collect();
        for child in running {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let receipts: Value =
            serde_json::from_slice(&fs::read(place.path("home/backtrail/installed.json")).unwrap()).unwrap();
        let known = |agent: &&&str| receipts["files"].as_array().unwrap().iter().any(|file| file["agent"] == **agent);
        let expected = if words == "install" { agents.len() } else { 0 };
        assert_eq!(agents.iter().filter(known).count(), expected, "{words}: {receipts}");
    }
}

#[test]
fn install_waits_for_the_lock() {
    let place = Place::saved();
    let held = fs::File::open(place.path("home/backtrail")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (code, word, _) = place.run(["install", "claude", "--wait", "0", "--json"]).error();
    assert_eq!((code, word.as_str()), (7, "busy"));
    place.ok(["install", "claude", "--wait", "0", "--dry-run"]);
    drop(held);
    place.ok(["install", "claude", "--wait", "0"]);
}
