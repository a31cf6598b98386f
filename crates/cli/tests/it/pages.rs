//! `completions`, `man` and the help.

use crate::place::Place;

#[test]
fn every_shell_has_a_completion_script() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(["completions", shell]).contains("backtrail"), "{shell}");
    }
    assert_eq!(place.run(["completions", "tcsh"]).code, 2);
}

#[test]
fn the_manual_has_every_command() {
    let place = Place::new();
    let whole = place.ok(["man"]);
    for command in ["INIT", "SAVE", "LIST", "SHOW", "STATUS", "DIFF", "CAT", "VERIFY", "DEMO"] {
        assert!(whole.contains(&format!(".SH \"BACKTRAIL {command}\"")), "{command}");
    }
    let (program, commands) = whole.split_once(".SH \"BACKTRAIL").unwrap();
    assert!(program.contains("\\-\\-workspace") && !commands.contains("\\-\\-workspace"), "global options appear once");
    let one = place.ok(["man", "save"]);
    assert!(one.contains("\\-\\-allow\\-empty") && !one.contains("\\-\\-name\\-status"));
    assert_eq!(place.ok(["man", "ls"]), place.ok(["man", "list"]));
    assert_eq!(place.run(["man", "frobnicate"]).code, 2);
}

#[test]
fn man_dir_writes_a_page_for_each_command() {
    let place = Place::new();
    let stdout = place.ok(["man", "--dir", "../man/man1"]);
    let pages: Vec<String> = std::fs::read_dir(place.path("man/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(stdout.starts_with(&format!("wrote {} pages", pages.len())), "{stdout}{pages:?}");
    for page in ["backtrail.1", "backtrail-save.1", "backtrail-restore.1", "backtrail-workspaces.1"] {
        assert!(pages.iter().any(|known| known == page), "{page}: {pages:?}");
    }
    let save = std::fs::read_to_string(place.path("man/man1/backtrail-save.1")).unwrap();
    assert!(save.contains("\\-\\-allow\\-empty"), "{save}");
    assert_eq!(place.run(["man", "save", "--dir", "../man"]).code, 2);
}

#[test]
fn help_and_version_need_no_home() {
    let mut place = Place::new();
    place.unset("HOME");
    place.unset("BACKTRAIL_HOME");
    assert!(place.ok(["--help"]).contains("Usage: backtrail"));
    assert!(place.ok(["save", "--help"]).contains("--allow-empty"));
    assert!(place.ok(["help", "save"]).contains("--allow-empty"));
    assert!(place.ok(["--version"]).starts_with("backtrail "));
    assert!(!place.ok(["--help"]).contains('\x1b'));
    assert!(place.ok(["--help", "--color", "always"]).contains('\x1b'));
}
