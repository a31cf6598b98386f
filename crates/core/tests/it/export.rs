//! Exports of checkpoints to another directory.

use backtrail::{ErrorCode, RestoreRequest, Scope};
use backtrail_testkit::{Manifest, TestWorkspace};

#[test]
fn an_export_equals_the_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write_mode("secret", "1\n", 0o600);
    ws.write_mode("d/tool", "1\n", 0o755);
    ws.mkdir("empty");
    ws.symlink("/etc/passwd", "link");
    ws.write("d/\n\u{fffd}", "1\n");
    let (old, one) = (ws.manifest(), ws.save());
    ws.write("secret", "2\n");
    let to = ws.outside().join("new/export");
    assert_eq!(ws.open().export(&one.id, &to).unwrap(), 4);
    old.assert_same(&Manifest::of(&to), "exported");
    let error = ws.open().export(&one.id, &to).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage, "the target is not empty");
    old.assert_same(&Manifest::of(&to), "the refused target");
}

/// Regression: an export failed if the workspace was gone, because it compared its target with the workspace.
#[test]
fn a_checkpoint_of_a_deleted_workspace_can_be_exported() {
    let ws = TestWorkspace::new();
    ws.write("a/b", "1\n");
    let (old, one) = (ws.manifest(), ws.save());
    let workspace = ws.open();
    ws.remove("");
    let inside = workspace.export(&one.id, &ws.root().join("copy"));
    assert_eq!(inside.unwrap_err().code(), ErrorCode::Usage, "the target is inside the workspace");
    assert!(!ws.root().exists());
    let to = ws.outside().join("export");
    assert_eq!(workspace.export(&one.id, &to).unwrap(), 1);
    old.assert_same(&Manifest::of(&to), "exported");
}

/// Regression: the mark of an unfinished export had the same name as a file of the checkpoint.
#[test]
fn a_file_with_the_name_of_the_export_mark_is_exported() {
    let ws = TestWorkspace::new();
    ws.write(".backtrail-export", "1\n");
    ws.write(".backtrail-export-1", "2\n");
    ws.write("a", "3\n");
    let (old, one) = (ws.manifest(), ws.save());
    let to = ws.outside().join("export");
    assert_eq!(ws.open().export(&one.id, &to).unwrap(), 3);
    old.assert_same(&Manifest::of(&to), "exported");
}

/// Outside the scope of its restore, a safety checkpoint repeats the previous checkpoint instead of the files on disk.
#[test]
fn a_checkpoint_with_a_scope_is_read_and_exported_only_within_it() {
    let ws = TestWorkspace::new();
    ws.write("d/f", "1\n");
    ws.write("g", "1\n");
    let one = ws.save();
    ws.write("d/f", "2\n");
    ws.write("g", "2\n");
    let scope = Scope::of_paths(vec![ws.workspace_path("d/f")]);
    let request = RestoreRequest { scope, ..RestoreRequest::whole(one.id) };
    let safety = ws.open().restore(&request, ws.now()).unwrap().safety.unwrap();
    let to = ws.outside().join("export");
    assert_eq!(ws.open().export(&safety, &to).unwrap(), 1);
    assert_eq!(std::fs::read(to.join("d/f")).unwrap(), b"2\n");
    let refused = ws.open().cat(&safety, &ws.workspace_path("g"), &mut |_| Ok(())).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UnknownPath);
}
