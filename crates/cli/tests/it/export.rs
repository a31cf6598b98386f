use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn files_are_exported_to_a_new_directory() {
    let place = Place::saved();
    place.remove("a.txt");
    let answer = place.json(["export", "@", "../out/new"]);
    assert_eq!(answer["files"], 2);
    assert_eq!(fs::read(place.path("out/new/a.txt")).unwrap(), b"one\ntwo\n");
    assert!(!place.path("ws/a.txt").exists());
}

/// The next checkpoint would capture files that were exported into the workspace.
#[test]
fn export_into_the_workspace_or_the_store_is_refused() {
    let place = Place::saved();
    assert_shown!(
        place.run(["export", "@", "copy"]),
        str![[r#"
--- stderr
error: [ROOT]/ws/copy is inside the workspace [ROOT]/ws
hint: choose a directory outside of it
--- exit 2

"#]]
    );
    std::os::unix::fs::symlink(place.path("ws"), place.path("link")).unwrap();
    let store = place.store().join("copy");
    for target in [".", "dir/deep/er", "../link/copy", "../not-there/../ws/copy", store.to_str().unwrap()] {
        let (code, word, _) = place.run(["export", "@", target, "--json"]).error();
        assert_eq!((code, word.as_str()), (2, "usage"), "{target}");
    }
    assert_eq!(place.json(["status"])["changes"].as_array().unwrap().len(), 0);
    assert!(!place.path("not-there").exists());
}
