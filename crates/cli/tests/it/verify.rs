use std::{fs, path::PathBuf};

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn an_intact_store_passes() {
    let place = Place::saved();
    assert_shown!(
        place.run(["verify"]),
        str![[r#"
1 checkpoint, all sound
--- exit 0

"#]]
    );
    assert_eq!(place.json(["verify"]).to_string(), r#"{"ok":true,"checkpoints":1,"damaged":[]}"#);
    assert_eq!(Place::new().json(["verify"]).to_string(), r#"{"ok":true,"checkpoints":0,"damaged":[]}"#);
}

#[test]
fn a_damaged_store_is_reported() {
    let place = Place::saved();
    let pack = pack_of(&place);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, bytes).unwrap();
    let run = place.run(["verify", "--json"]);
    let answer = run.json();
    assert_eq!((run.code, &answer["ok"]), (5, &false.into()));
    assert!(!answer["damaged"].as_array().unwrap().is_empty());
    assert!(run.stderr.contains("is damaged"), "{}", run.stderr);
    let keys: Vec<_> = answer["damaged"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["id", "reason"]);
    let run = place.run(["verify"]);
    assert_eq!((run.code, run.text().is_empty()), (5, false));
}

fn pack_of(place: &Place) -> PathBuf {
    let mut packs = fs::read_dir(place.store().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    packs.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap()
}
