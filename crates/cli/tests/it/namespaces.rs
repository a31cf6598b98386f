//! Two directories that are mounted at the same path, as in two containers. Neither affects the other.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::place::{Place, Run};

/// Mounts the directory `$1` at `$2`, changes to it, and runs the remaining arguments.
const MOUNT_AND_RUN: &str = r#"mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@""#;

/// Returns whether this process may make mounts that no other process sees.
#[expect(clippy::print_stdout, reason = "a skipped test reports that it was skipped")]
fn can_mount() -> bool {
    let mounted = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]).output();
    let is_allowed = mounted.is_ok_and(|done| done.status.success());
    if !is_allowed {
        println!("skipped: this machine does not allow a test to mount");
    }
    is_allowed
}

/// Returns a directory that only containers see at the path of the workspace. It does not lie beside that path, because
/// the program looks there for renamed workspaces.
fn container_directory(place: &Place, name: &str) -> PathBuf {
    place.path("containers").join(name)
}

/// Returns a command for the program with `directory` of the place mounted at the path of the workspace.
fn mounted_command(place: &Place, directory: &str, words: &[&str]) -> Command {
    let program = place.command(&place.path(""), words);
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", MOUNT_AND_RUN, "sh"])
        .args([container_directory(place, directory), place.path("ws")]);
    command.arg(program.get_program()).args(program.get_args()).env_clear().stdin(Stdio::null());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn run_mounted(place: &Place, directory: &str, words: &[&str]) -> Run {
    place.run_from(mounted_command(place, directory, words).output().unwrap())
}

#[track_caller]
fn json_mounted(place: &Place, directory: &str, words: &[&str]) -> Value {
    let run = run_mounted(place, directory, &[words, &["--json"]].concat());
    assert_eq!(run.code, 0, "{directory} {words:?}: {}", run.shown());
    run.json()
}

fn messages(place: &Place, directory: &str) -> Vec<String> {
    let listed = json_mounted(place, directory, &["list", "--all"]);
    let listed = listed["checkpoints"].as_array().unwrap().iter();
    listed.filter(|it| it["kind"] != "safety").map(|it| it["message"].as_str().unwrap().to_owned()).collect()
}

/// Returns every file below a directory, with its bytes.
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

/// Returns two directories, `one` and `two`, each with a checkpoint that was taken at the same path.
fn two_directories_at_one_path() -> Place {
    let place = Place::new();
    for name in ["one", "two"] {
        fs::create_dir_all(container_directory(&place, name)).unwrap();
        fs::write(container_directory(&place, name).join(format!("only-{name}")), name).unwrap();
        fs::write(container_directory(&place, name).join("file"), name).unwrap();
        json_mounted(&place, name, &["save", name]);
    }
    place
}

#[test]
fn each_directory_mounted_at_a_path_has_its_own_history() {
    if !can_mount() {
        return;
    }
    let place = two_directories_at_one_path();
    assert_eq!((messages(&place, "one"), messages(&place, "two")), (vec!["one".into()], vec!["two".into()]));
    fs::write(container_directory(&place, "one/file"), "unsaved work").unwrap();
    let two = tree(&container_directory(&place, "two"));
    json_mounted(&place, "one", &["restore", "@"]);
    for words in [&["undo"][..], &["redo"], &["recover"], &["restore", "@"]] {
        json_mounted(&place, "two", words);
        assert_eq!(tree(&container_directory(&place, "two")), two, "{words:?}");
    }
    json_mounted(&place, "one", &["undo"]);
    assert_eq!(fs::read(container_directory(&place, "one/file")).unwrap(), b"unsaved work");
    assert_eq!(tree(&container_directory(&place, "two")), two);
    json_mounted(&place, "two", &["workspaces", "--prune"]);
    json_mounted(&place, "one", &["verify"]);
    assert_eq!(messages(&place, "one"), ["one"]);
}

#[test]
fn a_killed_restore_in_one_directory_does_not_affect_the_other() {
    if !can_mount() {
        return;
    }
    let place = two_directories_at_one_path();
    let many = |bytes: &str| {
        (0..2_000)
            .for_each(|number| fs::write(container_directory(&place, "one").join(number.to_string()), bytes).unwrap());
    };
    many("1");
    json_mounted(&place, "one", &["save", "many", "--name", "many"]);
    let journal = place.path("home/backtrail/stores").join(store_of(&place, "one")).join("backtrail/journal");
    for _ in 0..20 {
        many("2");
        let mut restore = mounted_command(&place, "one", &["restore", "many"]).stdout(Stdio::null()).spawn().unwrap();
        while !journal.exists() && restore.try_wait().unwrap().is_none() {}
        restore.kill().unwrap();
        restore.wait().unwrap();
        if journal.exists() {
            break;
        }
    }
    assert!(journal.exists(), "no restore was killed while it ran");
    let (one, two) = (tree(&container_directory(&place, "one")), tree(&container_directory(&place, "two")));
    assert_eq!(json_mounted(&place, "two", &["recover"])["outcome"], "nothing");
    assert_eq!(json_mounted(&place, "two", &["recover", "--abort"])["outcome"], "nothing");
    json_mounted(&place, "two", &["save", "again", "--allow-empty"]);
    json_mounted(&place, "two", &["undo"]);
    assert_eq!((tree(&container_directory(&place, "one")), tree(&container_directory(&place, "two"))), (one, two));
    assert_eq!(json_mounted(&place, "one", &["recover"])["outcome"], "finished");
    assert_eq!(fs::read(container_directory(&place, "one/1999")).unwrap(), b"1");
}

/// Returns the name of the store of the directory that is mounted at the path.
fn store_of(place: &Place, directory: &str) -> PathBuf {
    let store = json_mounted(place, directory, &["init"])["store"].as_str().unwrap().to_owned();
    PathBuf::from(store).file_name().unwrap().into()
}

/// The directory with the history still exists, in another container.
#[test]
fn an_empty_directory_mounted_at_the_path_has_no_history() {
    if !can_mount() {
        return;
    }
    let place = two_directories_at_one_path();
    fs::create_dir(container_directory(&place, "empty")).unwrap();
    assert_eq!(messages(&place, "empty"), [""; 0]);
    let run = run_mounted(&place, "empty", &["restore", "@", "--json"]);
    assert_eq!(run.json()["error"]["code"], "unknown_checkpoint");
    assert!(run.stderr.contains("--adopt"), "{}", run.shown());
    assert_eq!(
        place.json(["list"])["checkpoints"].as_array().unwrap().len(),
        0,
        "the directory below the mount has no history either"
    );
    assert_eq!((tree(&container_directory(&place, "empty")).len(), tree(&place.path("ws")).len()), (0, 0));
    assert_eq!(messages(&place, "one"), ["one"]);
}

/// A directory on the host, and the same directory in a container at another path.
#[test]
fn a_directory_keeps_its_history_at_another_path() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(container_directory(&place, "one")).unwrap();
    fs::write(container_directory(&place, "one/file"), "1").unwrap();
    assert_eq!(place.run_in(&container_directory(&place, "one"), ["save", "outside"]).code, 0);
    assert_eq!(messages(&place, "one"), ["outside"]);
    fs::write(container_directory(&place, "one/file"), "2").unwrap();
    json_mounted(&place, "one", &["save", "inside"]);
    let run = place.run_in(&container_directory(&place, "one"), ["list", "--json"]);
    assert_eq!(run.json()["checkpoints"].as_array().unwrap().len(), 2, "{}", run.shown());
}
