//! Reverts of real trees: the changes that are taken back, and the later work that stays.

mod oracle;
mod random_trees;
mod schedules;
mod sessions;

use backtrail::{
    Checkpoint, CheckpointId, ChosenChanges, Error, HunkChoice, OnConflict, RestoreRequest, RevertOutcome,
    RevertRequest, RevertTarget,
};
use backtrail_testkit::TestWorkspace;

fn request(id: CheckpointId) -> RevertRequest {
    RevertRequest::whole(RevertTarget::Checkpoint(id))
}

#[track_caller]
fn revert(ws: &TestWorkspace, checkpoint: &Checkpoint) -> RevertOutcome {
    ws.open().revert(&request(checkpoint.id), ws.now()).unwrap()
}

/// Returns the lines 1 to 40, with some of them replaced.
fn text(edits: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let edit = edits.iter().find(|(edited, _)| *edited == number);
        edit.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=40).map(line).collect()
}

#[test]
fn every_kind_of_entry_comes_back_and_undo_and_redo_are_exact() {
    let ws = TestWorkspace::new();
    ws.write("text", text(&[]));
    ws.write_mode("mode", "m\n", 0o600);
    ws.write_mode("deleted/in/file", "d\n", 0o640);
    ws.symlink("text", "link");
    ws.write("file-to-link", "f\n");
    ws.write("file-to-dir", "f\n");
    ws.write("dir-to-file/in/x", "x\n");
    ws.mkdir("empty/inner");
    ws.mkdir("bits");
    ws.write(b"odd\xff", "1\n");
    ws.save();
    ws.write("text", text(&[(5, "agent")]));
    ws.chmod("mode", 0o755);
    ws.remove("deleted");
    ws.remove("link");
    ws.symlink("mode", "link");
    ws.remove("file-to-link");
    ws.symlink("text", "file-to-link");
    ws.remove("file-to-dir");
    ws.write("file-to-dir/in/y", "y\n");
    ws.remove("dir-to-file");
    ws.write("dir-to-file", "now a file\n");
    ws.remove("empty");
    ws.mkdir("made/deep");
    ws.chmod("bits", 0o700);
    ws.write(b"odd\xff", "2\n");
    ws.write("created/file", "c\n");
    let changed = ws.save();
    ws.write("text", text(&[(5, "agent"), (30, "mine")]));
    ws.write("mine", "unsaved\n");
    let before = ws.manifest();
    let done = revert(&ws, &changed);
    assert_eq!(done.reverted, [changed.id]);
    assert_eq!(done.restore.merged, [ws.workspace_path("text")]);
    assert_eq!(ws.read("text").unwrap(), text(&[(30, "mine")]).into_bytes());
    assert!(ws.exists("empty/inner") && !ws.exists("made") && !ws.exists("created") && ws.exists("deleted/in/file"));
    let reverted = ws.manifest();
    for tree in [&before, &reverted, &before] {
        let done = if std::ptr::eq(tree, &reverted) { ws.open().redo(ws.now()) } else { ws.open().undo(ws.now()) };
        assert!(done.unwrap().unwrap().taken_back.unwrap().is_revert);
        tree.assert_same(&ws.manifest(), "after undo or redo");
        assert_eq!(ws.open().current().unwrap(), Some(changed.id), "the workspace stands on the same checkpoint");
    }
    ws.assert_store_is_sound();
}

/// The undo of a revert knows the exact paths: it touches nothing else in directories that the revert made or changed.
#[test]
fn undo_of_a_revert_leaves_later_work_alone_even_in_the_same_directories() {
    let ws = TestWorkspace::new();
    ws.write("gone/file", "g\n");
    ws.mkdir("hollow");
    ws.mkdir("bits");
    ws.save();
    ws.remove("gone");
    ws.remove("hollow");
    ws.chmod("bits", 0o700);
    let changed = ws.save();
    revert(&ws, &changed);
    for name in ["gone/mine", "hollow/mine", "bits/mine"] {
        ws.write(name, "later\n");
    }
    let later = ws.save();
    ws.open().undo(ws.now()).unwrap().unwrap();
    for name in ["gone/mine", "hollow/mine", "bits/mine"] {
        assert_eq!(ws.read(name).unwrap(), b"later\n", "{name}");
    }
    assert!(!ws.exists("gone/file"), "the revert had brought it back");
    assert_eq!(ws.open().current().unwrap(), Some(later.id));
}

#[test]
fn a_conflict_changes_nothing_and_names_the_lines() {
    let ws = TestWorkspace::new();
    ws.write("a", text(&[]));
    ws.write("b", "1\n");
    ws.save();
    ws.write("a", text(&[(5, "agent"), (20, "agent")]));
    ws.write("b", "2\n");
    let changed = ws.save();
    ws.write("a", text(&[(5, "agent"), (20, "mine")]));
    let (before, count) = (ws.manifest(), ws.open().list(&Default::default()).unwrap().len());
    let error = ws.open().revert(&request(changed.id), ws.now()).unwrap_err();
    assert!(matches!(&error, Error::Conflict { path, .. } if *path == ws.workspace_path("a")), "{error}");
    before.assert_same(&ws.manifest(), "after the refused revert");
    assert_eq!(ws.open().list(&Default::default()).unwrap().len(), count, "no safety checkpoint");
    let plan = ws.open().plan_revert(&request(changed.id)).unwrap();
    assert_eq!(plan.conflicts()[0].lines, [[20, 20]]);
    let skipping = RevertRequest { on_conflict: OnConflict::Skip, ..request(changed.id) };
    ws.open().revert(&skipping, ws.now()).unwrap();
    assert_eq!(
        (ws.read("a").unwrap(), ws.read("b").unwrap()),
        (text(&[(5, "agent"), (20, "mine")]).into(), b"1\n".into())
    );
    assert!(!ws.open().get(&changed.id).unwrap().reverted, "only a part is taken back");
}

/// A conflict in one stretch leaves the file out of the other stretches, too.
#[test]
fn a_file_with_a_conflict_in_one_stretch_stays_entirely_as_it_is() {
    let ws = TestWorkspace::new();
    ws.write("a", text(&[]));
    let first = ws.save();
    ws.write("a", text(&[(5, "agent")]));
    ws.save();
    ws.write("a", text(&[(5, "agent"), (30, "agent")]));
    let last = ws.save();
    ws.write("a", text(&[(5, "mine"), (30, "agent")]));
    let range = RevertTarget::Range { from: first.id, to: last.id };
    let skipping = RevertRequest { on_conflict: OnConflict::Skip, ..RevertRequest::whole(range) };
    let done = ws.open().revert(&skipping, ws.now()).unwrap();
    assert_eq!(done.restore.conflicts.len(), 1);
    assert_eq!(ws.read("a").unwrap(), text(&[(5, "mine"), (30, "agent")]).into_bytes());
}

#[test]
fn a_moved_file_is_changed_at_its_new_path_and_a_created_one_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("old", text(&[]));
    ws.save();
    ws.write("old", text(&[(5, "agent")]));
    ws.write("made", text(&[(1, "made")]));
    let changed = ws.save();
    for (from, to) in [("old", "new/place"), ("made", "made-elsewhere")] {
        let bytes = ws.read(from).unwrap();
        ws.remove(from);
        ws.write(to, bytes);
    }
    let skipping = RevertRequest { on_conflict: OnConflict::Skip, ..request(changed.id) };
    let done = ws.open().revert(&skipping, ws.now()).unwrap();
    assert_eq!(ws.read("new/place").unwrap(), text(&[]).into_bytes());
    assert!(!ws.exists("old") && ws.exists("made-elsewhere"));
    assert_eq!(done.restore.moved[0].to, ws.workspace_path("new/place"));
    assert_eq!(done.restore.conflicts.len(), 1);
}

#[test]
fn only_the_chosen_hunks_are_restored_or_reverted() {
    let ws = TestWorkspace::new();
    ws.write("a", text(&[]));
    let saved = ws.save();
    ws.write_mode("a", text(&[(5, "upper"), (8, "near"), (35, "lower")]), 0o755);
    let before = ws.manifest();
    let listed = RestoreRequest { hunks: HunkChoice::Listed, ..RestoreRequest::whole(saved.id) };
    let hunks = ws.open().plan_restore(&listed).unwrap().changes.remove(0).hunks.unwrap();
    assert_eq!(hunks.iter().map(|hunk| hunk.parts.len()).collect::<Vec<_>>(), [2, 0], "the first can be split");
    let only = |id: &str| HunkChoice::Only(ChosenChanges { hunks: vec![id.to_owned()], paths: Vec::new() });
    let part = RestoreRequest { hunks: only(&hunks[0].parts[1].id), ..RestoreRequest::whole(saved.id) };
    ws.open().restore(&part, ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), text(&[(5, "upper"), (35, "lower")]).into_bytes());
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "after undo");
    let changed = ws.save();
    let unknown = RevertRequest { hunks: only("0000000000000000"), ..request(changed.id) };
    let error = ws.open().revert(&unknown, ws.now()).unwrap_err();
    assert!(matches!(error, Error::HunkChanged { .. }), "{error}");
    let lower = RevertRequest { hunks: only(&hunks[1].id), ..request(changed.id) };
    ws.open().revert(&lower, ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), text(&[(5, "upper"), (8, "near")]).into_bytes());
}

#[test]
fn what_can_not_be_taken_back_is_refused_with_its_reason() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let first = ws.save();
    ws.write("a", "2\n");
    let second = ws.save();
    ws.write("a", "3\n");
    let third = ws.save();
    let refusal = |target: RevertTarget| ws.open().plan_revert(&RevertRequest::whole(target)).unwrap_err();
    assert!(matches!(refusal(RevertTarget::Checkpoint(first.id)), Error::FirstCheckpoint { .. }));
    let backwards = RevertTarget::Range { from: third.id, to: first.id };
    assert!(matches!(refusal(backwards), Error::BackwardRange { .. }));
    assert!(matches!(refusal(RevertTarget::Session("none".into())), Error::UnknownSession { .. }));
    ws.open().delete(&[second.id], false, ws.now()).unwrap();
    let error = refusal(RevertTarget::Checkpoint(third.id));
    assert!(matches!(error, Error::ParentDeleted { before: Some(before), .. } if before == first.id), "{error}");
}
