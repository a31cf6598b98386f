//! Gives every command invalid input. The command must exit with the status and the error code of `docs/json.md`, name
//! the invalid part in one message, and change nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::place::Place;

/// The arguments, the exit status, the error code, and a part of the message.
type Row = (&'static [&'static str], i32, &'static str, &'static str);

const ARGUMENTS: &[Row] = &[
    (&["frobnicate"], 2, "usage", "frobnicate"),
    (&["list", "--color", "pink"], 2, "usage", "pink"),
    (&["list", "--wait", "soon"], 2, "usage", "soon"),
    (&["list", "--wait", "-1"], 2, "usage", "'-1' for '--wait"),
    (&["list", "-w", ""], 2, "usage", "--workspace"),
    (&["list", "--store", ""], 2, "usage", "--store"),
    (&["init", "extra"], 2, "usage", "extra"),
    (&["save", "a", "b"], 2, "usage", "'b'"),
    (&["save", "a", "-m", "b"], 2, "usage", "--message"),
    (&["save", "--kind", "odd"], 2, "usage", "odd"),
    (&["save", "--kind", "safety"], 2, "usage", "safety"),
    (&["save", "--step", "x"], 2, "usage", "'x' for '--step <N>': write a whole number"),
    (&["save", "--step", "-1"], 2, "usage", "'-1' for '--step <N>': write a whole number"),
    (&["save", "--step", "99999999999999999999"], 2, "usage", "too large"),
    (&["save", "--tokens", "1.5"], 2, "usage", "1.5"),
    (&["save", "--session-number", ""], 2, "usage", "'' for '--session-number <N>': write a whole number"),
    (&["save", "--meta", "novalue"], 2, "usage", "novalue"),
    (&["save", "--meta", "=v"], 2, "usage", "=v"),
    (&["save", "--attach", "nofile"], 2, "usage", "nofile"),
    (&["save", "--attach", "f="], 2, "usage", "\"f\" has no file"),
    (&["save", "--attach", "f=missing.txt"], 1, "io", "ws/missing.txt"),
    (&["save", "--attach", "f=dir"], 1, "io", "ws/dir"),
    (
        &["save", "--attach", "f=a.txt", "--attach", "g=a.txt", "--attach", "f=dir/b.txt"],
        2,
        "usage",
        "\"f\" is given twice",
    ),
    (&["save", "--include", ".git"], 2, "usage", ".git can't be captured"),
    (&["save", "--include", "dir/.git/config"], 2, "usage", "dir/.git/config can't be captured"),
    (&["save", "--include", "../out"], 6, "path_outside_workspace", "../out"),
    (&["save", "--include", "missing.txt"], 3, "unknown_path", "missing.txt"),
    (&["save", "--include", ""], 2, "usage", "--include"),
    (&["step", "../out"], 6, "path_outside_workspace", "../out"),
    (&["step", "/etc/hosts"], 6, "path_outside_workspace", "/etc/hosts"),
    (&["step", ""], 2, "usage", "[PATH]"),
    (&["step", "--turn", "-1"], 2, "usage", "'-1' for '--turn <N>'"),
    (&["step", "--turn", "0"], 2, "usage", "'0' for '--turn <N>': write a whole number, 1 or more"),
    (&["step", "--meta", "novalue"], 2, "usage", "novalue"),
    (&["step", "--session"], 2, "usage", "--session"),
    (&["try"], 2, "usage", "<CMD>"),
    (&["try", "--"], 2, "usage", "<CMD>"),
    (&["try", "true"], 2, "usage", "'true'"),
    (&["try", "--timeout", "soon", "--", "true"], 2, "usage", "soon"),
    (&["try", "--timeout", "-5", "--", "true"], 2, "usage", "'-5' for '--timeout <TIME>': it is negative"),
    (&["try", "--check"], 2, "usage", "--check"),
    (&["pipeline"], 2, "usage", "<FILE>"),
    (&["pipeline", ""], 2, "usage", "<FILE>"),
    (&["pipeline", "missing.yaml"], 2, "pipeline", "missing.yaml"),
    (&["pipeline", "dir"], 2, "pipeline", "dir: it is a directory"),
    (&["pipeline", "a.txt"], 2, "pipeline", "a.txt: line 1"),
    (&["pipeline", "../unknown-key.yaml"], 2, "pipeline", "unknown-key.yaml: line 3: unknown field `frob`"),
    (&["pipeline", "../good.yaml", "--from-step", "nope"], 2, "pipeline", "nope"),
    (&["pipeline", "../good.yaml", "--var", "novalue"], 2, "usage", "novalue"),
    (&["list", "extra"], 2, "usage", "extra"),
    (&["list", "--store", "a.txt"], 2, "usage", "ws/a.txt is neither a store nor an empty directory"),
    (&["list", "--store", "../full"], 2, "usage", "full is neither a store nor an empty directory"),
    (&["save", "--store", "a.txt"], 2, "usage", "ws/a.txt is neither a store nor an empty directory"),
    (&["list", "-w", "/nonexistent"], 1, "io", "/nonexistent"),
    (&["list", "--limit", "x"], 2, "usage", "'x' for '--limit <N>'"),
    (&["list", "-n", "-1"], 2, "usage", "'-1' for '--limit <N>'"),
    (&["list", "--kind", "odd"], 2, "usage", "odd"),
    (&["list", "--since", "soon"], 2, "usage", "soon"),
    (&["list", "--since", "40000d"], 2, "usage", "\"40000d\" is out of range: the limit is 100 years"),
    (&["show", "ago:1000000d"], 3, "unknown_checkpoint", "out of range: the limit is 100 years"),
    (&["delete", "--older-than", "1000000d"], 2, "usage", "out of range: the limit is 100 years"),
    (&["list", "--path", "../out"], 6, "path_outside_workspace", "../out"),
    (&["list", "--path", ""], 2, "usage", "--path"),
    (&["show"], 2, "usage", "<ID>"),
    (&["show", "@", "@"], 2, "usage", "'@'"),
    (&["show", "@~99"], 3, "unknown_checkpoint", "@~99"),
    (&["show", "step:x"], 3, "unknown_checkpoint", "step:x"),
    (&["show", "before:nonsense"], 3, "unknown_checkpoint", "before:nonsense"),
    (&["status", "extra"], 2, "usage", "extra"),
    (&["status", "--since"], 2, "usage", "--since"),
    (&["diff", "@", "@", "@"], 2, "usage", "'@'"),
    (&["diff", "@", "--", "../out"], 6, "path_outside_workspace", "../out"),
    (&["diff", "@", "--", ""], 2, "usage", "[PATH]"),
    (&["diff", "--stat", "--name-status"], 2, "usage", "--name-status"),
    (&["cat"], 2, "usage", "<ID> <PATH>"),
    (&["cat", "@"], 2, "usage", "<PATH>"),
    (&["cat", "@", ""], 2, "usage", "[PATH]"),
    (&["cat", "@", "missing"], 3, "unknown_path", "missing"),
    (&["cat", "@", "dir"], 2, "usage", "dir is a directory"),
    (&["cat", "@", "../out"], 6, "path_outside_workspace", "../out"),
    (&["cat", "@", "--attachment", "none"], 3, "unknown_path", "none"),
    (&["cat", "@", "a.txt", "--attachment", "none"], 2, "usage", "--attachment"),
    (&["history"], 2, "usage", "<PATH>"),
    (&["history", ""], 2, "usage", "<PATH>"),
    (&["history", "a.txt", "b"], 2, "usage", "'b'"),
    (&["history", "missing"], 3, "unknown_path", "missing"),
    (&["history", "../out"], 6, "path_outside_workspace", "../out"),
    (&["blame"], 2, "usage", "<PATH>"),
    (&["blame", "a.txt", "-L", "2"], 2, "usage", "FIRST,LAST"),
    (&["blame", "a.txt", "nonsense"], 3, "unknown_checkpoint", "nonsense"),
    (&["blame", "missing"], 3, "unknown_path", "missing"),
    (&["blame", "../out"], 6, "path_outside_workspace", "../out"),
    (&["bisect"], 2, "usage", "<CMD>"),
    (&["bisect", "--in-place", "--link", "x", "--", "true"], 2, "usage", "--link"),
    (&["bisect", "--good", "nonsense", "--", "true"], 3, "unknown_checkpoint", "nonsense"),
    (&["bisect", "--link", "missing", "--", "true"], 2, "usage", "missing"),
    (&["list", "@"], 2, "usage", "@"),
    (&["list", "@..nonsense"], 3, "unknown_checkpoint", "nonsense"),
    (&["restore"], 2, "usage", "ID"),
    (&["restore", "@", ""], 2, "usage", "[PATH]"),
    (&["restore", "@", "missing"], 3, "unknown_path", "missing"),
    (&["restore", "@", "../out"], 6, "path_outside_workspace", "../out"),
    (&["restore", "@", "--only", "odd"], 2, "usage", "odd"),
    (&["restore", "@", "--plan"], 2, "usage", "--plan"),
    (&["restore", "@", "--plan", "0000"], 4, "plan_changed", "the plan"),
    (&["restore", "@", "--hunk", "0000"], 4, "plan_changed", "0000"),
    (&["restore", "@", "a.txt", "--git"], 2, "usage", "--git"),
    (&["restore", "@", "--git"], 6, "git_state", "no git repository"),
    (&["restore", "@", "--conversation"], 3, "unknown_path", "conversation"),
    (&["revert"], 2, "usage", ""),
    (&["revert", "nonsense"], 3, "unknown_checkpoint", "nonsense"),
    (&["revert", "@", "--turn"], 2, "usage", "--turn"),
    (&["revert", "turn:9"], 3, "unknown_checkpoint", "turn:9"),
    (&["revert", "--turn"], 3, "unknown_checkpoint", "--turn 1"),
    (&["revert", "--session", "none"], 3, "unknown_checkpoint", "none"),
    (&["revert", "@~1"], 2, "usage", "first checkpoint"),
    (&["revert", "@..@~1"], 2, "usage", "backwards"),
    (&["revert", "@", "--hunk", "0000"], 4, "plan_changed", "0000"),
    (&["revert", "@", "--skip-conflicts", "--markers"], 2, "usage", "--markers"),
    (&["revert", "@", "-p"], 2, "usage", "terminal"),
    (&["fork"], 2, "usage", "DIR"),
    (&["fork", "../full"], 2, "usage", "full"),
    (&["fork", "inside"], 2, "usage", "inside"),
    (&["fork", "nonsense", "../new"], 3, "unknown_checkpoint", "nonsense"),
    (&["forks", "x"], 2, "usage", "'x'"),
    (&["watch", "x"], 2, "usage", "'x'"),
    (&["watch", "--status", "--stop"], 2, "usage", "--stop"),
    (&["adopt"], 2, "usage", "<DIR>"),
    (&["adopt", "../full"], 2, "usage", "full"),
    (&["adopt", "../missing"], 2, "usage", "missing"),
    (&["adopt", "."], 2, "usage", "not a fork"),
    (&["rewind", "x"], 2, "usage", "'x' for '[N]'"),
    (&["rewind", "-1"], 2, "usage", "'-1' for '[N]'"),
    (&["rewind", "99"], 3, "unknown_checkpoint", "@~99"),
    (&["rewind", "1", "2"], 2, "usage", "'2'"),
    (&["rewind", "--turn", "0"], 2, "usage", "--turn 0 is not valid"),
    (&["rewind", "0", "--turn", "--dry-run"], 2, "usage", "--turn 0 is not valid"),
    (&["rewind", "--turn"], 3, "unknown_checkpoint", "--turn 1"),
    (&["undo", "3"], 2, "usage", "'3'"),
    (&["redo", "3"], 2, "usage", "'3'"),
    (&["recover", "extra"], 2, "usage", "extra"),
    (&["export"], 2, "usage", "<ID> <DIR>"),
    (&["export", "@"], 2, "usage", "<DIR>"),
    (&["export", "@", ""], 2, "usage", "<DIR>"),
    (&["export", "@", "new"], 2, "usage", "ws/new is inside the workspace"),
    (&["export", "@", "."], 2, "usage", "inside the workspace"),
    (&["export", "@", "../full"], 2, "usage", "full"),
    (&["export", "@", "../new", "b"], 2, "usage", "'b'"),
    (&["delete"], 2, "usage", "<ID>"),
    (&["delete", "--force"], 2, "usage", "<ID>"),
    (&["delete", "latest", "nonsense"], 3, "unknown_checkpoint", "nonsense"),
    (&["delete", "done"], 6, "feature_checkpoint", "feature checkpoint"),
    (&["delete", "@", "--older-than", "7d"], 2, "usage", "--older-than"),
    (&["delete", "@", "--kind", "step"], 2, "usage", "--kind"),
    (&["delete", "--kind", "step"], 2, "usage", "--older-than"),
    (&["delete", "--older-than", "soon"], 2, "usage", "soon"),
    (&["delete", "--older-than", "7d", "--kind", "odd"], 2, "usage", "odd"),
    (&["prune", "extra"], 2, "usage", "extra"),
    (&["pin"], 2, "usage", "<ID>"),
    (&["pin", "@", "@"], 2, "usage", "'@'"),
    (&["unpin"], 2, "usage", "<ID>"),
    (&["exclude", "["], 2, "usage", "\"[\" can't match anything"),
    (&["exclude", "../x"], 2, "usage", "\"../x\" can't match anything"),
    (&["exclude", "*.log", "# note"], 2, "usage", "# note"),
    (
        &["exclude", "dir/./b.txt"],
        2,
        "usage",
        "\"dir/./b.txt\" can't match anything: a path in the workspace can't contain . as a part",
    ),
    (&["exclude", "./../x"], 2, "usage", "\"./../x\" can't match anything"),
    (&["exclude", "."], 2, "usage", "\".\" can't match anything: it is the workspace itself"),
    (&["exclude", "a\nb"], 2, "usage", "more than one line"),
    (&["exclude", "/etc/passwd"], 2, "usage", "\"/etc/passwd\" can't match anything: it is outside the workspace"),
    (&["exclude"], 2, "usage", "<PATTERN>"),
    (&["exclude", ""], 2, "usage", "empty pattern"),
    (&["verify", "extra"], 2, "usage", "extra"),
    (&["doctor", "extra"], 2, "usage", "extra"),
    (&["events", "extra"], 2, "usage", "extra"),
    (&["events", "--since", "soon"], 2, "usage", "soon"),
    (&["workspaces", "extra"], 2, "usage", "extra"),
    (&["workspaces", "--yes"], 2, "usage", "--yes"),
    (&["workspaces", "--forget"], 2, "usage", "--forget"),
    (&["workspaces", "--forget", "", "--yes"], 2, "usage", "--forget"),
    (&["workspaces", "--forget", "."], 2, "usage", "/ws"),
    (&["workspaces", "--forget", "../none", "--yes"], 2, "usage", "none is not a workspace"),
    (&["workspaces", "--forget", "dir", "--yes"], 2, "usage", "dir is not a workspace"),
    (&["workspaces", "--prune", "--forget", ".", "--yes"], 2, "usage", "--forget"),
    (&["forget-workspace"], 2, "usage", "<DIR>"),
    (&["forget-workspace", "."], 2, "usage", "/ws"),
    (&["install"], 2, "usage", "<AGENT>"),
    (&["install", "vim"], 2, "usage", "vim"),
    (&["install", "claude", "codex"], 2, "usage", "codex"),
    (&["install", "claude", "--user", "--project"], 2, "usage", "--project"),
    (&["install", "--list", "claude"], 2, "usage", "--list"),
    (&["uninstall"], 2, "usage", "<AGENT>"),
    (&["uninstall", "vim"], 2, "usage", "vim"),
    (&["uninstall", "claude", "--user", "--shared"], 2, "usage", "--shared"),
    (&["ui", "extra"], 2, "usage", "extra"),
    (&["ui", "--port", "70000"], 2, "usage", "70000"),
    (&["mcp", "extra"], 2, "usage", "extra"),
    (&["mcp", "--http", "nonsense"], 2, "usage", "nonsense"),
    (&["mcp", "--http", "99999"], 2, "usage", "99999"),
    (&["mcp", "--http", "0.0.0.0:1"], 2, "usage", "0.0.0.0:1"),
    (&["mcp", "--token-file", "a.txt"], 2, "usage", "--http"),
    (&["mcp", "--http", "0", "--token-file", "missing"], 1, "io", "ws/missing"),
    (&["mcp", "--http", "0", "--token-file", "a.txt"], 2, "usage", "ws/a.txt"),
    (&["git"], 2, "usage", "<ARGS>"),
    (&["git", "commit"], 2, "usage", "git commit"),
    (&["git", "log", "--output=x"], 2, "usage", "--output=x"),
    (&["git", "log", "@~99"], 3, "unknown_checkpoint", "@~99"),
    (&["demo", "extra"], 2, "usage", "extra"),
    (&["completions"], 2, "usage", "<SHELL>"),
    (&["completions", "tcsh"], 2, "usage", "tcsh"),
    (&["man", "frob"], 2, "usage", "frob"),
    (&["man", "save", "--dir", "x"], 2, "usage", "--dir"),
    (&["man", "--dir", ""], 2, "usage", "--dir"),
    (&["man", "--dir", "a.txt"], 1, "io", "ws/a.txt"),
];

/// Every command that takes a checkpoint. `ID` is the place of the checkpoint.
const WITH_A_CHECKPOINT: &[&[&str]] = &[
    &["show", "--", "ID"],
    &["status", "--since=ID"],
    &["diff", "--stat", "ID"],
    &["diff", "@", "ID"],
    &["cat", "--", "ID", "a.txt"],
    &["restore", "--", "ID"],
    &["restore", "--dry-run", "ID"],
    &["export", "ID", "../new"],
    &["delete", "--", "ID"],
    &["delete", "--dry-run", "ID"],
    &["pin", "--", "ID"],
    &["unpin", "--", "ID"],
];

/// Every command that works on a workspace, with valid arguments. The boolean is set if it changes the workspace or the
/// store, except for restores.
const ON_A_WORKSPACE: &[(&[&str], bool)] = &[
    (&["init"], true),
    (&["save"], true),
    (&["step"], true),
    (&["try", "--", "true"], true),
    (&["pipeline", "../good.yaml"], true),
    (&["list"], false),
    (&["show", "@"], false),
    (&["status"], false),
    (&["diff"], false),
    (&["cat", "@", "a.txt"], false),
    (&["history", "a.txt"], false),
    (&["restore", "@"], false),
    (&["rewind"], false),
    (&["undo"], false),
    (&["redo"], false),
    (&["recover"], false),
    (&["export", "@", "../new"], false),
    (&["delete", "@~1"], true),
    (&["prune"], true),
    (&["pin", "@"], true),
    (&["unpin", "@"], true),
    (&["exclude", "x"], true),
    (&["verify"], false),
    (&["events"], false),
    (&["mcp"], false),
    (&["git", "log"], false),
];

/// Files and directories with their mode and content.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Returns a workspace with two checkpoints and unsaved work, and a directory and pipelines beside it.
fn place() -> Place {
    let place = Place::saved();
    place.write("a.txt", "three\n");
    place.ok(["save", "second", "--kind", "feature", "--name", "done"]);
    place.write("a.txt", "unsaved\n");
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/file"), "mine").unwrap();
    fs::write(place.path("good.yaml"), "steps:\n  - name: a\n    run: echo ran > ran\n").unwrap();
    fs::write(place.path("unknown-key.yaml"), "steps:\n  - name: a\n    frob: 1\n").unwrap();
    place
}

/// Returns everything that must not change. The program's own files do not count, except for the refs of the store.
fn tree(place: &Place) -> Tree {
    let mut found = Tree::new();
    for name in ["ws", "full", "home"] {
        read(&place.path(name), &mut found);
    }
    let store = place.store();
    found.retain(|path, _| !path.starts_with(place.path("home/backtrail")) || path.starts_with(store.join("refs")));
    found.extend(fs::read_dir(place.path("")).unwrap().map(|entry| (entry.unwrap().path(), (0, Vec::new()))));
    found
}

fn read(directory: &Path, found: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let bytes = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path.clone(), (metadata.permissions().mode(), bytes));
        if metadata.is_dir() {
            read(&path, found);
        }
    }
}

/// Runs a command with and without `--json`, which must fail. Checks the exit status, the error and that no file
/// changed.
#[track_caller]
fn assert_refused(place: &Place, words: &[impl AsRef<str>], code: i32, error_code: &str, part: &str) {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let before = tree(place);
    let as_script = place.run(["--json"].iter().chain(&words));
    let shown = format!("{words:?}: {}", as_script.shown());
    let (exit, word, message) = as_script.error();
    assert_eq!((exit, word.as_str()), (code, error_code), "{shown}");
    assert!(message.contains(part), "{part:?} is missing from {shown}");
    assert_eq!(as_script.text().lines().count(), 1, "stdout is not one line: {shown}");

    let mut lines = as_script.stderr.lines();
    assert_eq!(lines.next(), Some(format!("error: {message}").as_str()), "{shown}");
    let hint = as_script.json()["error"]["hint"].as_str().map(|hint| format!("hint: {hint}"));
    assert_eq!(lines.map(str::to_owned).collect::<Vec<_>>(), Vec::from_iter(hint), "{shown}");

    let as_person = place.run(&words);
    assert_eq!((as_person.code, as_person.text().as_str()), (code, ""), "{words:?}: {}", as_person.shown());
    assert_eq!(as_person.stderr, as_script.stderr, "{words:?}");
    let changed: Vec<_> = differences(&before, &tree(place));
    assert!(changed.is_empty(), "{words:?} changed {changed:?}");
}

fn differences(before: &Tree, after: &Tree) -> Vec<PathBuf> {
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// Returns the commands that `--help` lists, and the hidden one.
fn commands(place: &Place) -> Vec<String> {
    let help = place.ok(["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let words = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    words.filter(|word| *word != "help").chain(["forget-workspace"]).map(str::to_owned).collect()
}

#[test]
fn invalid_arguments_are_refused() {
    let place = place();
    for (words, code, error_code, part) in ARGUMENTS {
        assert_refused(&place, words, *code, error_code, part);
    }
}

#[test]
fn every_command_has_a_row_and_refuses_an_unknown_option() {
    let place = place();
    let given: BTreeSet<_> = ARGUMENTS.iter().map(|(words, ..)| words[0]).collect();
    let commands = commands(&place);
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands.iter().filter(|command| *command != "hook") {
        assert!(given.contains(command.as_str()), "no row for {command}");
        assert_refused(&place, &[command.as_str(), "--frobnicate"], 2, "usage", "--frobnicate");
    }
}

#[test]
fn a_hook_with_invalid_arguments_succeeds_and_changes_nothing() {
    let place = place();
    let before = tree(&place);
    for words in [&["hook"][..], &["hook", "vim"], &["hook", "claude", "--frobnicate"], &["hook", "claude", "-w", "no"]]
    {
        let run = place.run(words);
        assert_eq!((run.code, run.text().as_str()), (0, ""), "{words:?}: {}", run.shown());
        assert_eq!(differences(&before, &tree(&place)), Vec::<PathBuf>::new(), "{words:?}");
    }
}

#[test]
fn unknown_checkpoints_are_refused() {
    let place = place();
    for pattern in WITH_A_CHECKPOINT {
        for id in ["nonsense", "0000", "0123456789012345678901234567890123456789", "step:7", "ago:100d", "@~99"] {
            assert_refused(&place, &with_id(pattern, id), 3, "unknown_checkpoint", id);
        }
        let accepts_leading_dash = pattern.contains(&"--") || pattern.iter().any(|word| word.ends_with("=ID"));
        let (code, error_code) = if accepts_leading_dash { (3, "unknown_checkpoint") } else { (2, "usage") };
        assert_refused(&place, &with_id(pattern, "-x"), code, error_code, "-x");
    }
}

fn with_id(pattern: &[&str], id: &str) -> Vec<String> {
    pattern.iter().map(|word| word.replace("ID", id)).collect()
}

#[test]
fn an_ambiguous_id_prefix_is_refused() {
    let place = place();
    let ids = [checkpoint_with_number(&place, 726), checkpoint_with_number(&place, 1276)];
    let prefix = &ids[0][..5];
    assert!(ids[0] != ids[1] && ids[1].starts_with(prefix), "{ids:?}");
    for pattern in WITH_A_CHECKPOINT {
        assert_refused(&place, &with_id(pattern, prefix), 3, "ambiguous_checkpoint", prefix);
    }
    let message = place.run(["--json", "show", prefix]).error().2;
    assert!(ids.iter().all(|id| message.contains(&id[..8])), "{message}");
    assert_eq!(place.id(&ids[1][..8]), ids[1]);
}

/// Writes an empty checkpoint into the store and returns its id, which depends on the number alone. The ids of 726 and
/// 1276 have the same prefix.
fn checkpoint_with_number(place: &Place, number: u32) -> String {
    let store = place.store();
    let git = |words: &[&str]| {
        let done = Command::new("git").arg("--git-dir").arg(&store).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let tree = git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let who = "Backtrail <backtrail@localhost> 1700000000 +0000";
    let modes = r#"{"file":420,"executable":493,"directory":493}"#;
    let sequence = number + 100;
    let commit = format!(
        "tree {tree}\nauthor {who}\ncommitter {who}\n\ntwin {number}\n\n\
         Backtrail-Record: {{\"v\":1,\"seq\":{sequence},\"kind\":\"manual\",\"time\":1700000000000,\
         \"message\":\"twin {number}\",\"insertions\":0,\"deletions\":0,\"changed\":[],\"modes\":{modes}}}\n"
    );
    let file = place.path("commit");
    fs::write(&file, commit).unwrap();
    let id = git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
    fs::remove_file(file).unwrap();
    git(&["update-ref", &format!("refs/checkpoints/{id}"), &id]);
    id
}

#[test]
fn names_that_are_addresses_are_refused() {
    let place = place();
    let id = "0123456789012345678901234567890123456789";
    for name in ["", "@", "@~1", "-x", "latest", "step:3", "before:x", "ago:5m", "at:9", "commit:abc", id] {
        assert_refused(&place, &["save", &format!("--name={name}")], 2, "usage", &format!("{name:?}"));
    }
}

#[test]
fn missing_workspaces_are_refused() {
    let place = place();
    let in_a_project: [(&[&str], bool); 3] = [
        (&["doctor"], false),
        (&["install", "claude", "--project"], true),
        (&["uninstall", "claude", "--shared"], true),
    ];
    for (words, _) in ON_A_WORKSPACE.iter().chain(&in_a_project) {
        for (directory, part) in [("missing", "ws/missing"), ("a.txt", "ws/a.txt is not a directory")] {
            let words: Vec<_> = ["-w", directory].iter().chain(*words).copied().collect();
            assert_refused(&place, &words, 1, "io", part);
        }
    }
}

#[test]
fn protected_directories_are_refused_without_force() {
    let place = place();
    let home = place.path("home");
    let home = home.to_str().unwrap();
    let commands =
        [&["init"][..], &["save"], &["step"], &["exclude", "x"], &["pipeline", "../good.yaml"], &["try", "--", "true"]];
    for words in commands {
        for directory in ["/", "/tmp", home] {
            let words: Vec<_> = ["-w", directory].iter().chain(words).copied().collect();
            assert_refused(&place, &words, 6, "protected_directory", directory);
        }
        // The hint names `--force`, which must work.
        let refused = place.run(["-w", home].iter().chain(words));
        assert!(refused.stderr.contains("or use --force"), "{}", refused.shown());
        let forced = place.run(["-q", "-w", home, words[0], "--force"].iter().chain(&words[1..]));
        assert_eq!(forced.code, 0, "{}", forced.shown());
    }
}

#[test]
fn invalid_workspace_settings_stop_commands_that_write() {
    let place = place();
    let broken: &[(&[u8], &str)] = &[
        (b"nonsense", "backtrail.toml: line 1"),
        (b"[scan]\nfrob = 1\n", "line 2: unknown field `frob`"),
        (b"[checkpoints]\nevery_n_steps = 0\n", "line 2: [checkpoints] every_n_steps: 0 is out of range"),
        (b"[scan]\nmax_file_bytes = \"big\"\n", "line 2: [scan] max_file_bytes: \"big\""),
        (b"[retention]\nmax_age = \"soon\"\n", "line 2: [retention] max_age: \"soon\""),
        (b"[state]\nfeatures = \"../x\"\n", "line 2: [state] features: \"../x\""),
        (b"[state]\nfeatures = \"\"\n", "line 2: [state] features: \"\""),
        (b"[state]\nprogress = \"\"\n", "line 2: [state] progress: \"\""),
        (b"\n[stores]\ndir = \"/x\"\n", "backtrail.toml: line 2: [stores]"),
        (b"[scan]\n\n[pipelines]\nagent = \"x\"\n", "backtrail.toml: line 3: [pipelines]"),
        (b"[scan]\n\xff", "backtrail.toml: line 2: not UTF-8"),
    ];
    for (content, part) in broken {
        place.write("backtrail.toml", content);
        assert_refused(&place, &["save"], 2, "settings", part);
    }
    place.write("backtrail.toml", "nonsense");
    for (words, _) in ON_A_WORKSPACE.iter().filter(|(_, writes)| *writes) {
        assert_refused(&place, words, 2, "settings", "ws/backtrail.toml: line 1");
    }
    // Commands that only read or restore print a warning and go on.
    let run = place.run(["list", "--json"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stderr.starts_with("warning: ") && run.stderr.contains("ws/backtrail.toml: line 1"), "{}", run.stderr);
}

#[test]
fn invalid_user_settings_stop_every_command() {
    let place = place();
    let file = place.path("home/.config/backtrail/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[checkpoints]\nauto = maybe\n").unwrap();
    for (words, _) in ON_A_WORKSPACE {
        assert_refused(&place, words, 2, "settings", "backtrail/config.toml: line 2");
    }
    fs::write(&file, "\n[stores]\ndir = \"here\"\n").unwrap();
    assert_refused(
        &place,
        &["save"],
        2,
        "settings",
        "backtrail/config.toml: line 3: [stores] dir: \"here\" must be absolute",
    );
}

/// This file may set the directory of the stores. Without it, the program could show the history of another store.
#[test]
fn user_settings_that_are_not_a_regular_file_are_refused() {
    let place = place();
    let file = place.path("home/.config/backtrail/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let target = place.path("home/dotfiles.toml");
    for target_is in ["does not exist", "a directory", "not a regular file"] {
        match target_is {
            "a directory" => fs::create_dir(&target).unwrap(),
            "not a regular file" => {
                fs::remove_dir(&target).unwrap();
                assert!(Command::new("mkfifo").arg(&target).status().unwrap().success());
            }
            _ => {}
        }
        std::os::unix::fs::symlink(&target, &file).unwrap();
        assert_refused(&place, &["list"], 2, "settings", target_is);
        fs::remove_file(&file).unwrap();
        if target.exists() {
            fs::rename(&target, &file).unwrap();
            assert_refused(&place, &["list"], 2, "settings", target_is);
            fs::rename(&file, &target).unwrap();
        }
    }
    fs::remove_file(&target).unwrap();
    fs::write(&target, "[retention]\nstep = 7\n").unwrap();
    std::os::unix::fs::symlink(&target, &file).unwrap();
    place.ok(["list"]);
}

#[test]
fn a_directory_that_is_not_a_store_is_refused() {
    let place = place();
    for words in [&["save"][..], &["init"], &["step"], &["try", "--", "true"]] {
        let words: Vec<_> = ["--store", "../full"].iter().chain(words).copied().collect();
        assert_refused(&place, &words, 2, "usage", "full is neither a store nor an empty directory");
    }
}

#[test]
fn a_store_with_an_invalid_format_file_is_refused() {
    let place = place();
    fs::write(place.store().join("backtrail/format"), "junk\n").unwrap();
    for (words, _) in ON_A_WORKSPACE.iter().filter(|(words, _)| !["exclude", "mcp"].contains(&words[0])) {
        let words: Vec<_> = ["--quiet"].iter().chain(*words).copied().collect();
        assert_refused(&place, &words, 5, "store_damaged", "backtrail/format");
    }
}

#[test]
fn a_locked_workspace_is_busy() {
    let place = place();
    let _lock = place.hold_lock();
    let waiting = ["restore", "rewind", "undo", "redo", "recover"];
    for (words, writes) in ON_A_WORKSPACE {
        if words[0] != "exclude" && (*writes || waiting.contains(&words[0])) {
            let words: Vec<_> = ["--quiet", "--wait", "0"].iter().chain(*words).copied().collect();
            assert_refused(&place, &words, 7, "busy", "/ws");
        }
    }
}

#[test]
fn changes_after_a_deleted_checkpoint_are_refused() {
    let place = place();
    place.write("a.txt", "four\n");
    place.ok(["save", "third"]);
    place.ok(["delete", "done", "--force"]);
    assert_refused(&place, &["revert", "@"], 3, "unknown_checkpoint", "was deleted");
    let hint = place.run(["revert", "@"]).stderr;
    assert!(hint.contains(".."), "the hint names a range: {hint}");
}

#[test]
fn lines_of_a_binary_file_are_refused() {
    let place = place();
    place.write("binary", b"\0\n");
    assert_refused(&place, &["blame", "binary"], 2, "usage", "binary");
}

#[test]
fn a_fork_without_its_directory_or_its_origin_is_refused() {
    let place = place();
    place.ok(["fork", "../fork"]);
    place.ok(["fork", "../gone"]);
    fs::remove_file(place.path("gone/a.txt")).unwrap();
    fs::rename(place.path("gone"), place.path("full/elsewhere")).unwrap();
    assert_refused(&place, &["adopt", "../gone"], 2, "usage", "not a fork");
    assert_refused(&place, &["adopt", "../full/elsewhere"], 2, "usage", "not a fork");
    fs::rename(place.path("ws"), place.path("full/ws")).unwrap();
    let in_fork = |words: &[&str]| place.run_in(&place.path("fork"), words);
    assert_eq!(in_fork(&["adopt", "../ws"]).code, 2);
    fs::write(place.path("fork/a.txt"), "work in the fork\n").unwrap();
    assert_eq!(in_fork(&["save", "work"]).code, 0, "a fork needs no origin");
    assert_eq!(in_fork(&["undo"]).code, 0);
}
