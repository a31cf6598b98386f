//! Mistakes of other checkpoint tools that must not happen here. Tests that concern one part of the engine are beside
//! that part. `docs/design/seeds.md` lists all of them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::place::Place;

fn git(place: &Place, words: &[&str]) -> String {
    let template = place.command(&place.path("ws"), ["x"]);
    let mut command = Command::new("git");
    command.args(["-c", "user.name=u", "-c", "user.email=u@example.invalid"]).args(words);
    command.current_dir(place.path("ws")).env_clear();
    command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read_to_string(place.path("ws").join(name)).ok()
}

fn messages(place: &Place) -> Vec<String> {
    let list = place.json(["list"])["checkpoints"].clone();
    let all = list.as_array().unwrap().iter();
    all.filter(|made| made["kind"] != "safety").map(|made| made["message"].as_str().unwrap().to_owned()).collect()
}

fn paths(answer: &Value, key: &str) -> Vec<String> {
    answer[key].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

/// One tool split the lines of its list at `|`. A message with that character made the list empty forever.
#[test]
fn a_message_may_hold_any_character() {
    let place = Place::new();
    let odd = ["a | b", "%H|%s", "--soft", "line\nbreak", "step-7 -- x", "[step-3] y", "\u{1f600} é"];
    for (number, message) in odd.iter().enumerate() {
        place.write("f", number.to_string());
        place.ok(["save", "-m", message]);
    }
    let newest_first: Vec<String> = odd.iter().rev().map(|message| (*message).to_owned()).collect();
    assert_eq!(messages(&place), newest_first);
}

/// One tool omitted the newest checkpoint. Another tool omitted all checkpoints after the restored one.
#[test]
fn the_list_has_every_checkpoint_newest_first_also_after_a_restore() {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        place.write("f", name);
        place.ok(["save", name, "--name", name]);
    }
    assert_eq!(messages(&place), ["three", "two", "one"]);
    place.ok(["restore", "one"]);
    assert_eq!(messages(&place), ["three", "two", "one"]);
    place.ok(["restore", "three"]);
    assert_eq!(read(&place, "f").as_deref(), Some("three"));
}

/// The user's `init.defaultBranch`, `commit.gpgsign`, hooks, templates and filters broke or altered other tools'
/// stores.
#[test]
fn the_users_git_configuration_is_ignored() {
    let mut place = Place::new();
    let (home, mark) = (place.path("home"), place.path("hook-ran"));
    let hook = format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display());
    for directory in ["hooks", "template/hooks"] {
        fs::create_dir_all(home.join(directory)).unwrap();
        for name in ["pre-commit", "post-commit", "reference-transaction", "post-checkout"] {
            let file = home.join(directory).join(name);
            fs::write(&file, &hook).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let configuration = format!(
        "[init]\ndefaultBranch = main\ntemplateDir = {0}/template\n[commit]\ngpgsign = true\n[core]\nhooksPath = {0}/hooks\n\
         autocrlf = true\nfsmonitor = {0}/hooks/pre-commit\n[gpg]\nprogram = {0}/hooks/pre-commit\n",
        home.display()
    );
    fs::write(home.join(".gitconfig"), configuration).unwrap();
    place.set("GIT_DIR", "/nowhere");
    place.set("GIT_INDEX_FILE", "/nowhere/index");
    place.set("GIT_CONFIG_COUNT", "1");
    place.set("GIT_CONFIG_KEY_0", "core.bare");
    place.set("GIT_CONFIG_VALUE_0", "nonsense");
    place.write("f", "crlf\r\nlf\n");
    place.write(".gitattributes", "* text=auto eol=crlf\n");
    place.ok(["save", "first", "--name", "first"]);
    place.write("f", "other");
    place.ok(["restore", "first"]);
    assert_eq!(read(&place, "f").as_deref(), Some("crlf\r\nlf\n"));
    assert_eq!(messages(&place), ["first"]);
    assert!(!mark.exists(), "a hook was run");
}

/// Other tools committed to the user's branch and moved it back. That dropped commits and staged changes.
#[test]
fn the_users_repository_does_not_change() {
    let place = Place::new();
    git(&place, &["init", "-q", "-b", "main"]);
    place.write("f", "1");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "base"]);
    place.ok(["save", "first", "--name", "first"]);
    place.write("f", "2");
    git(&place, &["commit", "-qam", "the user's own"]);
    place.write("staged", "s");
    git(&place, &["add", "staged"]);
    let before = (git(&place, &["rev-parse", "HEAD"]), git(&place, &["ls-files", "--stage"]), git(&place, &["reflog"]));
    place.ok(["restore", "first"]);
    assert_eq!(read(&place, "f").as_deref(), Some("1"));
    place.ok(["undo"]);
    assert_eq!((read(&place, "f").as_deref(), read(&place, "staged").as_deref()), (Some("2"), Some("s")));
    let after = (git(&place, &["rev-parse", "HEAD"]), git(&place, &["ls-files", "--stage"]), git(&place, &["reflog"]));
    assert_eq!(after, before);
}

/// One tool used objects of the user's repository. It lost its history when git collected them or the repository was
/// deleted.
#[test]
fn checkpoints_outlive_the_users_repository() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.write("f", "1");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "base"]);
    place.ok(["save", "first", "--name", "first"]);
    place.write("f", "2");
    fs::rename(place.path("ws/.git"), place.path("gone")).unwrap();
    place.ok(["restore", "first"]);
    assert_eq!(read(&place, "f").as_deref(), Some("1"));
    assert_eq!(place.json(["verify"])["ok"], true);
}

/// One tool recorded a file that grew beyond its limit as deleted. After two restores the file was lost.
#[test]
fn a_file_that_grows_beyond_the_limit_is_never_lost() {
    let place = Place::new();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = 1000\n");
    place.write("f", "small");
    place.ok(["save", "a", "--name", "a"]);
    let large = "x".repeat(3000);
    place.write("f", &large);
    place.write("g", "1");
    place.ok(["save", "b", "--name", "b"]);
    assert!(!place.ok(["diff", "a", "b", "--name-status"]).contains("D\tf"));
    // Content that can't be captured can't be restored, so it must not be overwritten.
    place.run(["restore", "a", "--skip-conflicts"]);
    place.run(["restore", "b", "--skip-conflicts"]);
    let now = read(&place, "f").unwrap_or_default();
    assert!(now == large, "the content that no checkpoint holds was overwritten with {:?}", &now[..now.len().min(20)]);
}

/// A new process of one tool did not know what was saved: it listed every file as changed, and a restore left new files
/// behind.
#[test]
fn a_new_process_knows_the_last_checkpoint() {
    let place = Place::new();
    (0..30).for_each(|number| place.write(format!("f{number}"), "1"));
    place.ok(["save", "first", "--name", "first"]);
    place.write("f7", "2");
    let status = place.json(["status"]);
    assert_eq!(status["changes"].as_array().unwrap().len(), 1, "{status}");
    place.write("new", "n");
    place.ok(["save", "second"]);
    place.write("unsaved", "u");
    place.ok(["restore", "first"]);
    assert_eq!((read(&place, "new"), read(&place, "unsaved")), (None, None));
    place.ok(["undo"]);
    assert_eq!(read(&place, "unsaved").as_deref(), Some("u"), "work that was never saved is lost");
}

/// One tool restored a single file by writing through the symlink at its path.
#[test]
fn a_restored_path_gets_its_type_and_mode_back() {
    let place = Place::new();
    place.write("target", "precious");
    place.write("d/script", "#!/bin/sh\n");
    fs::set_permissions(place.path("ws/d/script"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("target", place.path("ws/link")).unwrap();
    place.ok(["save", "first", "--name", "first"]);
    fs::remove_file(place.path("ws/link")).unwrap();
    symlink("d/script", place.path("ws/link")).unwrap();
    fs::rename(place.path("ws/d"), place.path("away")).unwrap();
    place.write("later", "l");
    place.ok(["restore", "first", "link", "d/script", "later"]);
    assert_eq!(fs::read_link(place.path("ws/link")).unwrap(), Path::new("target"));
    assert_eq!(read(&place, "target").as_deref(), Some("precious"), "the restore wrote through the symlink");
    let mode = fs::metadata(place.path("ws/d/script")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "the execute bit is restored with the missing directory");
    assert_eq!(read(&place, "later"), None, "a path that the checkpoint does not hold is removed");
    place.write("d/below", "b");
    let below = place.run_in(&place.path("ws/d"), ["restore", "first", "below"]);
    assert_eq!((below.code, read(&place, "d/below")), (0, None), "paths are relative to the current directory");
}

/// Other tools guessed the status from line counts, quoted names like C strings, and showed a move as one invented
/// path.
#[test]
fn changes_have_exact_paths_and_status() {
    let place = Place::new();
    place.write("grown", "1\n");
    place.write("moved", "m\n");
    let first = place.json(["save", "first", "--name", "first"]);
    assert_eq!(
        paths(&first["checkpoint"], "files_changed"),
        ["grown", "moved"],
        "the first checkpoint has changes, too"
    );
    place.write("grown", "1\n2\n");
    fs::rename(place.path("ws/moved"), place.path("ws/mövéd \"x\"")).unwrap();
    place.write("empty", "");
    place.write("binary", b"\0\xff");
    let diff = place.json(["diff", "first"]);
    assert_eq!(paths(&diff, "added_files"), ["binary", "empty", "mövéd \"x\""]);
    assert_eq!(paths(&diff, "modified_files"), ["grown"]);
    assert_eq!(paths(&diff, "deleted_files"), ["moved"]);
    let since = place.run(["status", "--since", "first", "--exit-code"]);
    assert_eq!(since.code, 1, "untracked files are changes, too");
}

/// A lock file of a killed process stopped other tools for good.
#[test]
fn stale_lock_files_are_ignored() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.write("f", "1");
    place.ok(["save", "first", "--name", "first"]);
    for lock in [place.path("ws/.git/index.lock"), place.store().join("index.lock"), place.store().join("HEAD.lock")] {
        fs::write(lock, "").unwrap();
    }
    place.write("f", "2");
    place.ok(["save", "second"]);
    place.ok(["restore", "first"]);
    assert_eq!(read(&place, "f").as_deref(), Some("1"));
}

/// One tool had separate stores for `/ws`, `/ws/`, `ws` and a symlink.
#[test]
fn every_spelling_of_a_path_is_the_same_workspace() {
    let place = Place::new();
    place.write("f", "1");
    symlink("ws", place.path("link")).unwrap();
    place.ok(["save", "first"]);
    let root = place.path("");
    let above = root.as_path();
    for spelling in ["ws", "ws/", "./ws", "ws/../ws", "link"] {
        let listed = place.run_in(above, ["-w", spelling, "list", "--json"]);
        assert_eq!(listed.json()["checkpoints"].as_array().unwrap().len(), 1, "{spelling}");
    }
    let stores = fs::read_dir(place.path("home/backtrail/stores")).unwrap().count();
    assert_eq!(stores, 1);
}

/// In other tools a repeated step number named an older checkpoint, or one without a number.
#[test]
fn a_repeated_step_number_names_the_newest_checkpoint() {
    let place = Place::new();
    for (content, words) in [("a", ["--step", "1"]), ("b", ["--step", "2"]), ("c", ["--step", "1"])] {
        place.write("f", content);
        place.ok(["save"].into_iter().chain(words));
    }
    place.write("f", "d");
    place.ok(["save", "without a number"]);
    assert_eq!(place.ok(["cat", "step:1", "f"]), "c");
    assert_eq!(place.ok(["cat", "step:2", "f"]), "b");
    assert_eq!(place.run(["cat", "step:0", "f"]).code, 3);
}

/// One tool passed `rollback(commit="--soft")` to git as an option, and reported success.
#[test]
fn an_argument_with_a_dash_is_never_an_id() {
    let place = Place::saved();
    place.write("a.txt", "edited");
    for word in ["--soft", "-x", "--hard"] {
        assert_eq!(place.run(["restore", word]).code, 2, "{word}");
        assert_eq!(place.run(["restore", "--", word]).code, 3, "{word}");
    }
    assert_eq!(read(&place, "a.txt").as_deref(), Some("edited"));
}

#[test]
fn a_commit_of_the_user_names_the_newest_checkpoint_taken_there() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    let mut commits = Vec::new();
    for number in ["1", "2"] {
        place.write("f", number);
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-qm", number]);
        commits.push(git(&place, &["rev-parse", "HEAD"]));
        place.ok(["save", "--allow-empty", "-m", "at the commit"]);
        place.write("f", format!("{number}, edited"));
        place.ok(["save", "-m", "edited"]);
    }
    assert_eq!(place.ok(["cat", &format!("commit:{}", commits[0]), "f"]), "1, edited");
    assert_eq!(place.ok(["cat", &format!("commit:{}", &commits[0][..7]), "f"]), "1, edited");
    assert_eq!(place.ok(["cat", &format!("commit:{}", commits[1].to_uppercase()), "f"]), "2, edited");
    assert_eq!(place.run(["show", "commit:0000000"]).code, 3);
    assert_eq!(place.run(["show", "commit:main"]).code, 3);
    assert_eq!(place.run(["save", "--name", "commit:abcd"]).code, 2);
    place.ok(["restore", &format!("commit:{}", &commits[0][..10])]);
    assert_eq!(read(&place, "f").as_deref(), Some("1, edited"));
}

/// `docs/design/seeds.md` names a test for each promise.
#[test]
fn every_test_that_the_table_of_promises_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/design/seeds.md")).unwrap();
    let mut named = 0;
    let mut is_of_promises = false;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        if row.starts_with("| promise") || row.starts_with("| mistake") || row.starts_with("| front end") {
            is_of_promises = row.ends_with("| test |");
            continue;
        }
        let tests: Vec<&str> = row.split('`').filter(|word| word.matches("::").count() == 2).collect();
        assert!(!is_of_promises || !tests.is_empty(), "a promise without a test: {row}");
        for test in tests {
            let parts: Vec<&str> = test.split("::").collect();
            let module = root.join(format!("crates/{}/tests/it/{}", parts[0], parts[1]));
            let source = fs::read_to_string(module.with_extension("rs"))
                .or_else(|_| fs::read_to_string(module.join("mod.rs")))
                .unwrap_or_else(|_| panic!("{test}: there is no module {}", module.display()));
            assert!(source.contains(&format!("#[test]\nfn {}()", parts[2])), "there is no test {test}");
            named += 1;
        }
    }
    assert!(named > 40, "only {named} tests are named");
}
