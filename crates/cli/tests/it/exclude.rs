use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn patterns_are_added_and_hold() {
    let place = Place::new();
    assert_shown!(
        place.run(["exclude", "*.log", "data/"]),
        str![[r#"
[ROOT]/ws/backtrail.toml has 2 exclude patterns now
--- stderr
checkpoints that hold such paths keep them; see what is left out with: backtrail doctor
--- exit 0

"#]]
    );
    assert!(!place.path("home/backtrail").exists(), "this needs no store");
    place.write("a.log", "1\n");
    place.write("data/x", "1\n");
    place.write("b", "1\n");
    let changes = place.json(["status"])["changes"].clone();
    let paths: Vec<_> = changes.as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["b", "backtrail.toml"]);
}

#[test]
fn the_rest_of_the_file_stays() {
    let place = Place::new();
    let before = "# mine\n[scan]   # odd\nexclude = [\"*.log\"]\n\n[retention]\nstep = 3\n";
    place.write("backtrail.toml", before);
    let answer = place.json(["exclude", "*.tmp", "*.log"]);
    let file = place.path("ws/backtrail.toml");
    assert_eq!(answer, serde_json::json!({ "file": file.to_str().unwrap(), "exclude": ["*.log", "*.tmp"] }));
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after, before.replace("[\"*.log\"]", "[\"*.log\", \"*.tmp\"]"));
    place.json(["exclude", "*.tmp"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), after, "nothing new");
}

#[test]
fn words_that_make_no_sense() {
    let place = Place::new();
    assert_eq!(place.run(["exclude", "--json"]).error().1, "usage");
    assert_eq!(place.run(["exclude", "", "--json"]).error().1, "usage");
    place.write("backtrail.toml", "[scan\n");
    assert_eq!(place.run(["exclude", "x", "--json"]).error().1, "settings");
    assert_eq!(fs::read_to_string(place.path("ws/backtrail.toml")).unwrap(), "[scan\n");
}
