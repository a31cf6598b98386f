//! Directories that a tool can make again are skipped because of their marks, not because of their names.

use backtrail::{Reason, SaveRequest};
use backtrail_testkit::TestWorkspace;

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# by a tool\n";

fn skipped(saved: &backtrail::Saved) -> Vec<String> {
    assert!(saved.skipped.iter().all(|skipped| skipped.reason == Reason::Rebuildable), "{:?}", saved.skipped);
    saved.skipped.iter().map(|skipped| skipped.path.to_text().into_owned()).collect()
}

#[test]
fn marked_directories_are_skipped_and_reported() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write("node_modules/x/index.js", "1");
    ws.write("target/CACHEDIR.TAG", TAG);
    ws.write("target/debug/x", "1");
    ws.write("py/venv/pyvenv.cfg", "home = /usr\n");
    ws.write("py/venv/bin/python", "1");
    ws.write("py/__pycache__/m.pyc", "1");
    ws.write("py/m.py", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["package.json", "py/m.py"]);
    assert_eq!(skipped(&saved), ["node_modules", "py/__pycache__", "py/venv", "target"]);
    assert!(saved.checkpoint.complete);
    ws.write("node_modules/x/index.js", "2");
    ws.write("target/debug/y", "2");
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created, "a change inside is not a change of the workspace");
    assert_eq!(skipped(&again), skipped(&saved));
}

#[test]
fn a_name_alone_does_not_mark_a_directory() {
    let ws = TestWorkspace::new();
    for path in ["node_modules/x", "target/x", "venv/x", ".venv/x", "build/x", "dist/x"] {
        ws.write(path, path);
    }
    ws.write("tagged/CACHEDIR.TAG", "Signature: something else\n");
    ws.write("short/CACHEDIR.TAG", "Sig");
    ws.mkdir("odd/CACHEDIR.TAG/pyvenv.cfg/package.json");
    ws.write("linked/x", "1");
    ws.symlink("../target", "linked/CACHEDIR.TAG");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(skipped(&saved), [""; 0]);
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id).len(), 10);
}

#[test]
fn a_file_or_link_with_such_a_name_is_captured() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.symlink("/somewhere/node_modules", "node_modules");
    ws.write("py/__pycache__", "a file");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["node_modules", "package.json", "py/__pycache__"]);
}

#[test]
fn tracked_files_in_a_marked_directory_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write("node_modules/vendored/index.js", "1");
    ws.git_init();
    ws.write("node_modules/installed/index.js", "1");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["node_modules/vendored/index.js", "package.json"]);
    ws.write("node_modules/vendored/index.js", "2");
    assert_eq!(ws.save().files_changed, [ws.workspace_path("node_modules/vendored/index.js")]);
}

#[test]
fn the_setting_captures_marked_directories() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nrebuildable = \"capture\"\n");
    ws.write("target/CACHEDIR.TAG", TAG);
    ws.write("target/x", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["backtrail.toml", "target/CACHEDIR.TAG", "target/x"]);
    assert_eq!(skipped(&saved), [""; 0]);
    ws.write("backtrail.toml", "[scan]\nrebuildable = \"skip\"\n");
    ws.write("target/new", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["backtrail.toml", "target/CACHEDIR.TAG", "target/x"]);
    assert_eq!(saved.checkpoint.files_changed, [ws.workspace_path("backtrail.toml")]);
}

#[test]
fn an_included_path_is_captured() {
    let ws = TestWorkspace::new();
    ws.write("target/CACHEDIR.TAG", TAG);
    ws.write("target/a", "1");
    ws.write("target/sub/b", "1");
    ws.write("x", "1");
    let request = |path: &str| SaveRequest { include: vec![ws.workspace_path(path)], ..Default::default() };
    let saved = ws.save_with(&request("target/a"));
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["target/a", "x"]);
    let saved = ws.save_with(&request("target"));
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["target/CACHEDIR.TAG", "target/a", "target/sub/b", "x"]);
}

#[test]
fn the_workspace_itself_is_never_rebuildable() {
    let ws = TestWorkspace::new();
    ws.write("CACHEDIR.TAG", TAG);
    ws.write("pyvenv.cfg", "");
    ws.write("a", "1");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["CACHEDIR.TAG", "a", "pyvenv.cfg"]);
}

#[test]
fn a_new_mark_deletes_nothing_and_without_it_all_files_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("out/a", "1");
    ws.write("x", "1");
    ws.save();
    ws.write("out/CACHEDIR.TAG", TAG);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.write("x", "2");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("x")]);
    assert_eq!(ws.open().show(&saved.id).unwrap().changes.len(), 1);
    ws.write("out/CACHEDIR.TAG", "no longer\n");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["out/CACHEDIR.TAG", "out/a", "x"]);
}

#[test]
fn an_ignored_directory_is_not_reported_as_rebuildable() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "target/\n");
    ws.write("target/CACHEDIR.TAG", TAG);
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(skipped(&saved), [""; 0]);
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), [".gitignore"]);
}
