//! Two live directories behind one path, as two containers have them: nothing of one ever reaches the other.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::place::{Place, Run};

/// Runs what follows the first two words with the first directory mounted at the second, and standing there.
const BEHIND: &str = r#"mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@""#;

/// Returns whether this process may make mounts that no other process sees.
#[expect(clippy::print_stdout, reason = "a test that was skipped says so")]
fn can_mount() -> bool {
    let can = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]).output();
    let can = can.is_ok_and(|done| done.status.success());
    if !can {
        println!("not tried: this machine does not let a test mount anything");
    }
    can
}

/// A directory that only containers see at the path of the workspace. It does not lie beside that path, where one that was
/// renamed is looked for.
fn inside(place: &Place, name: &str) -> PathBuf {
    place.path("containers").join(name)
}

/// The program with `directory` of the place behind the path of the workspace.
fn command_behind(place: &Place, directory: &str, words: &[&str]) -> Command {
    let program = place.command(&place.path(""), words);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", BEHIND, "sh"]).args([inside(place, directory), place.path("ws")]);
    command.arg(program.get_program()).args(program.get_args()).env_clear().stdin(Stdio::null());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn behind(place: &Place, directory: &str, words: &[&str]) -> Run {
    place.ran(command_behind(place, directory, words).output().unwrap())
}

#[track_caller]
fn json_behind(place: &Place, directory: &str, words: &[&str]) -> Value {
    let run = behind(place, directory, &[words, &["--json"]].concat());
    assert_eq!(run.code, 0, "{directory} {words:?}: {}", run.shown());
    run.json()
}

fn messages(place: &Place, directory: &str) -> Vec<String> {
    let listed = json_behind(place, directory, &["list", "--all"]);
    let listed = listed["checkpoints"].as_array().unwrap().iter();
    listed.filter(|it| it["kind"] != "safety").map(|it| it["message"].as_str().unwrap().to_owned()).collect()
}

/// Every file below a directory, with its bytes.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Two directories with a checkpoint each, `one` and `two`, taken behind the same path.
fn two_behind_one_path() -> Place {
    let place = Place::new();
    for name in ["one", "two"] {
        fs::create_dir_all(inside(&place, name)).unwrap();
        fs::write(inside(&place, name).join(format!("only-{name}")), name).unwrap();
        fs::write(inside(&place, name).join("file"), name).unwrap();
        json_behind(&place, name, &["save", name]);
    }
    place
}

#[test]
fn each_directory_behind_a_path_has_its_own_history() {
    if !can_mount() {
        return;
    }
    let place = two_behind_one_path();
    assert_eq!((messages(&place, "one"), messages(&place, "two")), (vec!["one".into()], vec!["two".into()]));
    fs::write(inside(&place, "one/file"), "unsaved work").unwrap();
    let two = tree(&inside(&place, "two"));
    json_behind(&place, "one", &["restore", "@"]);
    for words in [&["undo"][..], &["redo"], &["recover"], &["restore", "@"]] {
        json_behind(&place, "two", words);
        assert_eq!(tree(&inside(&place, "two")), two, "{words:?}");
    }
    json_behind(&place, "one", &["undo"]);
    assert_eq!(fs::read(inside(&place, "one/file")).unwrap(), b"unsaved work");
    assert_eq!(tree(&inside(&place, "two")), two);
    json_behind(&place, "two", &["workspaces", "--prune"]);
    json_behind(&place, "one", &["verify"]);
    assert_eq!(messages(&place, "one"), ["one"]);
}

#[test]
fn a_restore_that_is_killed_in_one_is_none_of_the_others_business() {
    if !can_mount() {
        return;
    }
    let place = two_behind_one_path();
    let many = |bytes: &str| {
        (0..2_000).for_each(|number| fs::write(inside(&place, "one").join(number.to_string()), bytes).unwrap());
    };
    many("1");
    json_behind(&place, "one", &["save", "many", "--name", "many"]);
    let journal = place.path("home/backtrail/stores").join(store_of(&place, "one")).join("backtrail/journal");
    for _ in 0..20 {
        many("2");
        let mut restore = command_behind(&place, "one", &["restore", "many"]).stdout(Stdio::null()).spawn().unwrap();
        while !journal.exists() && restore.try_wait().unwrap().is_none() {}
        restore.kill().unwrap();
        restore.wait().unwrap();
        if journal.exists() {
            break;
        }
    }
    assert!(journal.exists(), "no restore was caught in the middle");
    let (one, two) = (tree(&inside(&place, "one")), tree(&inside(&place, "two")));
    assert_eq!(json_behind(&place, "two", &["recover"])["outcome"], "nothing");
    assert_eq!(json_behind(&place, "two", &["recover", "--abort"])["outcome"], "nothing");
    json_behind(&place, "two", &["save", "again", "--allow-empty"]);
    json_behind(&place, "two", &["undo"]);
    assert_eq!((tree(&inside(&place, "one")), tree(&inside(&place, "two"))), (one, two));
    assert_eq!(json_behind(&place, "one", &["recover"])["outcome"], "finished");
    assert_eq!(fs::read(inside(&place, "one/1999")).unwrap(), b"1");
}

/// The name of the store of the directory behind the path.
fn store_of(place: &Place, directory: &str) -> PathBuf {
    let store = json_behind(place, directory, &["init"])["store"].as_str().unwrap().to_owned();
    PathBuf::from(store).file_name().unwrap().into()
}

/// The directory that has the history is in another container, not gone.
#[test]
fn an_empty_directory_behind_the_path_gets_nothing_of_the_other() {
    if !can_mount() {
        return;
    }
    let place = two_behind_one_path();
    fs::create_dir(inside(&place, "empty")).unwrap();
    assert_eq!(messages(&place, "empty"), [""; 0]);
    let run = behind(&place, "empty", &["restore", "@", "--json"]);
    assert_eq!(run.json()["error"]["code"], "unknown_checkpoint");
    assert!(run.stderr.contains("--adopt"), "{}", run.shown());
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 0, "nor the one below the mount");
    assert_eq!((tree(&inside(&place, "empty")).len(), tree(&place.path("ws")).len()), (0, 0));
    assert_eq!(messages(&place, "one"), ["one"]);
}

/// A directory on the host, and the same one in a container under another path.
#[test]
fn a_directory_keeps_its_history_behind_another_path() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(inside(&place, "one")).unwrap();
    fs::write(inside(&place, "one/file"), "1").unwrap();
    assert_eq!(place.run_in(&inside(&place, "one"), ["save", "outside"]).code, 0);
    assert_eq!(messages(&place, "one"), ["outside"]);
    fs::write(inside(&place, "one/file"), "2").unwrap();
    json_behind(&place, "one", &["save", "inside"]);
    let run = place.run_in(&inside(&place, "one"), ["list", "--json"]);
    assert_eq!(run.json()["checkpoints"].as_array().unwrap().len(), 2, "{}", run.shown());
}
