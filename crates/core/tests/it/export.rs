//! A checkpoint written elsewhere.

use backtrail::{ErrorCode, RestoreRequest, Scope};
use backtrail_testkit::{Manifest, TestWorkspace};

#[test]
fn an_export_is_the_checkpoint() {
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
    assert_eq!(error.code(), ErrorCode::Usage, "not empty");
    old.assert_same(&Manifest::of(&to), "and left alone");
}

/// The workspace had to be there for a look at whether the export would lie inside of it.
#[test]
fn a_workspace_that_is_gone_can_be_exported() {
    let ws = TestWorkspace::new();
    ws.write("a/b", "1\n");
    let (old, one) = (ws.manifest(), ws.save());
    let workspace = ws.open();
    ws.remove("");
    let inside = workspace.export(&one.id, &ws.root().join("copy"));
    assert_eq!(inside.unwrap_err().code(), ErrorCode::Usage, "inside of it");
    assert!(!ws.root().exists());
    let to = ws.outside().join("export");
    assert_eq!(workspace.export(&one.id, &to).unwrap(), 1);
    old.assert_same(&Manifest::of(&to), "exported");
}

/// The mark of an unfinished export had the name of a file of the checkpoint.
#[test]
fn a_file_with_the_name_of_our_mark_is_exported() {
    let ws = TestWorkspace::new();
    ws.write(".backtrail-export", "1\n");
    ws.write(".backtrail-export-1", "2\n");
    ws.write("a", "3\n");
    let (old, one) = (ws.manifest(), ws.save());
    let to = ws.outside().join("export");
    assert_eq!(ws.open().export(&one.id, &to).unwrap(), 3);
    old.assert_same(&Manifest::of(&to), "exported");
}

/// Beside what a restore was about to change, the safety checkpoint repeats the one before it, not what was there.
#[test]
fn a_checkpoint_of_some_paths_is_read_and_exported_within_them() {
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
