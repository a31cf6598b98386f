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
    assert_eq!(place.ok(["git", "show", "-s", "--format=%s", &id]), "first\n");
}

/// Plain git starts from the current branch. A store has no branch.
#[test]
fn without_a_revision_all_checkpoints_are_used() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    fs::set_permissions(place.path("ws/a.txt"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    place.ok(["save", "second"]);
    let subjects = |words: &[&str]| place.ok(["git", "log", "--format=%s"].iter().chain(words));
    assert_eq!(subjects(&[]), "second\nfirst\n");
    assert_eq!(subjects(&["-n", "1"]), "second\n");
    assert_eq!(subjects(&["--author", "Backtrail", "--", "a.txt"]), "second\nfirst\n");
    assert_eq!(subjects(&[&place.id("@~1")]), "first\n", "only the given checkpoint is used");
    assert!(place.ok(["git", "log", "--graph", "--format=%s"]).contains("* second\n"));
    assert_eq!(place.ok(["git", "rev-list"]).lines().count(), 2);
    assert!(place.ok(["git", "show", "-s", "--format=%s"]).starts_with("second\n"));
    assert_ne!(place.run(["git", "log", "no-such-revision"]).code, 0);
    let empty = Place::new();
    empty.ok(["init"]);
    assert_eq!(empty.ok(["git", "log"]), "");
}

#[test]
fn checkpoint_addresses_work_as_revisions() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    place.ok(["save", "second"]);
    assert_eq!(place.ok(["git", "show", "@:a.txt"]), "changed\n");
    assert_eq!(place.ok(["git", "show", "@~1:a.txt"]), "one\ntwo\n");
    assert_eq!(place.ok(["git", "diff", "--name-only", "@~", "@"]), "a.txt\n");
    assert_eq!(place.run(["git", "show", "-s", "@~7"]).code, 3);
}

/// A garbage collection by plain git loses no checkpoint.
#[test]
fn git_gc_loses_no_checkpoint() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    place.ok(["save", "second"]);
    place.write("a.txt", "again\n");
    place.ok(["restore", "@~1"]);
    let store = place.store();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("--git-dir").arg(&store).args(words).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let expected = place.ok(["list", "--all", "--json"]);
    git(&["gc", "-q", "--prune=now", "--aggressive"]);
    assert_eq!(git(&["fsck", "--full", "--strict", "--no-dangling"]), "");
    assert_eq!(place.ok(["list", "--all", "--json"]), expected);
    assert_eq!(place.json(["verify"])["ok"], true);
    place.ok(["undo"]);
    assert_eq!(fs::read(place.path("ws/a.txt")).unwrap(), b"again\n");
    place.ok(["save", "third"]);
    assert_eq!(git(&["fsck", "--full", "--strict", "--no-dangling"]), "");
}

#[test]
fn arguments_are_passed_on_unchanged() {
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
fn commands_and_options_that_write_are_refused() {
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

/// Returns the paths at the top level of the workspace and of the store.
fn files(place: &Place) -> Vec<std::path::PathBuf> {
    let names = |path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = names(place.path("ws")).chain(names(place.store())).collect();
    found.sort();
    found
}

#[test]
fn the_users_git_configuration_is_ignored() {
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
    assert_eq!(place.ok(["git", "show", "-s", "--format=%s", &id]), "first\n");
    assert!(!place.path("home/PWNED").exists(), "a configured program was run");
}

#[test]
fn a_missing_store_and_a_missing_git_are_reported() {
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
        place.run(["git", "fsck"]),
        str![[r#"
--- stderr
error: can't run git: it is not installed, or not on PATH
--- exit 1

"#]]
    );
}

/// Regression: git compared every checkpoint with nothing, and showed all files as new.
#[test]
fn commands_that_follow_parents_are_refused_with_the_right_one() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    place.ok(["save", "second"]);
    for (words, way) in [
        (&["blame", "@", "--", "a.txt"][..], "backtrail blame PATH"),
        (&["log", "-S", "changed"], "backtrail list --contents TEXT"),
        (&["log", "-Schanged"], "backtrail list --contents TEXT"),
        (&["log", "-p"], "backtrail show ID --patch"),
        (&["log", "--stat"], "backtrail show ID --patch"),
        (&["log", "--follow", "a.txt"], "backtrail history PATH"),
        (&["show"], "backtrail show ID --patch"),
        (&["show", "--stat", "@"], "backtrail show ID --patch"),
    ] {
        let run = place.run(["git"].iter().chain(words));
        assert_eq!(run.code, 2, "{words:?}: {}", run.shown());
        assert!(run.stderr.contains(way), "{words:?}: {}", run.stderr);
    }
    assert_eq!(place.ok(["git", "show", "@:a.txt"]), "changed\n");
    assert!(place.ok(["git", "diff", "--stat", "@~1", "@"]).contains("a.txt"));
}
