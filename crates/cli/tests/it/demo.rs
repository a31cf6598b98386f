use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn the_demo_runs_in_a_scratch_directory_and_removes_it() {
    let place = Place::new();
    let before: Vec<_> = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_shown!(
        place.run(["demo"]),
        str![[r#"

A small project:
  wrote README.md
  wrote src/greet.py
  wrote src/config.toml

Before an agent starts to work, one command saves everything:
$ backtrail save "before the agent"
saved [ID] "before the agent" (3 files, +6)

The agent has an accident: it empties one file and deletes another.
  wrote src/greet.py
  deleted src/config.toml

What happened?
$ backtrail status
2 changes since [ID] "before the agent" ([WHEN])
  deleted   src/config.toml  −1
  modified  src/greet.py  +1 −2

Line by line:
$ backtrail diff
diff --git a/src/config.toml b/src/config.toml
deleted file mode 100644
index [ID40]..[ID40]
--- a/src/config.toml
+++ /dev/null
@@ -1 +0,0 @@
-language = "en"
diff --git a/src/greet.py b/src/greet.py
index [ID40]..[ID40] 100644
--- a/src/greet.py
+++ b/src/greet.py
@@ -1,2 +1 @@
-def greet(name):
-    return f"Hello, {name}!"
+# TODO

One command brings everything back:
$ backtrail restore @
restored 2 paths to [ID] "before the agent": 1 added, 1 modified
  added     src/config.toml  +1
  modified  src/greet.py  +2 −1
$ backtrail cat @ src/config.toml
language = "en"

If that was a mistake, it can be taken back as well:
$ backtrail undo
took back the restore to [ID] "before the agent" ([WHEN]): 1 modified, 1 deleted
  deleted   src/config.toml  −1
  modified  src/greet.py  +1 −2
$ backtrail redo
took back the undo of the restore to [ID] "before the agent" ([WHEN]): 1 added, 1 modified
  added     src/config.toml  +1
  modified  src/greet.py  +2 −1
$ backtrail list --all
◌     [ID]  [WHEN] safety  before redoing the restore to [ID]: before the…  2 files +1 −3
│ ◌   [ID]  [WHEN] safety  before undoing the restore to [ID]: before the…  0 files
│ │ ◌ [ID]  [WHEN] safety  before restoring [ID]: before the agent          2 files +1 −3
├─┴─╯
@     [ID]  [WHEN] manual  before the agent                                     3 files +6
--- stderr
see them with: backtrail diff; save them with: backtrail save
take it back with: backtrail undo
take that back with: backtrail redo
take it back with: backtrail undo
the temporary directory was removed; start with: backtrail save
--- exit 0

"#]]
    );
    let after: Vec<_> = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(before, after);
    assert!(!place.path("home/backtrail").exists(), "the demo touched the user's stores");
}
