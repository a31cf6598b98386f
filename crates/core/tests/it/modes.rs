//! Every permission bit is captured.

use backtrail::{ChangeStatus, Mode, SaveRequest, Side};
use backtrail_testkit::{Found, TestWorkspace};

fn mode_of(side: Option<Side>) -> Option<u16> {
    match side? {
        Side::File { mode, .. } | Side::Directory { mode } => Some(mode.0),
        Side::Symlink { .. } => None,
    }
}

#[test]
fn every_mode_of_a_file_is_captured() {
    let ws = TestWorkspace::new();
    for mode in [0o644, 0o600, 0o755, 0o700, 0o444, 0o400, 0o664, 0o777, 0o711, 0o4755, 0o2755, 0o1644, 0o6711] {
        ws.write_mode(format!("f{mode:o}"), "1\n", mode);
    }
    let saved = ws.save();
    let changes = ws.open().show(&saved.id).unwrap().changes;
    let found: Vec<_> = changes.iter().map(|change| (change.path.as_bytes().to_vec(), mode_of(change.new))).collect();
    let expected: Vec<_> = ws
        .manifest()
        .0
        .into_iter()
        .filter_map(|(path, found)| match found {
            Found::File(mode, _) => Some((path, Some(mode as u16))),
            _ => None,
        })
        .collect();
    assert_eq!(found, expected);
    for (path, mode, _) in ws.tree_in_store(&saved.id) {
        let name = String::from_utf8(path).unwrap();
        let bits = u32::from_str_radix(&name[1..], 8).unwrap();
        assert_eq!(mode, if bits & 0o100 != 0 { "100755" } else { "100644" }, "{name}");
    }
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.assert_store_is_sound();
}

#[test]
fn a_change_of_only_permission_bits_is_a_change() {
    let ws = TestWorkspace::new();
    ws.write_mode("a", "1\n", 0o644);
    ws.write_mode("d/b", "1\n", 0o644);
    let mut before = ws.save();
    for (old, new) in [(0o644, 0o600), (0o600, 0o755), (0o755, 0o775), (0o775, 0o4755), (0o4755, 0o644)] {
        ws.chmod("d/b", new);
        let saved = ws.save();
        let changes = ws.open().show(&saved.id).unwrap().changes;
        assert_eq!(changes.len(), 1, "{old:o} to {new:o}: {changes:?}");
        assert_eq!(changes[0].status, ChangeStatus::ModeChanged);
        assert_eq!(
            (mode_of(changes[0].old), mode_of(changes[0].new)),
            (Some(old as u16), Some(new as u16)),
            "{old:o} to {new:o}"
        );
        assert_eq!(saved.parent, Some(before.id));
        before = saved;
    }
}

#[test]
fn modes_of_directories_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1\n");
    ws.mkdir("empty");
    ws.chmod("empty", 0o711);
    let first = ws.save();
    let shown = ws.open().show(&first.id).unwrap().changes;
    let empty = shown.iter().find(|change| change.path.as_bytes() == b"empty").unwrap();
    assert_eq!(mode_of(empty.new), Some(0o711));
    for mode in [0o700, 0o2775, 0o1777, 0o500] {
        ws.chmod("d", mode);
        let saved = ws.save();
        let changes = ws.open().show(&saved.id).unwrap().changes;
        let shown: Vec<_> = changes.iter().map(|change| (change.display_path(), mode_of(change.new))).collect();
        assert_eq!(shown, [("d/".to_owned(), Some(mode as u16))]);
    }
    ws.chmod("d", 0o755);
}

#[test]
fn a_change_of_the_usual_mode_changes_no_other_file() {
    let ws = TestWorkspace::new();
    for number in 0..10 {
        ws.write_mode(format!("{number}"), "1\n", 0o644);
    }
    ws.save();
    // Most files now have other bits than the usual ones of the first checkpoint.
    for number in 0..9 {
        ws.chmod(format!("{number}"), 0o640);
    }
    let saved = ws.save();
    assert_eq!(saved.files_changed.len(), 9);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    std::fs::remove_file(ws.store().join("backtrail/stat-cache")).unwrap();
    assert_eq!(ws.open().status(None).unwrap().changes, [], "status without the stat cache");
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created, "a save without the stat cache: {:?}", again.checkpoint.files_changed);
}

#[test]
fn a_workspace_with_only_private_modes_is_captured() {
    let ws = TestWorkspace::new();
    for name in ["a", "d/b", "d/e/c"] {
        ws.write_mode(name, "1\n", 0o600);
    }
    for name in ["d", "d/e"] {
        ws.chmod(name, 0o700);
    }
    let saved = ws.save();
    let changes = ws.open().show(&saved.id).unwrap().changes;
    assert!(changes.iter().all(|change| mode_of(change.new) == Some(0o600)), "{changes:?}");
    std::fs::remove_file(ws.store().join("backtrail/stat-cache")).unwrap();
    assert_eq!(ws.open().status(None).unwrap().changes, []);
}

#[test]
fn executable_means_executable_by_the_owner_as_in_git() {
    assert!(Mode(0o700).is_executable());
    let ws = TestWorkspace::new();
    ws.write_mode("group-only", "1\n", 0o654);
    let saved = ws.save();
    assert_eq!(ws.tree_in_store(&saved.id)[0].1, "100644");
    assert_eq!(ws.open().status(None).unwrap().changes, []);
}
