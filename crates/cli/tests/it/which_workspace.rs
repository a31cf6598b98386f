//! The choice of the workspace: inner repositories, folders of projects, and new directories at an old path.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::place::{Place, Run};

/// Makes a repository with one file.
fn repository(directory: &Path) {
    fs::create_dir_all(directory.join(".git")).unwrap();
    fs::write(directory.join("a"), "1\n").unwrap();
}

/// Returns a saved workspace whose repository ignores `third/`, and the path of a repository in `third/inner`.
fn place_with_skipped_repository() -> (Place, PathBuf) {
    let place = Place::new();
    repository(&place.path("ws"));
    place.write(".gitignore", "third/\n");
    place.ok(["save", "outer"]);
    let inner = place.path("ws/third/inner");
    repository(&inner);
    (place, inner)
}

/// Returns a folder that is not a repository and holds two repositories.
fn folder_of_projects() -> Place {
    let place = Place::new();
    repository(&place.path("ws/one"));
    repository(&place.path("ws/two"));
    place
}

/// Sends an event from a directory to the hook, which must succeed and print nothing on stdout. Returns its stderr.
fn send_event(place: &Place, directory: &Path, session: &str, event: &str, more: Value) -> String {
    let mut payload = json!({ "session_id": session, "cwd": directory, "hook_event_name": event });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = place.command(directory, ["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(0), &b""[..]));
    String::from_utf8(done.stderr).unwrap()
}

fn start_session(place: &Place, directory: &Path, session: &str) -> String {
    send_event(place, directory, session, "SessionStart", json!({ "source": "startup" }))
}

fn send_prompt(place: &Place, directory: &Path, session: &str, prompt: &str) -> String {
    send_event(place, directory, session, "UserPromptSubmit", json!({ "prompt": prompt }))
}

/// Returns kind, session and changed files of the checkpoints in a directory, oldest first.
fn listed(place: &Place, directory: &Path) -> Vec<Value> {
    let run = place.run_in(directory, ["-w", ".", "list", "--json"]);
    let mut listed = run.json()["checkpoints"].as_array().unwrap().clone();
    listed.reverse();
    listed.iter().map(|it| json!([it["kind"], it["session"], it["files_changed"]])).collect()
}

fn count_stores(place: &Place) -> usize {
    fs::read_dir(place.path("home/backtrail/stores")).map_or(0, |stores| stores.count())
}

#[track_caller]
fn succeeded(run: Run) -> Run {
    assert_eq!(run.code, 0, "{}", run.shown());
    run
}

#[test]
fn a_session_that_began_in_a_skipped_repository_is_saved_only_there() {
    let (place, inner) = place_with_skipped_repository();
    assert_eq!(start_session(&place, &inner, "s"), "");
    assert_eq!(send_prompt(&place, &inner, "s", "go"), "");
    let found = listed(&place, &inner);
    assert_eq!(found, [json!(["session", "s", ["a"]]), json!(["turn", "s", []])]);
    assert_eq!(listed(&place, &place.path("ws")).len(), 1);
}

/// Regression: only the workspace in which the session began got a checkpoint, and it skipped the files.
#[test]
fn an_event_in_an_inner_workspace_is_saved_there_and_where_the_session_began() {
    let (place, inner) = place_with_skipped_repository();
    let outer = place.path("ws");
    start_session(&place, &outer, "s");
    send_prompt(&place, &outer, "s", "one");
    fs::write(inner.join("a"), "2\n").unwrap();
    place.write("k", "1\n");
    assert_eq!(send_prompt(&place, &inner, "s", "two"), "");
    assert_eq!(listed(&place, &inner), [json!(["turn", "s", ["a"]])]);
    let found = listed(&place, &outer);
    assert_eq!(found.last().unwrap(), &json!(["turn", "s", ["k"]]), "{found:?}");
    let edit = json!({ "tool_name": "Write", "tool_use_id": "t", "tool_input": { "file_path": inner.join("a") } });
    send_event(&place, &inner, "s", "PreToolUse", edit);
    fs::write(inner.join("a"), "3\n").unwrap();
    send_prompt(&place, &inner, "s", "three");
    assert_eq!(listed(&place, &inner).last().unwrap(), &json!(["turn", "s", ["a"]]));
    assert!(!place.ok(["cat", "@", ".gitignore"]).is_empty());
    let run = place.run(["cat", "@", "third/inner/a", "--json"]);
    assert_eq!(run.error().1, "unknown_path", "the outer workspace captures nothing of it");
}

#[test]
fn hooks_and_install_make_no_workspace_of_a_folder_of_projects() {
    let place = folder_of_projects();
    let folder = place.path("ws");
    let reason =
        format!("{} contains several projects; to make it one workspace, run `backtrail init` there", folder.display());
    for output in [start_session(&place, &folder, "s"), send_prompt(&place, &folder, "s", "go")] {
        assert_eq!(output, format!("backtrail: not protected: {reason}\n"));
    }
    let run = succeeded(place.run(["install", "claude"]));
    assert!(run.stderr.contains(&format!("not protected: {reason}\n")), "{}", run.shown());
    assert_eq!(count_stores(&place), 0);
    let doctor = place.json(["doctor"]);
    let check = |name: &str| doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    for name in ["workspace", "agents"] {
        let check = check(name).unwrap();
        assert!(check["ok"] == false && check["detail"].as_str().unwrap().contains(&reason), "{check}");
    }
    let run = succeeded(place.run(["init"]));
    assert!(!run.stderr.contains("projects"), "{}", run.shown());
    assert_eq!(send_prompt(&place, &folder, "s", "again"), "");
    assert_eq!(listed(&place, &folder).len(), 1);
}

/// The session begins in the folder, and goes on in one of the projects.
#[test]
fn a_project_in_a_folder_of_projects_has_its_own_checkpoints() {
    let place = folder_of_projects();
    start_session(&place, &place.path("ws"), "s");
    assert_eq!(send_prompt(&place, &place.path("ws/one"), "s", "go"), "");
    assert_eq!(listed(&place, &place.path("ws/one")), [json!(["turn", "s", ["a"]])]);
    assert_eq!(count_stores(&place), 1);
}

#[test]
fn a_save_by_hand_in_a_folder_of_projects_warns_once() {
    let place = folder_of_projects();
    let warned = |run: Run| succeeded(run).stderr.matches("contains several projects").count();
    assert_eq!(warned(place.run(["save", "x"])), 1);
    place.write("one/a", "2\n");
    assert_eq!(warned(place.run(["save", "y"])), 0);
    fs::remove_dir(place.path("ws/two/.git")).unwrap();
    let other = Place::new();
    repository(&other.path("ws/one"));
    assert_eq!(warned(other.run(["save", "x"])), 0, "one project is not several");
}

#[test]
fn a_save_in_a_skipped_directory_prints_a_warning() {
    let place = Place::new();
    repository(&place.path("ws"));
    place.write(".gitignore", "out/\n");
    place.write("out/x", "1\n");
    place.write("src/x", "1\n");
    let warning =
        format!("{} is skipped by the workspace {}", place.path("ws/out").display(), place.path("ws").display());
    for words in [&["save", "x"][..], &["try", "--", "true"]] {
        let run = succeeded(place.run_in(&place.path("ws/out"), words));
        assert!(run.stderr.contains(&warning), "{}", run.shown());
    }
    let run = succeeded(place.run_in(&place.path("ws/src"), ["save", "x", "--allow-empty"]));
    assert!(!run.stderr.contains("skipped"), "{}", run.shown());
    let run = succeeded(place.run_in(&place.path("ws/out"), ["doctor", "--json"]));
    let detail = run.json()["checks"][0]["detail"].to_string();
    assert!(detail.contains("is skipped, so no checkpoint captures it"), "{detail}");
}

/// Deletes the workspace of [`Place::saved`].
fn delete_workspace(place: &Place) {
    place.remove("a.txt");
    place.remove("dir/b.txt");
    fs::remove_dir(place.path("ws/dir")).unwrap();
    fs::remove_dir(place.path("ws")).unwrap();
}

/// Returns a place whose saved workspace was deleted and replaced by another directory, and the store of the deleted
/// one.
fn place_with_replaced_workspace() -> (Place, PathBuf) {
    let place = Place::saved();
    let store = place.store();
    fs::create_dir(place.path("fresh")).unwrap();
    delete_workspace(&place);
    fs::rename(place.path("fresh"), place.path("ws")).unwrap();
    place.write("b.txt", "1\n");
    (place, store)
}

#[test]
fn the_older_history_of_a_path_is_reported_until_the_new_directory_has_one() {
    let (place, store) = place_with_replaced_workspace();
    let adopt = format!("`backtrail workspaces --adopt {}`", store.display());
    for words in [&["list"][..], &["status"], &["restore", "@"], &["undo"], &["doctor"], &["save", "x"]] {
        let run = place.run(words);
        // Long lines are wrapped.
        let output = format!("{}{}", run.text(), run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains(&adopt), "{words:?}: {}", run.shown());
    }
    let run = succeeded(place.run(["list"]));
    assert_eq!((run.text().lines().count(), run.stderr.contains("--adopt")), (1, false), "{}", run.shown());
}

#[test]
fn a_hook_reports_the_older_history_when_it_creates_a_new_one() {
    let (place, store) = place_with_replaced_workspace();
    let output = start_session(&place, &place.path("ws"), "s");
    assert!(output.contains(&format!("--adopt {}", store.display())), "{output}");
    assert_eq!(send_prompt(&place, &place.path("ws"), "s", "go"), "");
    let log = fs::read_to_string(place.path("home/backtrail/log/hooks.jsonl")).unwrap();
    assert!(log.contains("--adopt"), "{log}");
}

#[test]
fn a_store_is_adopted_by_path_or_by_name() {
    for by_name in [false, true] {
        let (place, store) = place_with_replaced_workspace();
        place.ok(["save", "own"]);
        let named = if by_name { Path::new(store.file_name().unwrap()) } else { &store };
        let run = succeeded(place.run(["workspaces", "--json", "--adopt", named.to_str().unwrap()]));
        let (workspace, store) = (place.path("ws"), store.canonicalize().unwrap());
        assert_eq!(run.json(), json!({ "workspace": workspace, "store": store }));
        assert!(run.stderr.contains("its previous store is kept: "), "{}", run.shown());
        let listed = place.json(["list"]);
        assert_eq!(listed["checkpoints"][0]["message"], "first", "{listed}");
        place.ok(["restore", "@"]);
        assert_eq!(fs::read(place.path("ws/a.txt")).unwrap(), b"one\ntwo\n");
        let listed = place.ok(["workspaces"]);
        assert!(listed.contains("(no longer in use)"), "{listed}");
        place.ok(["workspaces", "--prune"]);
        assert_eq!(count_stores(&place), 2, "a kept store is not pruned");
        let kept = run.stderr.split("--adopt ").nth(1).unwrap().trim().to_owned();
        place.ok(["workspaces", "--forget", &kept, "--yes"]);
        assert_eq!(count_stores(&place), 1);
        assert_eq!(place.json(["list"])["checkpoints"][1]["message"], "first");
    }
}

#[test]
fn a_store_whose_workspace_exists_is_not_adopted() {
    let place = Place::saved();
    let store = place.store();
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    let run = place.run_in(&other, ["workspaces", "--json", "--adopt", store.to_str().unwrap()]);
    let (code, word, message) = run.error();
    assert_eq!((code, word.as_str()), (6, "protected_directory"), "{message}");
    assert!(message.contains(place.path("ws").to_str().unwrap()), "{message}");
    let run = place.run_in(&other, ["workspaces", "--json", "--adopt", "/nothing/there"]);
    assert_eq!((run.code, run.error().1.as_str()), (1, "io"));
    let run = place.run_in(&other, ["workspaces", "--json", "--adopt", "."]);
    assert_eq!((run.code, run.error().1.as_str()), (2, "usage"));
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 1);
}

/// Adopts from a subdirectory. The message names the workspace.
#[test]
fn a_copied_workspace_adopts_its_store() {
    let place = Place::saved();
    let store = place.store();
    let copy = place.path("elsewhere/ws");
    fs::create_dir_all(copy.join("dir")).unwrap();
    fs::create_dir(copy.join(".git")).unwrap();
    fs::copy(place.path("ws/a.txt"), copy.join("a.txt")).unwrap();
    fs::copy(place.path("ws/dir/b.txt"), copy.join("dir/b.txt")).unwrap();
    delete_workspace(&place);
    let run = succeeded(place.run_in(&copy.join("dir"), ["list"]));
    let there = format!("if it was {} before", place.path("ws").display());
    assert!(run.stderr.contains(&there) && run.stderr.contains("nothing saved yet"), "{}", run.shown());
    let words = ["-w", copy.to_str().unwrap(), "workspaces", "--adopt", store.to_str().unwrap()];
    succeeded(place.run_in(&copy.join("dir"), words));
    let run = succeeded(place.run_in(&copy.join("dir"), ["status", "--json"]));
    assert_eq!((&run.json()["checkpoint"]["message"], &run.json()["changes"]), (&json!("first"), &json!([])));
}
