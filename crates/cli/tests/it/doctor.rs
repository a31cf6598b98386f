use serde_json::Value;

use crate::place::Place;

fn checks(place: &Place) -> Vec<Value> {
    let answer = place.json(["doctor"]);
    let checks = answer["checks"].as_array().unwrap().clone();
    for check in &checks {
        let keys: Vec<_> = check.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "ok", "detail"], "{check}");
    }
    checks
}

fn check(place: &Place, name: &str) -> (bool, String) {
    let found = checks(place).into_iter().find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no check {name}"));
    (found["ok"].as_bool().unwrap(), found["detail"].as_str().unwrap().into())
}

#[test]
fn no_store_is_created_before_the_first_checkpoint() {
    let place = Place::new();
    place.write("a", "1\n");
    assert!(checks(&place).iter().all(|check| check["ok"] == true));
    let (_, store) = check(&place, "store");
    assert!(store.contains("does not exist yet"), "{store}");
    assert!(!place.path("home/backtrail").exists());
}

#[test]
fn the_store_and_the_workspace_are_shown() {
    let place = Place::saved();
    let (ok, store) = check(&place, "store");
    assert!(ok && store.contains(place.store().to_str().unwrap()) && store.contains("1 checkpoint"), "{store}");
    assert_eq!(check(&place, "workspace"), (true, place.path("ws").to_str().unwrap().into()));
    let run = place.run(["doctor"]);
    assert!(run.text().starts_with("ok    workspace  "), "{}", run.shown());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn skipped_paths_are_listed_with_the_reason() {
    let place = Place::saved();
    place.write(".gitignore", "*.log\n");
    for number in 0..7 {
        place.write(format!("{number}.log"), "1\n");
    }
    place.write("package.json", "{}\n");
    place.write("node_modules/x", "1\n");
    let (ok, detail) = check(&place, "left out");
    assert!(ok);
    assert_eq!(
        detail, "ignored: 0.log, 1.log, 2.log, 3.log, 4.log and 2 more\ncan be rebuilt: node_modules",
        "{detail}"
    );
}

/// In a repository with a reftable, HEAD names `refs/heads/.invalid`, which is not a branch.
#[test]
fn the_branch_of_the_repository_is_shown() {
    let place = Place::saved();
    assert_eq!(check(&place, "git").1, "the workspace is not in a git repository");
    place.write(".git/HEAD", "ref: refs/heads/topic/x\n");
    let top = place.path("ws").display().to_string();
    let rest = "; it is changed only by restore --git";
    assert_eq!(check(&place, "git").1, format!("{top}, on branch topic/x{rest}"));
    place.write(".git/HEAD", format!("{}\n", "1".repeat(40)));
    assert_eq!(check(&place, "git").1, format!("{top}, on no branch{rest}"));
    place.write(".git/HEAD", "ref: refs/heads/.invalid\n");
    assert_eq!(check(&place, "git").1, format!("{top}{rest}"));
}

#[test]
fn settings_are_listed_with_their_source() {
    let mut place = Place::saved();
    place.set("XDG_CONFIG_HOME", place.path("config").to_str().unwrap());
    std::fs::create_dir_all(place.path("config/backtrail")).unwrap();
    std::fs::write(place.path("config/backtrail/config.toml"), "[retention]\nstep = 7\nturn = 8\n").unwrap();
    place.write("backtrail.toml", "[retention]\nturn = 9\n");
    let (ok, detail) = check(&place, "settings");
    assert!(ok);
    let line = |name: &str| detail.lines().find(|line| line.starts_with(name)).unwrap().split(" = ").nth(1).unwrap();
    assert_eq!(line("retention.step "), "7  (the user's file)");
    assert_eq!(line("retention.turn "), "9  (the workspace's file)");
    assert_eq!(line("retention.safety "), "20  (default)");
}

#[test]
fn limits_that_a_workspace_cannot_lower_are_reported() {
    let place = Place::saved();
    let names = || -> Vec<String> {
        let answer = place.json(["doctor"]);
        answer["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap().into()).collect()
    };
    place.write("backtrail.toml", "[retention]\nstep = 500\n");
    assert!(!names().contains(&"no effect".to_owned()), "{:?}", names());
    place.write("backtrail.toml", "[retention]\nautomatic = 1\nmax_age = \"1s\"\nmax_bytes = \"1KiB\"\n");
    let (ok, detail) = check(&place, "no effect");
    assert!(!ok);
    let file = place.path("ws/backtrail.toml").display().to_string();
    for line in [
        "[retention] automatic = 1 has no effect; the value in use is 5",
        "[retention] max_age = 1s has no effect; the value in use is none",
        "[retention] max_bytes = 1024 has no effect; the value in use is none",
    ] {
        assert!(detail.contains(&format!("{file}: {line}")), "{detail}");
    }
    assert!(detail.contains("use your own settings file: "), "{detail}");
    assert!(check(&place, "settings").0, "the settings are valid");
    place.ok(["save"]);
}

#[test]
fn invalid_settings_are_reported() {
    let place = Place::saved();
    place.write("backtrail.toml", "[scan\n");
    let (ok, detail) = check(&place, "settings");
    assert!(!ok && detail.contains("backtrail.toml: line 1"), "{detail}");
    assert_eq!(place.run(["save", "--json"]).error().1, "settings");
}

#[test]
fn settings_behind_a_symlink_are_used_and_shown() {
    let place = Place::saved();
    std::fs::write(place.path("shared.toml"), "[retention]\nturn = 900\n").unwrap();
    let link = place.path("ws/backtrail.toml");
    std::os::unix::fs::symlink(place.path("shared.toml"), &link).unwrap();
    let (ok, detail) = check(&place, "settings");
    assert!(ok && detail.contains("900  (the workspace's file)"), "{detail}");
    assert!(
        detail.contains(&format!("{} (a symbolic link to {})", link.display(), place.path("shared.toml").display())),
        "{detail}"
    );
    std::fs::remove_file(place.path("shared.toml")).unwrap();
    let (ok, detail) = check(&place, "settings");
    assert!(!ok && detail.contains("backtrail.toml: it is a symbolic link to a file that does not exist"), "{detail}");
}

#[test]
fn a_protected_directory_is_reported() {
    let place = Place::new();
    let run = place.run_in(&place.path("home"), ["doctor", "--json"]);
    let workspace = &run.json()["checks"][0];
    assert_eq!(workspace["ok"], false);
    assert!(workspace["detail"].as_str().unwrap().contains("--force"), "{workspace}");
}

/// `doctor` reports every reason for which a save would be refused.
#[test]
fn a_store_that_a_save_would_refuse_is_reported() {
    let place = Place::saved();
    let format = place.store().join("backtrail/format");
    let known = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, format!("{known}write: time-travel\n")).unwrap();
    let (ok, detail) = check(&place, "store");
    assert!(!ok && detail.contains("1 checkpoint") && detail.contains("it needs time-travel"), "{detail}");
    assert_eq!(place.run(["save"]).code, 5);
    std::fs::write(&format, known).unwrap();
    assert!(check(&place, "store").0);

    let other = place.path("other");
    std::fs::create_dir(&other).unwrap();
    let store = place.store();
    let run = place.run_in(&other, ["doctor", "--json", "--store", store.to_str().unwrap()]);
    let store_check = &run.json()["checks"][1];
    assert!(
        store_check["ok"] == false && store_check["detail"].as_str().unwrap().contains("belongs to"),
        "{store_check}"
    );
    let run = place.run_in(&other, ["doctor", "--json", "--store", place.path("ws").to_str().unwrap()]);
    let store_check = &run.json()["checks"][1];
    assert!(
        store_check["ok"] == false
            && store_check["detail"].as_str().unwrap().contains("neither a store nor an empty directory"),
        "{store_check}"
    );
}

#[test]
fn an_invalid_store_is_reported() {
    let place = Place::saved();
    let format = place.store().join("backtrail/format");
    assert!(format.exists(), "the format file has moved");
    std::fs::write(&format, "nonsense").unwrap();
    let (ok, detail) = check(&place, "store");
    assert!(!ok, "{detail}");
}
