//! Environment variables, settings files and the current directory.

use std::{fs, path::Path};

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn without_a_home_only_commands_that_need_a_store_fail() {
    let mut place = Place::saved();
    place.unset("HOME");
    place.unset("BACKTRAIL_HOME");
    assert_shown!(
        place.run(["list"]),
        str![[r#"
--- stderr
error: can't find the stores: neither HOME nor BACKTRAIL_HOME is set
hint: set BACKTRAIL_HOME, or choose a store with --store DIR
--- exit 2

"#]]
    );
    let store = place.path("elsewhere");
    assert_eq!(place.run(["save", "--store", store.to_str().unwrap()]).code, 0);
    assert_eq!(place.run(["completions", "bash"]).code, 0);
}

/// Regression: with a relative HOME, a save wrote into the workspace.
#[test]
fn a_relative_home_is_ignored() {
    let mut place = Place::new();
    place.write("a", "1\n");
    place.unset("BACKTRAIL_HOME");
    place.set("HOME", "rel");
    let run = place.run(["save"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(!place.path("ws/rel").exists());
    place.set("XDG_DATA_HOME", place.path("data").to_str().unwrap());
    place.ok(["save"]);
    assert!(place.path("data/backtrail/stores").is_dir() && !place.path("ws/rel").exists());
}

/// Regression: an unreadable settings file stopped reading and restoring, although an invalid one did not.
#[test]
fn unreadable_settings_are_treated_like_invalid_ones() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    // Reading this file at offset 0 fails for every user, including root.
    std::os::unix::fs::symlink("/proc/self/mem", place.path("ws/backtrail.toml")).unwrap();
    for words in [&["status"][..], &["list"], &["verify"], &["recover"], &["restore", "@", "a.txt"], &["undo"]] {
        let run = place.run(words);
        assert_eq!(run.code, 0, "{words:?}: {}", run.shown());
        assert!(run.stderr.contains("backtrail.toml: it can't be read"), "{words:?}: {}", run.shown());
        assert!(run.stderr.contains("the file is ignored"), "{words:?}: {}", run.shown());
    }
    let (_, code, message) = place.run(["save", "--json"]).error();
    assert!(code == "settings" && message.contains("can't be read"), "{code}: {message}");
}

#[test]
fn environment_variables_set_the_directory_of_the_stores() {
    let mut place = Place::new();
    place.unset("BACKTRAIL_HOME");
    place.ok(["init"]);
    assert!(place.path("home/.local/share/backtrail/stores").is_dir());
    place.set("XDG_DATA_HOME", place.path("data").to_str().unwrap());
    place.ok(["init"]);
    assert!(place.path("data/backtrail/stores").is_dir());
    place.set("BACKTRAIL_HOME", "../relative");
    place.ok(["init"]);
    assert!(place.path("relative/stores").is_dir());
}

#[test]
fn user_settings_set_the_directory_of_the_stores() {
    let place = Place::new();
    let file = place.path("home/.config/backtrail/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[stores]\ndir = \"~/mine\"\n").unwrap();
    place.ok(["init"]);
    assert!(place.path("home/mine").is_dir());
    place.write("a", "1\n");
    let other = place.path("home/mine");
    let forced = place.run(["save", "--force", "--json", "-w", place.path("home").to_str().unwrap()]);
    assert!(other.is_dir() && !forced.json()["checkpoint"]["files_changed"].to_string().contains("mine/"));
    fs::write(&file, "[stores]\ndir = \"mine\"\n").unwrap();
    assert_shown!(
        place.run(["list"]),
        str![[r#"
--- stderr
error: [ROOT]/home/.config/backtrail/config.toml: line 2: [stores] dir: "mine" must be absolute or start with ~/ (in `dir = "mine"`)
--- exit 2

"#]]
    );
}

#[test]
fn environment_variables_switch_colours_on_and_off() {
    let mut place = Place::saved();
    let has_colours = |place: &Place| place.ok(["list"]).contains('\u{1b}');
    assert!(!has_colours(&place), "stdout is not a terminal");
    place.set("CLICOLOR_FORCE", "1");
    assert!(has_colours(&place));
    place.set("NO_COLOR", "1");
    assert!(!has_colours(&place));
}

#[test]
fn an_unknown_setting_is_refused() {
    let place = Place::saved();
    place.write("backtrail.toml", "[scan]\nexlude = []\n");
    let run = place.run(["save", "--json"]);
    let (code, word, message) = run.error();
    assert_eq!((code, word.as_str()), (2, "settings"));
    assert!(message.contains("backtrail.toml: line 2") && message.contains("exlude"), "{message}");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn the_users_git_excludes_are_followed() {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.config/git")).unwrap();
    fs::write(place.path("home/.config/git/ignore"), "*.tmp\n").unwrap();
    place.write("a", "1\n");
    place.write("b.tmp", "1\n");
    assert_eq!(place.json(["save"])["checkpoint"]["files_changed"].to_string(), r#"["a"]"#);
    fs::write(place.path("home/.gitconfig"), "[core]\n\texcludesFile = ~/own\n").unwrap();
    fs::write(place.path("home/own"), "a\n").unwrap();
    assert_eq!(place.json(["diff", "--", "b.tmp"])["added_files"].to_string(), r#"["b.tmp"]"#);
}

#[test]
fn a_deleted_current_directory_is_reported() {
    let place = Place::saved();
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && {} list; {0} list -w {}",
        env!("CARGO_BIN_EXE_backtrail"),
        place.path("ws").display()
    );
    let done = place.command(&place.path(""), [""; 0]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).current_dir(place.path("")).env_clear();
    shell.envs(done.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = shell.output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!(stderr.lines().next(), Some("error: the current directory no longer exists"));
    assert!(done.status.success() && String::from_utf8(done.stdout).unwrap().contains("first"));
}

#[test]
fn a_failed_write_to_stdout_is_reported() {
    let place = Place::saved();
    let mut command = place.command(&place.path("ws"), ["list"]);
    command.stdout(fs::File::options().write(true).open(Path::new("/dev/full")).unwrap());
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8(done.stderr).unwrap().starts_with("error: can't write to stdout"));
}
