use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn init_creates_the_store_once() {
    let place = Place::new();
    assert_shown!(
        place.run(["init"]),
        str![[r#"
created the store [ROOT]/home/backtrail/stores/ws-[HASH]; take a checkpoint with: backtrail save
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["init"]),
        str![[r#"
the store [ROOT]/home/backtrail/stores/ws-[HASH] already exists
--- exit 0

"#]]
    );
    assert!(place.run(["list", "--json"]).text().contains("[]"));
}

#[test]
fn json_has_exactly_these_keys() {
    let place = Place::new();
    let answer = place.json(["init"]);
    assert_eq!(answer["workspace"], place.path("ws").to_str().unwrap());
    assert_eq!(answer["created"], true);
    assert!(answer["store"].as_str().unwrap().starts_with(place.path("home/backtrail/stores/ws-").to_str().unwrap()));
    assert_eq!(answer.as_object().unwrap().len(), 3);
    assert_eq!(place.json(["init"])["created"], false);
}

#[test]
fn the_home_directory_is_refused_without_force() {
    let place = Place::new();
    assert_shown!(
        place.run_in(&place.path("home"), ["init"]),
        str![[r#"
--- stderr
error: [ROOT]/home is a protected directory
hint: choose a directory inside it with -w DIR, or use --force
--- exit 6

"#]]
    );
    assert_eq!(place.run_in(&place.path("home"), ["init", "--force", "-q"]).code, 0);
}
