//! Forks: workspaces with the files of a checkpoint, or with the files on disk.

use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use backtrail::{
    Checkpoint, ErrorCode, Fork, ForkRequest, Forked, Kind, LeftOut, ListFilter, OptionsOf, RestoreRequest,
    SaveRequest, Workspace,
};
use backtrail_testkit::{Manifest, TestWorkspace, git};

/// Returns a request for one fork of the files on disk.
pub(crate) fn request(ws: &TestWorkspace, name: &str) -> ForkRequest {
    ForkRequest {
        from: None,
        directories: vec![ws.outside().join(name)],
        stores: ws.stores(),
        left_out: LeftOut::Linked,
        may_hold_git: false,
    }
}

#[track_caller]
fn fork(ws: &TestWorkspace, request: &ForkRequest) -> Forked {
    let mut forked = ws.open().fork(request, ws.now()).unwrap();
    assert_eq!(forked.len(), 1);
    forked.remove(0)
}

/// Returns all forks of the workspace.
pub(crate) fn forks(ws: &TestWorkspace) -> Vec<Fork> {
    let options = |_: &Path| backtrail::Options::default();
    ws.open().forks(OptionsOf(&options)).unwrap()
}

fn list(workspace: &Workspace) -> Vec<Checkpoint> {
    workspace.list(&ListFilter::default()).unwrap()
}

fn changed(workspace: &Workspace) -> Vec<String> {
    let changes = workspace.status(None).unwrap().changes;
    changes.iter().map(|change| change.path.to_text().into_owned()).collect()
}

fn save_in(ws: &TestWorkspace, workspace: &Workspace) -> Checkpoint {
    workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint
}

fn packs(store: &Path) -> BTreeSet<u64> {
    let names = std::fs::read_dir(store.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let packs = names.filter(|path| path.extension().is_some_and(|extension| extension == "pack"));
    packs.map(|path| std::fs::metadata(path).unwrap().ino()).collect()
}

fn with_every_kind_of_entry() -> TestWorkspace {
    let ws = TestWorkspace::new();
    ws.write_mode("secret", "1\n", 0o600);
    ws.write_mode("d/tool", "1\n", 0o755);
    ws.write("d/\n\u{fffd}", "1\n");
    ws.mkdir("empty/inner");
    ws.symlink("/nowhere/else", "link");
    ws.write_mode("closed/file", "c\n", 0o444);
    ws.chmod("closed", 0o555);
    ws
}

#[test]
fn a_fork_of_unsaved_files_equals_them_and_leaves_the_history_of_the_workspace_alone() {
    let ws = with_every_kind_of_entry();
    let saved = ws.save();
    ws.write("secret", "unsaved\n");
    ws.write("d/new", "new\n");
    let old = ws.manifest();
    let forked = fork(&ws, &request(&ws, "fork"));
    old.assert_same(&Manifest::of(&forked.path), "the fork");
    old.assert_same(&ws.manifest(), "the workspace");
    assert_eq!(list(&ws.open()).len(), 1, "the workspace got no checkpoint");

    let there = ws.open_at(&forked.path);
    assert_eq!(changed(&there), [""; 0]);
    let [point] = list(&there).try_into().unwrap();
    assert_eq!((point.id, point.parent, point.kind), (forked.checkpoint, Some(saved.id), Kind::Automatic));
    let changed: Vec<_> = point.files_changed.iter().map(|path| path.to_text().into_owned()).collect();
    assert_eq!(changed, ["d/new", "secret"]);
    assert_eq!(there.verify().unwrap().damaged, []);
    git(there.store_directory(), &["fsck", "--full", "--strict"]);
}

#[test]
fn the_fork_point_of_unfiles_changed_is_the_checkpoint_of_the_workspace() {
    let ws = with_every_kind_of_entry();
    let saved = ws.save();
    assert_eq!(fork(&ws, &request(&ws, "fork")).checkpoint, saved.id);
}

#[test]
fn a_fork_of_an_older_checkpoint_has_its_files_and_its_id() {
    let ws = with_every_kind_of_entry();
    let (old, one) = (ws.manifest(), ws.save());
    ws.write("secret", "2\n");
    ws.remove("d");
    ws.save();
    let forked = fork(&ws, &ForkRequest { from: Some(one.id), ..request(&ws, "fork") });
    assert_eq!(forked.checkpoint, one.id);
    old.assert_same(&Manifest::of(&forked.path), "the fork");
    assert_eq!(changed(&ws.open_at(&forked.path)), [""; 0]);
}

/// A workspace that was never saved has no store.
#[test]
fn a_workspace_without_checkpoints_can_be_forked() {
    let ws = with_every_kind_of_entry();
    let forked = fork(&ws, &request(&ws, "fork"));
    ws.manifest().assert_same(&Manifest::of(&forked.path), "the fork");
    assert_eq!(forks(&ws).len(), 1);
    assert_eq!(list(&ws.open())[0].id, forked.checkpoint, "the workspace got its first checkpoint");
}

#[test]
fn several_forks_start_with_the_same_fork_point() {
    let ws = with_every_kind_of_entry();
    ws.save();
    ws.write("secret", "unsaved\n");
    let directories: Vec<PathBuf> = ["a", "b", "c"].map(|name| ws.outside().join(name)).into();
    let forked = ws.open().fork(&ForkRequest { directories, ..request(&ws, "") }, ws.now()).unwrap();
    for one in &forked {
        assert_eq!(one.checkpoint, forked[0].checkpoint);
        ws.manifest().assert_same(&Manifest::of(&one.path), "a fork");
        assert_eq!(changed(&ws.open_at(&one.path)), [""; 0]);
        assert_eq!(ws.open_at(&one.path).verify().unwrap().damaged, []);
    }
    assert_eq!(forks(&ws).len(), 3);
}

#[test]
fn stores_share_packs_and_do_not_need_each_other() {
    let ws = TestWorkspace::new();
    ws.write("a", "first\n");
    let one = ws.save();
    ws.write("a", "second\n");
    let two = ws.save();
    let forked = fork(&ws, &ForkRequest { from: Some(one.id), ..request(&ws, "fork") });
    let there = ws.open_at(&forked.path);
    assert_eq!(packs(there.store_directory()), packs(&ws.store()), "no pack was copied");

    ws.open().delete(&[one.id], false, ws.now()).unwrap();
    ws.open().prune(ws.now()).unwrap();
    assert_eq!(there.verify().unwrap().damaged, []);
    there.restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    there.prune(ws.now()).unwrap();
    assert_eq!(ws.open().verify().unwrap().damaged, []);
    ws.open().restore(&RestoreRequest::whole(two.id), ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), b"second\n");
}

#[test]
fn a_store_on_another_file_system_is_forked_too() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let ws = TestWorkspace::with_stores_below(memory);
    ws.write("a", "1\n");
    ws.save();
    let own_stores = ws.base().join("other-stores");
    let forked = fork(&ws, &ForkRequest { stores: own_stores.clone(), ..request(&ws, "fork") });
    let location = backtrail::locate(&backtrail::Start::At(forked.path), &own_stores, None).unwrap();
    let there = Workspace::new(location, backtrail::Options::default());
    assert_eq!(there.verify().unwrap().damaged, []);
    assert_eq!(changed(&there), [""; 0]);
}

#[test]
fn skipped_directories_are_linked_and_the_links_are_never_captured() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write("node_modules/lib", "1\n");
    ws.write(".gitignore", "build/\n*.log\n");
    ws.write("sub/build/out", "1\n");
    ws.write("only/build/out", "1\n");
    ws.write("x.log", "1\n");
    ws.save();
    let forked = fork(&ws, &request(&ws, "fork"));
    for link in ["node_modules", "sub/build", "only/build"] {
        assert_eq!(std::fs::read_link(forked.path.join(link)).unwrap(), ws.path(link));
    }
    assert!(!forked.path.join("x.log").exists(), "a skipped file is not in the fork");
    let there = ws.open_at(&forked.path);
    assert_eq!(changed(&there), [""; 0]);
    std::fs::write(forked.path.join("new"), "1\n").unwrap();
    let saved = save_in(&ws, &there);
    assert_eq!(saved.files_changed.len(), 1, "{:?}", saved.files_changed);
    assert_eq!(changed(&there), [""; 0], "with a stat cache");
    there.restore(&RestoreRequest::whole(forked.checkpoint), ws.now()).unwrap();
    assert!(forked.path.join("node_modules").is_symlink(), "a restore leaves the link alone");

    // A symlink that the user puts there is the user's.
    std::fs::remove_file(forked.path.join("node_modules")).unwrap();
    std::os::unix::fs::symlink("elsewhere", forked.path.join("node_modules")).unwrap();
    assert_eq!(changed(&there), ["node_modules"]);
}

#[test]
fn skipped_paths_are_copied_on_request() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write_mode("node_modules/lib/run", "1\n", 0o755);
    ws.symlink("lib/run", "node_modules/link");
    ws.mkdir("node_modules/empty");
    ws.write(".gitignore", "*.log\n");
    ws.write("logs/x.log", "1\n");
    ws.save();
    let forked = fork(&ws, &ForkRequest { left_out: LeftOut::Copied, ..request(&ws, "fork") });
    ws.manifest().assert_same(&Manifest::of(&forked.path), "the fork");
    assert_eq!(changed(&ws.open_at(&forked.path)), [""; 0]);
    std::fs::write(forked.path.join("node_modules/lib/run"), "2\n").unwrap();
    assert_eq!(ws.read("node_modules/lib/run").unwrap(), b"1\n");
}

#[test]
fn special_files_are_not_copied_and_are_reported() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "run/\n");
    ws.mkdir("run");
    let pipe = ws.path("run/pipe");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let forked = fork(&ws, &ForkRequest { left_out: LeftOut::Copied, ..request(&ws, "fork") });
    let told: Vec<_> = forked.not_copied.iter().map(|one| one.path.to_text().into_owned()).collect();
    assert_eq!(told, ["run/pipe"]);
}

/// The fork has no `.git`, so nothing there says that the file is tracked.
#[test]
fn an_ignored_file_that_git_tracks_stays_captured_in_the_fork() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.bin\n");
    ws.write("tracked.bin", "1\n");
    ws.git_init();
    ws.git(&["add", "-f", "tracked.bin"]);
    ws.git(&["commit", "-qm", "tracked"]);
    ws.save();
    ws.write("tracked.bin", "2\n");
    let forked = fork(&ws, &request(&ws, "fork"));
    assert!(!forked.path.join(".git").exists());
    std::fs::write(forked.path.join("tracked.bin"), "3\n").unwrap();
    assert_eq!(changed(&ws.open_at(&forked.path)), ["tracked.bin"]);
}

#[test]
fn a_fork_of_a_fork_has_its_links() {
    let ws = TestWorkspace::new();
    ws.write("package.json", "{}");
    ws.write("node_modules/lib", "1\n");
    let first = fork(&ws, &request(&ws, "first"));
    let again = |name, left_out| {
        let request = ForkRequest { left_out, ..request(&ws, name) };
        ws.open_at(&first.path).fork(&request, ws.now()).unwrap().remove(0).path
    };
    let linked = again("linked", LeftOut::Linked);
    assert_eq!(std::fs::read_link(linked.join("node_modules")).unwrap(), ws.path("node_modules"));
    assert_eq!(changed(&ws.open_at(&linked)), [""; 0]);
    let copied = again("copied", LeftOut::Copied);
    assert!(!copied.join("node_modules").is_symlink());
    assert_eq!(std::fs::read(copied.join("node_modules/lib")).unwrap(), b"1\n");
    assert_eq!(forks(&ws).len(), 1, "the forks of a fork are its own");
}

/// A safety checkpoint alone would not be the checkpoint that a workspace stands on.
#[test]
fn a_safety_checkpoint_can_be_forked() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "unsaved\n");
    let safety = ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap().safety.unwrap();
    let forked = fork(&ws, &ForkRequest { from: Some(safety), ..request(&ws, "fork") });
    let there = ws.open_at(&forked.path);
    assert_eq!(std::fs::read(forked.path.join("a")).unwrap(), b"unsaved\n");
    assert_eq!((there.current().unwrap(), changed(&there)), (Some(safety), Vec::new()));
    assert!(there.undo(ws.now()).unwrap().is_none(), "nothing was done there yet");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test removes its own fork")]
fn a_fork_at_the_path_of_a_removed_one_has_a_new_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    let first = fork(&ws, &request(&ws, "fork"));
    std::fs::write(first.path.join("a"), "in the first\n").unwrap();
    save_in(&ws, &ws.open_at(&first.path));
    std::fs::remove_dir_all(&first.path).unwrap();
    let gone = forks(&ws).remove(0);
    assert_eq!((gone.exists, gone.changes.unwrap().files), (false, 1), "the last checkpoint counts");

    fork(&ws, &request(&ws, "fork"));
    let there = ws.open_at(&first.path);
    assert_eq!(list(&there).len(), 1);
    assert_eq!(changed(&there), [""; 0]);
}

#[test]
fn a_directory_that_is_taken_is_refused_before_anything_is_made() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    let taken = fork(&ws, &request(&ws, "taken")).path;
    let old = Manifest::of(&ws.outside());
    for bad in [taken, ws.root().join("inside"), ws.root(), ws.stores().join("new")] {
        let directories = vec![ws.outside().join("good"), bad.clone()];
        let refused = ws.open().fork(&ForkRequest { directories, ..request(&ws, "") }, ws.now()).unwrap_err();
        let is_store = bad.starts_with(ws.stores());
        let expected = if is_store { ErrorCode::ProtectedDirectory } else { ErrorCode::Usage };
        assert_eq!(refused.code(), expected, "{bad:?}: {refused}");
    }
    old.assert_same(&Manifest::of(&ws.outside()), "outside");
    let elsewhere = ws.store().join("new");
    let refused = ws.open().fork(&ForkRequest { directories: vec![elsewhere], ..request(&ws, "") }, ws.now());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Usage);
    ws.open().delete(&[one.id], true, ws.now()).unwrap();
    let unknown = ws.open().fork(&ForkRequest { from: Some(one.id), ..request(&ws, "unknown") }, ws.now());
    assert_eq!(unknown.unwrap_err().code(), ErrorCode::UnknownCheckpoint);
    assert!(!ws.outside().join("unknown").exists());
}

#[test]
fn a_file_with_the_name_of_the_mark_is_forked() {
    let ws = TestWorkspace::new();
    ws.write(".backtrail-fork", "1\n");
    ws.write(".backtrail-fork-1", "2\n");
    let forked = fork(&ws, &request(&ws, "fork"));
    ws.manifest().assert_same(&Manifest::of(&forked.path), "the fork");
}

#[test]
fn prompts_and_changes_in_a_fork_are_counted_from_the_fork_point() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let turn = SaveRequest { kind: Some(Kind::Turn), ..SaveRequest::default() };
    ws.save_with(&turn);
    let forked = fork(&ws, &request(&ws, "fork"));
    assert_eq!(forks(&ws)[0].prompts, 0, "the fork point does not count");
    std::fs::write(forked.path.join("a"), "1\n2\n").unwrap();
    ws.open_at(&forked.path).save(&turn, ws.now()).unwrap();
    std::fs::write(forked.path.join("b"), "1\n").unwrap();
    let [found] = forks(&ws).try_into().unwrap();
    let changes = found.changes.unwrap();
    assert_eq!((found.prompts, changes.files, changes.insertions, changes.deletions), (1, 2, 2, 0));
}
