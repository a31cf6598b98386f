//! Completion of a command line: the protocol of each shell, and the script in a real bash.

use std::{fs, process::Command};

use crate::place::{Place, raw};

/// Returns a workspace with checkpoints, one of them named and pinned, and with unusual file names.
fn place() -> Place {
    let place = Place::saved();
    place.write("src/main.py", "1\n");
    place.write("src/my file.txt", "1\n");
    place.write("src/deep/x", "1\n");
    place.write(raw(b"src/\xff"), "1\n");
    place.write("src/bell\x07", "1\n");
    place.ok(["save", "--name", "release: one", "--session", "s-1", "--attach", "log=a.txt"]);
    place.ok(["pin", "@"]);
    place.write("a.txt", "spoilt\n");
    place.ok(["save", "after the\nagent"]);
    place
}

/// Returns the values that fish gets for a command line, with their descriptions. The last word is to be completed.
fn fish(place: &Place, words: &[&str]) -> Vec<(String, String)> {
    let mut command = completion_command(place, "fish", &[&["--", "backtrail"], words].concat());
    let done = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{words:?}");
    assert!(done.status.success(), "{words:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    let line = |line: &str| line.split_once('\t').map(|(value, help)| (value.to_owned(), help.to_owned()));
    text.lines().map(|text| line(text).unwrap_or_else(|| (text.to_owned(), String::new()))).collect()
}

fn completion_command(place: &Place, shell: &str, words: &[&str]) -> Command {
    let mut command = place.command(&place.path("ws"), words);
    command.env("BACKTRAIL_COMPLETE", shell);
    command
}

fn values(place: &Place, words: &[&str]) -> Vec<String> {
    fish(place, words).into_iter().map(|(value, _)| value).collect()
}

#[test]
fn checkpoints_are_offered_with_their_messages() {
    let place = place();
    let (first, named, last) = (place.id("@~2"), place.id("@~1"), place.id("@"));
    let offered = fish(&place, &["restore", ""]);
    let shown: Vec<(&str, &str)> = offered.iter().map(|(value, help)| (value.as_str(), help.as_str())).collect();
    assert!(shown[0].0 == "@" && shown[0].1.ends_with("  after the"), "{shown:?}");
    assert_eq!(shown[1].0, "latest");
    let ids: Vec<&str> = shown[2..].iter().map(|(value, _)| *value).collect();
    assert_eq!(ids, [&last[..8], &named[..8], &first[..8]], "newest first, without options");
    assert!(shown[2].1.ends_with("  after the") && shown[3].1.ends_with("  release: one"), "{shown:?}");

    assert_eq!(values(&place, &["show", &named[..5]]), [&named[..8]]);
    assert_eq!(
        values(&place, &["show", &named[..12]]),
        [named.as_str()],
        "a longer prefix is completed to the full id"
    );
    assert_eq!(values(&place, &["show", "rel"]), ["release: one"]);
    assert_eq!(values(&place, &["show", &format!("before:{}", &named[..5])]), [format!("before:{}", &named[..8])]);
    assert_eq!(values(&place, &["show", "@~"]), ["@~1", "@~2"]);
    assert_eq!(values(&place, &["diff", "@", "lat"]), ["latest"]);
    assert_eq!(values(&place, &["unpin", ""]), [&named[..8]]);
    assert_eq!(values(&place, &["delete", &first[..8], "lat"]), ["latest"]);
    assert_eq!(values(&place, &["status", "--since", "lat"]), ["latest"]);
    assert_eq!(values(&place, &["show", "zzz"]), Vec::<String>::new());
}

#[test]
fn paths_of_the_checkpoint_are_offered() {
    let place = place();
    let first = place.id("@~2");
    fs::remove_file(place.path("ws/src/main.py")).unwrap();
    place.write("src/new", "not saved\n");
    assert_eq!(values(&place, &["restore", "@", ""]), ["a.txt", "dir/", "src/"]);
    assert_eq!(values(&place, &["restore", &first, ""]), ["a.txt", "dir/"]);
    assert_eq!(values(&place, &["restore", "@", "a.txt", "src/"]), ["src/deep/", "src/main.py", "src/my file.txt"]);
    assert_eq!(values(&place, &["cat", "@", "src/m"]), ["src/main.py", "src/my file.txt"]);
    assert_eq!(values(&place, &["history", "./src/ma"]), ["./src/main.py"]);
    assert_eq!(values(&place, &["diff", "@", "--", "di"]), ["dir/"]);
    assert_eq!(values(&place, &["cat", "@~1", "--attachment", ""]), ["log"]);
    assert_eq!(values(&place, &["list", "--session", ""]), ["s-1"]);
    assert_eq!(values(&place, &["restore", "@", "../"]), Vec::<String>::new());
    assert!(values(&place, &["restore", "no-such", ""]).iter().all(|value| value.starts_with("--")));
}

#[test]
fn commands_and_options_are_offered_and_the_workspace_option_is_used() {
    let place = place();
    assert_eq!(values(&place, &["res"]), ["restore"]);
    assert!(values(&place, &["restore", "--d"]).contains(&"--dry-run".to_owned()));
    assert_eq!(values(&place, &["man", "unp"]), ["unpin"]);
    let elsewhere = place.path("home");
    let workspace = place.path("ws").display().to_string();
    let words = ["--", "backtrail", "-w", &workspace, "show", "lat"];
    let done = place.command(&elsewhere, words).env("BACKTRAIL_COMPLETE", "/usr/bin/fish").output().unwrap();
    assert!(String::from_utf8(done.stdout).unwrap().starts_with("latest\t"), "-w is used");
}

#[test]
fn errors_are_silent_and_no_store_is_created() {
    let nothing = Place::new();
    let offered = values(&nothing, &["restore", ""]);
    assert!(offered.iter().all(|value| value.starts_with("--")), "only options are offered: {offered:?}");
    assert!(!nothing.path("home/backtrail").exists());
    let place = place();
    place.write("backtrail.toml", "<<<garbage");
    assert!(values(&place, &["show", "lat"]).contains(&"latest".to_owned()), "invalid settings do not matter");
    fs::write(place.store().join("backtrail/format"), "garbage").unwrap();
    for (shell, words) in
        [("fish", &["--", "backtrail", "show", ""][..]), ("tcsh", &[]), ("bash", &["--", "x"]), ("zsh", &[])]
    {
        let done = completion_command(&place, shell, words).output().unwrap();
        assert_eq!(done.stderr, b"", "{shell}");
        assert!(!String::from_utf8(done.stdout).unwrap().contains("damaged"), "{shell}");
    }
    let mut place = place;
    place.set("BACKTRAIL_COMPLETE", "");
    assert!(place.ok(["--version"]).starts_with("backtrail "), "an empty variable starts no completion");
}

/// A lock of another process must not delay a user who types.
#[test]
fn completion_does_not_wait_for_a_lock() {
    let place = place();
    let held = place.hold_lock();
    assert_eq!(values(&place, &["show", "rel"]), ["release: one"]);
    drop(held);
}

#[test]
fn zsh_gets_values_with_descriptions() {
    let place = place();
    let mut command = completion_command(&place, "zsh", &["--", "backtrail", "show", "rel"]);
    command.env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("release\\: one:") && text.ends_with(&place.id("@~1")[..8]), "{text:?}");
    let script = place.ok(["completions", "zsh"]);
    assert!(script.starts_with("#compdef backtrail\n") && script.contains("BACKTRAIL_COMPLETE=\"zsh\""), "{script}");
}

/// Returns the values that a real bash computes with the script. The cursor is at the end of the line.
fn bash(place: &Place, line: &str, completion_type: u8) -> Vec<String> {
    let directory = std::path::Path::new(env!("CARGO_BIN_EXE_backtrail")).parent().unwrap();
    let script = format!(
        "PATH={}:$PATH; source <(backtrail completions bash); COMP_LINE=$LINE; COMP_POINT=${{#LINE}}; COMP_TYPE={completion_type}; \
         _backtrail_complete backtrail; printf '%s\\n' \"${{COMPREPLY[@]}}\"; complete -p backtrail >&2",
        directory.display()
    );
    let done = place.shell(&script).env("LINE", line).output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(stderr.contains("-F _backtrail_complete backtrail") && stderr.lines().count() == 1, "{stderr}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_with_the_script() {
    const TAB: u8 = 9;
    const LIST: u8 = 63;
    let place = place();
    let (named, last) = (place.id("@~1"), place.id("@"));
    assert_eq!(bash(&place, "backtrail restor", TAB), ["restore"]);
    assert_eq!(bash(&place, &format!("backtrail show {}", &named[..5]), TAB), [&named[..8]]);
    assert_eq!(bash(&place, "backtrail show rel", TAB), [r"release:\ one"]);
    assert_eq!(bash(&place, "backtrail show @~", TAB), ["@~1", "@~2"]);
    assert_eq!(
        bash(&place, &format!("backtrail show before:{}", &named[..5]), TAB),
        [&named[..8]],
        "bash splits words at :"
    );
    assert_eq!(bash(&place, r"backtrail cat @ src/my\ f", TAB), [r"src/my\ file.txt"]);
    assert_eq!(bash(&place, "backtrail cat @ 'src/my f", TAB), ["src/my file.txt"]);
    let listed = bash(&place, "backtrail show ", LIST);
    assert!(listed.iter().any(|line| line.starts_with(&last[..8]) && line.ends_with("  after the)")), "{listed:?}");
    assert_eq!(bash(&place, "backtrail show rel", LIST), [r"release:\ one"], "the only value has no description");
}

#[test]
fn stores_of_missing_workspaces_are_offered_for_adoption() {
    let place = place();
    assert_eq!(values(&place, &["workspaces", "--adopt", ""]), [""; 0], "the workspace of the store exists");
    let name = place.store().file_name().unwrap().to_str().unwrap().to_owned();
    fs::rename(place.path("ws"), place.path("home/away")).unwrap();
    fs::create_dir(place.path("ws")).unwrap();
    place.write("another", "1\n");
    let path = place.path("ws").display().to_string();
    assert_eq!(fish(&place, &["workspaces", "--adopt", ""]), [(name, path)]);
}

#[test]
fn prompts_and_ends_of_ranges_are_offered() {
    let place = place();
    crate::conversation::prompt(&place, "claude", 1);
    crate::conversation::prompt(&place, "claude", 2);
    assert_eq!(values(&place, &["restore", "turn:"]), ["turn:2", "turn:1"]);
    assert_eq!(values(&place, &["restore", "tu"]), ["turn:2", "turn:1"]);
    assert_eq!(values(&place, &["diff", "turn:1..turn:"]), ["turn:1..turn:2", "turn:1..turn:1"]);
    assert!(values(&place, &["restore", ""]).iter().all(|value| !value.starts_with("turn:")));
    assert!(values(&place, &["blame", "src/"]).contains(&"src/main.py".to_owned()));
    assert!(values(&place, &["bisect", "--good", "rel"]).contains(&"release: one".to_owned()));
}
