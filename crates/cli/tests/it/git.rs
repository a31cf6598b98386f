use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn plain_git_reads_the_store() {
    let place = Place::saved();
    let id = place.id("@");
    assert_eq!(place.ok(["git", "cat-file", "blob", &format!("{id}:a.txt")]), "one\ntwo\n");
    assert_eq!(place.ok(["git", "log", "-1", "--format=%s", &id]), "first\n");
    assert_eq!(place.ok(["git", "ls-tree", "-r", "--name-only", &id]), "a.txt\ndir/b.txt\n");
    assert_eq!(place.ok(["git", "grep", "-h", "two", &id]), "two\n");
    let patch = place.ok(["git", "show", "--format=", &id]);
    assert!(patch.contains("+two\n"), "{patch}");
}

#[test]
fn words_are_passed_on_as_they_are() {
    let place = Place::saved();
    let id = place.id("@");
    let run = place.run(["git", "log", "--json", &id]);
    assert_eq!(run.code, 128, "{}", run.shown());
    assert!(run.stderr.contains("--json"), "{}", run.stderr);
    let run = place.run(["git", "diff", "-w", "--quiet", &id, &id]);
    assert_eq!((run.code, run.text().as_str()), (0, ""), "{}", run.stderr);
    assert_eq!(place.run(["git", "cat-file", "-e", "0123456789"]).code, 128);
}

#[test]
fn what_writes_is_refused() {
    let place = Place::saved();
    let id = place.id("@");
    let before = files(&place);
    for words in [
        &["gc"][..],
        &["commit"],
        &["branch", "x", &id],
        &["config", "user.name", "x"],
        &["update-ref", "-d", "x"],
        &["-c", "alias.x=!touch PWNED", "x"],
        &["-C", "/", "log"],
        &["--git-dir", "/", "log"],
        &["--exec-path=.", "log"],
        &["log", "--output=PWNED", &id],
        &["log", "--outpu=PWNED", &id],
        &["archive", "-o", "PWNED", &id],
        &["archive", "-voPWNED", &id],
        &["archive", "--remote=.", &id],
        &["grep", "-Otouch", "two", &id],
        &["grep", "-e", "--", "--open-files-in-pager=touch", &id],
        &["diff", "--no-index", "/etc/passwd", "/etc/group"],
        &["diff", "--ext-diff", &id],
        &["fsck", "--lost-found"],
        &["log", "--help"],
    ] {
        let run = place.run(["git"].iter().chain(words));
        assert_eq!(run.code, 2, "{words:?}: {}", run.shown());
        assert!(run.stderr.starts_with("error: git "), "{}", run.stderr);
    }
    assert_eq!(files(&place), before);
    assert_eq!(place.run(["--json", "git", "gc"]).error().1, "usage");
    assert_eq!(place.run(["git"]).code, 2);
}

/// The names in the workspace and at the top of the store.
fn files(place: &Place) -> Vec<std::path::PathBuf> {
    let names = |path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = names(place.path("ws")).chain(names(place.store())).collect();
    found.sort();
    found
}

#[test]
fn the_users_own_git_configuration_has_no_say() {
    let mut place = Place::saved();
    let id = place.id("@");
    let script = place.path("home/script");
    fs::write(&script, "#!/bin/sh\ntouch \"$HOME/PWNED\"\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap().to_owned();
    fs::write(place.path("home/.gitconfig"), format!("[diff]\n\texternal = {script}\n[core]\n\tpager = {script}\n"))
        .unwrap();
    place.set("GIT_EXTERNAL_DIFF", &script);
    place.set("GIT_DIR", "/nowhere");
    place.set("GIT_PAGER", &script);
    let patch = place.ok(["git", "show", "--format=", &id]);
    assert!(patch.contains("+two\n"), "{patch}");
    assert!(!place.path("home/PWNED").exists(), "something was run");
}

#[test]
fn without_a_store_or_git() {
    let mut place = Place::new();
    assert_shown!(
        place.run(["git", "log"]),
        str![[r#"
--- stderr
error: there is no store yet
hint: take the first checkpoint with: backtrail save
--- exit 2

"#]]
    );
    place.ok(["init"]);
    place.set("PATH", "/nonexistent");
    assert_shown!(
        place.run(["git", "log"]),
        str![[r#"
--- stderr
error: can't run git: it is not installed, or not on PATH
--- exit 1

"#]]
    );
}
