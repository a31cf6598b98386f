//! Adoptions: the work of a fork, merged into the workspace that it was made of.

use std::path::{Path, PathBuf};

use backtrail::{AdoptRequest, ErrorCode, LeftOut, OnConflict, Options, OptionsOf, RestoreOutcome, SaveRequest};
use backtrail_testkit::{Manifest, TestWorkspace, git_directory_bytes};

use crate::forks::request;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

pub(crate) fn adoption(ws: &TestWorkspace) -> AdoptRequest {
    AdoptRequest { directory: ws.outside().join("fork"), on_conflict: OnConflict::Refuse, plan: None }
}

pub(crate) fn adopt(ws: &TestWorkspace, request: &AdoptRequest) -> Result<RestoreOutcome, backtrail::Error> {
    let options = |_: &Path| Options::default();
    ws.open().adopt_fork(request, OptionsOf(&options), ws.now())
}

fn fork(ws: &TestWorkspace) -> PathBuf {
    ws.open().fork(&request(ws, "fork"), ws.now()).unwrap().remove(0).path
}

fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn work_in_both_is_merged_and_undo_and_redo_are_exact() {
    let ws = TestWorkspace::new();
    ws.write("both", LINES);
    ws.write("gone", "g\n");
    ws.write("dir/only", "o\n");
    let one = ws.save();
    let place = fork(&ws);
    write(place.join("both"), &LINES.replace('2', "fork"));
    write(place.join("new/deep/file"), "n\n");
    std::fs::remove_file(place.join("gone")).unwrap();
    std::fs::remove_file(place.join("dir/only")).unwrap();
    std::fs::remove_dir(place.join("dir")).unwrap();
    ws.write("both", LINES.replace('8', "here"));
    ws.write("mine", "m\n");
    let (before, there) = (ws.manifest(), Manifest::of(&place));

    let done = adopt(&ws, &adoption(&ws)).unwrap();
    assert!(done.applied && done.conflicts.is_empty(), "{:?}", done.conflicts);
    let merged: Vec<_> = done.merged.iter().map(|path| path.to_text().into_owned()).collect();
    assert_eq!(merged, ["both"]);
    assert_eq!(ws.read("both").unwrap(), LINES.replace('2', "fork").replace('8', "here").as_bytes());
    assert_eq!((ws.exists("gone"), ws.exists("dir"), ws.exists("mine")), (false, false, true));
    assert_eq!(ws.read("new/deep/file").unwrap(), b"n\n");
    there.assert_same(&Manifest::of(&place), "the fork");
    assert_eq!(ws.open().current().unwrap(), Some(one.id), "the workspace stands where it stood");
    let after = ws.manifest();
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "undone");
    ws.open().redo(ws.now()).unwrap().unwrap();
    after.assert_same(&ws.manifest(), "redone");

    let again = adopt(&ws, &adoption(&ws)).unwrap();
    assert_eq!((again.changes.len(), again.safety), (0, None), "there is nothing left to bring");
    ws.assert_store_is_sound();
}

#[test]
fn a_conflict_refuses_everything_and_is_said_in_the_words_of_a_fork() {
    let ws = TestWorkspace::new();
    for name in ["both", "deleted", "edited"] {
        ws.write(name, LINES);
    }
    ws.save();
    let place = fork(&ws);
    write(place.join("both"), &LINES.replace('2', "fork"));
    write(place.join("created"), "fork\n");
    write(place.join("edited"), &LINES.replace('2', "fork"));
    write(place.join("fine"), "fine\n");
    std::fs::remove_file(place.join("deleted")).unwrap();
    ws.write("both", LINES.replace('2', "here"));
    ws.write("created", "here\n");
    ws.write("deleted", LINES.replace('2', "here"));
    ws.remove("edited");
    let before = ws.manifest();

    let refused = adopt(&ws, &adoption(&ws)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    before.assert_same(&ws.manifest(), "refused");
    let options = |_: &Path| Options::default();
    let plan = ws.open().plan_adopt_fork(&adoption(&ws), OptionsOf(&options), ws.now()).unwrap();
    let told: Vec<_> = plan.conflicts.iter().map(|one| format!("{}: {}", one.path.to_text(), one.reason)).collect();
    assert_eq!(
        told,
        [
            "both: the same lines were changed since",
            "created: the fork created it, and something else is here",
            "deleted: the fork deleted it, and it was edited here",
            "edited: the fork edited it, and it was deleted here",
        ]
    );

    let done = adopt(&ws, &AdoptRequest { on_conflict: OnConflict::Skip, ..adoption(&ws) }).unwrap();
    assert_eq!((done.changes.len(), done.conflicts.len()), (1, 4));
    assert_eq!(ws.read("fine").unwrap(), b"fine\n");
    assert_eq!(ws.read("both").unwrap(), LINES.replace('2', "here").as_bytes());
}

#[test]
fn overlapping_lines_are_written_with_markers_on_request() {
    let ws = TestWorkspace::new();
    ws.write("both", "a\nb\nc\n");
    let one = ws.save();
    let place = fork(&ws);
    write(place.join("both"), "a\nfork\nc\n");
    ws.write("both", "a\nhere\nc\n");
    adopt(&ws, &AdoptRequest { on_conflict: OnConflict::Markers, ..adoption(&ws) }).unwrap();
    let point = one.id.short();
    let expected =
        format!("a\n<<<<<<< now\nhere\n||||||| fork point {point}\nb\n=======\nfork\n>>>>>>> fork fork\nc\n");
    assert_eq!(String::from_utf8(ws.read("both").unwrap()).unwrap(), expected);
}

#[test]
fn links_to_skipped_directories_are_never_adopted() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write("node_modules/lib", "1\n");
    ws.save();
    let place = fork(&ws);
    write(place.join("new"), "n\n");
    let done = adopt(&ws, &adoption(&ws)).unwrap();
    assert_eq!(done.changes.len(), 1);
    assert!(!ws.path("node_modules").is_symlink());
}

#[test]
fn copies_of_skipped_paths_are_never_adopted() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("x.log", "1\n");
    ws.save();
    let copied = backtrail::ForkRequest { left_out: LeftOut::Copied, ..request(&ws, "fork") };
    let place = ws.open().fork(&copied, ws.now()).unwrap().remove(0).path;
    write(place.join("x.log"), "2\n");
    assert_eq!(adopt(&ws, &adoption(&ws)).unwrap().changes.len(), 0);
    assert_eq!(ws.read("x.log").unwrap(), b"1\n");
}

/// The workspace no longer has the contents of the fork point, which is the base of the merge.
#[test]
fn a_fork_is_adopted_after_the_fork_point_was_deleted_in_the_workspace() {
    let ws = TestWorkspace::new();
    ws.write("both", LINES);
    let one = ws.save();
    let place = fork(&ws);
    write(place.join("both"), &LINES.replace('2', "fork"));
    ws.write("both", LINES.replace('8', "here"));
    ws.save();
    ws.open().delete(&[one.id], false, ws.now()).unwrap();
    ws.open().prune(ws.now()).unwrap();
    adopt(&ws, &adoption(&ws)).unwrap();
    assert_eq!(ws.read("both").unwrap(), LINES.replace('2', "fork").replace('8', "here").as_bytes());
}

#[test]
fn only_a_fork_of_this_workspace_is_adopted() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    for directory in [ws.outside(), ws.root(), ws.outside().join("missing")] {
        let refused = adopt(&ws, &AdoptRequest { directory, ..adoption(&ws) }).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Usage, "{refused}");
    }
    let place = fork(&ws);
    let elsewhere = AdoptRequest { directory: ws.root(), ..adoption(&ws) };
    let options = |_: &Path| Options::default();
    let refused = ws.open_at(&place).adopt_fork(&elsewhere, OptionsOf(&options), ws.now()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Usage, "a workspace is no fork of its fork");
}

/// `@` is the checkpoint after the adoption, and stays it.
#[test]
fn undo_of_an_adoption_keeps_the_place_on_the_timeline() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    ws.git_init();
    let place = fork(&ws);
    write(place.join("a"), "2\n");
    let git = git_directory_bytes(&ws.path(".git"));
    adopt(&ws, &adoption(&ws)).unwrap();
    git.assert_same(&git_directory_bytes(&ws.path(".git")), "the user's repository");
    let later = ws.open().save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ws.read("a").unwrap(), b"1\n");
    assert_eq!(ws.open().current().unwrap(), Some(later.id));
}
