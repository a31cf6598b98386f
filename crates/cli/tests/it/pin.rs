use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn a_checkpoint_is_pinned_until_it_is_unpinned() {
    let place = Place::saved();
    assert_shown!(
        place.run(["pin", "@"]),
        str![[r#"
pinned [ID] "first": it stays until it is deleted by hand
--- exit 0

"#]]
    );
    assert_eq!(place.json(["show", "@"])["checkpoint"]["pinned"], true);
    assert_eq!(place.json(["pin", "@"])["checkpoint"]["pinned"], true, "pinned twice");
    assert_shown!(
        place.run(["unpin", "@"]),
        str![[r#"
unpinned [ID] "first"
--- exit 0

"#]]
    );
    let answer = place.json(["unpin", "@"]);
    assert_eq!(answer["checkpoint"], place.json(["show", "@"])["checkpoint"]);
    assert_eq!(answer["checkpoint"]["pinned"], false);
}

#[test]
fn unknown_checkpoints_are_refused() {
    let place = Place::saved();
    for command in ["pin", "unpin"] {
        assert_eq!(place.run([command, "nonsense", "--json"]).error().0, 3);
        assert_eq!(place.run([command, "--json"]).error().0, 2);
    }
}
