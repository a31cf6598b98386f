//! An interrupted restore that loses something it needs: the next command still works, and no byte is lost.

use std::{process::Command, sync::mpsc, time::Duration};

use backtrail::{Error, Recovery, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::{hostile::crc32, restore_git::two_commits_in};

const DRIVER: Driver = Driver { child_test: "crash::child" };
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes a workspace with three files that were edited after a save. Its restore was killed before the last step of
/// this name.
fn interrupted(step: &str) -> TestWorkspace {
    let make = || {
        let ws = TestWorkspace::new();
        ["f1", "f2", "f3"].iter().for_each(|name| ws.write(name, "saved\n"));
        ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        ["f1", "f2", "f3"].iter().for_each(|name| ws.write(name, format!("unsaved {name}\n")));
        ws
    };
    let points = DRIVER.points(&make().base(), "restore one");
    let point = points.iter().rposition(|name| name == step).unwrap() + 1;
    let ws = make();
    assert_eq!(DRIVER.run(&ws.base(), "restore one", point, Fault::Kill), Ended::Killed);
    assert_eq!(ws.read("f1").unwrap(), b"saved\n", "the restore was not half done");
    ws
}

#[test]
fn a_half_restored_workspace_is_not_forgotten() {
    let ws = interrupted("exchange");
    let error = backtrail::forget(&ws.store(), None, LOCK_TIMEOUT).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    ws.open().recover(Way::Back, ws.now()).unwrap();
    assert_eq!(ws.read("f1").unwrap(), b"unsaved f1\n");
    backtrail::forget(&ws.store(), None, LOCK_TIMEOUT).unwrap();
    assert!(!ws.store().join("backtrail/format").exists());
}

#[test]
fn a_half_restored_workspace_that_was_moved_is_not_forgotten() {
    let ws = interrupted("exchange");
    let store = ws.store();
    let beside = ws.root().with_file_name("beside");
    std::fs::rename(ws.root(), &beside).unwrap();
    let error = backtrail::forget(&store, None, LOCK_TIMEOUT).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    let elsewhere = ws.outside().join("elsewhere");
    std::fs::rename(&beside, &elsewhere).unwrap();
    let error = backtrail::forget(&store, Some(&elsewhere), LOCK_TIMEOUT).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    std::fs::rename(&elsewhere, ws.root()).unwrap();
    ws.remove("");
    backtrail::forget(&store, None, LOCK_TIMEOUT).unwrap();
    assert!(!store.join("backtrail/format").exists());
}

#[test]
fn a_renamed_workspace_is_not_listed_as_gone() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    let beside = ws.root().with_file_name("beside");
    std::fs::rename(ws.root(), &beside).unwrap();
    let listed = backtrail::workspaces(&ws.stores()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].moved_to.as_deref(), Some(beside.as_path()));
    assert!(!listed[0].is_gone && !listed[0].exists);
    std::fs::rename(&beside, ws.root()).unwrap();
    ws.remove("");
    let listed = backtrail::workspaces(&ws.stores()).unwrap();
    assert!(listed[0].is_gone && listed[0].moved_to.is_none());
}

/// Recovers. Returns the outcome and the conflicts.
fn recover(ws: &TestWorkspace, way: Way) -> (Recovery, Vec<String>) {
    let done = ws.open().recover(way, ws.now()).unwrap();
    let conflicts = done.conflicts.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.reason)).collect();
    (done.outcome, conflicts)
}

/// Makes a workspace whose `restore --git` was killed before its first change to the repository.
pub(crate) fn interrupted_with_git() -> TestWorkspace {
    let probe = TestWorkspace::new();
    two_commits_in(&probe);
    let points = DRIVER.points(&probe.base(), "restore-with-git one");
    let point = points.iter().position(|name| name == "lock git file").unwrap() + 1;
    let ws = TestWorkspace::new();
    two_commits_in(&ws);
    ws.write("file", "unsaved\n");
    assert_eq!(DRIVER.run(&ws.base(), "restore-with-git one", point, Fault::Kill), Ended::Killed);
    ws
}

#[test]
fn a_removed_repository_does_not_block_recovery() {
    for (way, outcome, file) in
        [(Way::Forward, Recovery::Finished, "edited, not committed\n"), (Way::Back, Recovery::TakenBack, "unsaved\n")]
    {
        // A repository around the workspace must not be mistaken for the removed one.
        for is_inside_another in [false, true] {
            let ws = interrupted_with_git();
            if is_inside_another {
                backtrail_testkit::git(&ws.base(), &["init", "-q"]);
            }
            ws.remove(".git");
            let (found, conflicts) = recover(&ws, way);
            assert_eq!(found, outcome);
            assert!(conflicts.iter().any(|one| one.contains("repository is gone")), "{conflicts:?}");
            assert_eq!(ws.read("file").unwrap(), file.as_bytes());
            assert!(!ws.exists(".git"), "a repository was created");
            ws.write("more", "1\n");
            ws.save();
            ws.assert_store_is_sound();
        }
    }
}

#[test]
fn undo_restores_the_files_if_the_repository_is_gone() {
    let ws = TestWorkspace::new();
    let one = two_commits_in(&ws);
    let request = RestoreRequest { git: true, ..RestoreRequest::whole(one.id) };
    ws.open().restore(&request, ws.now()).unwrap();
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    std::fs::rename(ws.path(".git"), ws.outside().join("away")).unwrap();
    assert!(ws.open().plan_undo().unwrap().is_some());
    let undone = ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(ws.read("file").unwrap(), b"2\n");
    assert!(undone.conflicts.iter().any(|one| one.reason.contains("repository is gone")), "{:?}", undone.conflicts);
    assert!(undone.git.is_none() && !ws.exists(".git"));
    ws.open().redo(ws.now()).unwrap().unwrap();
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
}

/// Each mount in the workspace has a staging area at its top. This one is forged, because mounting needs privileges.
#[test]
fn a_removed_mount_does_not_block_recovery() {
    for (way, kept) in [(Way::Forward, "saved\n"), (Way::Back, "unsaved f2\n")] {
        let ws = interrupted("exchange");
        let path = ws.store().join("backtrail/journal");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut journal: serde_json::Value = serde_json::from_str(text.trim_end().split_once(' ').unwrap().1).unwrap();
        let area = serde_json::json!({ "in": "workspace", "parent": "m", "name": ".backtrail-0123456789abcdef" });
        journal["areas"].as_array_mut().unwrap().push(area);
        for step in journal["steps"].as_array_mut().unwrap() {
            if step["path"] == "f3" {
                step["path"] = "m/f3".into();
                step["area"] = 1.into();
            }
        }
        let text = journal.to_string();
        std::fs::write(&path, format!("{:08x} {text}\n", crc32(text.as_bytes()))).unwrap();
        let (_, conflicts) = recover(&ws, way);
        assert!(conflicts.len() == 1 && conflicts[0].starts_with("m/f3: "), "{conflicts:?}");
        assert_eq!(ws.read("f2").unwrap(), kept.as_bytes());
        assert!(!ws.exists("m"));
        ws.save();
        ws.assert_store_is_sound();
    }
}

/// Runs an operation that must not wait for another process. Panics if it does not end in time.
fn without_waiting<T: Send + 'static>(
    ws: &TestWorkspace,
    what: &str,
    act: impl FnOnce(TestWorkspace) -> T + Send + 'static,
) -> T {
    let (send, receive) = mpsc::channel();
    let base = ws.base();
    std::thread::spawn(move || drop(send.send(act(TestWorkspace::attach(&base)))));
    receive.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what}: the operation waits"))
}

/// An operation that reads a FIFO would wait for a writer for ever, with the workspace locked.
#[test]
fn special_files_in_a_repository_do_not_block_operations() {
    let object = |ws: &TestWorkspace, what: &str| {
        let id = String::from_utf8(ws.git(&["rev-parse", what])).unwrap().trim().to_owned();
        format!(".git/objects/{}/{}", &id[..2], &id[2..])
    };
    let branch =
        |ws: &TestWorkspace| format!(".git/{}", String::from_utf8(ws.git(&["symbolic-ref", "HEAD"])).unwrap().trim());
    let fixed = |name: &'static str| move |_: &TestWorkspace| name.to_owned();
    type Name<'a> = Box<dyn Fn(&TestWorkspace) -> String + 'a>;
    let names: Vec<Name<'_>> = vec![
        Box::new(fixed(".git/index")),
        Box::new(fixed(".git/HEAD")),
        Box::new(branch),
        Box::new(fixed(".git/packed-refs")),
        Box::new(fixed(".git/config")),
        Box::new(fixed(".git/info/exclude")),
        Box::new(fixed(".git/commondir")),
        Box::new(fixed(".git/sharedindex.0123456789012345678901234567890123456789")),
        Box::new(fixed(".git/logs/HEAD")),
        Box::new(fixed(".git/objects/info/alternates")),
        Box::new(fixed(".git/objects/pack/pack-0123456789012345678901234567890123456789.idx")),
        Box::new(|ws: &TestWorkspace| object(ws, "HEAD")),
        Box::new(|ws: &TestWorkspace| object(ws, "HEAD^{tree}")),
        Box::new(fixed("../home/.gitconfig")),
    ];
    for name in names {
        let ws = TestWorkspace::new();
        let one = two_commits_in(&ws);
        ws.write("staged", "1\n");
        ws.git(&["add", "staged"]);
        let name = name(&ws);
        drop(std::fs::remove_file(ws.path(&name)));
        std::fs::create_dir_all(ws.path(&name).parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(ws.path(&name)).status().unwrap().success());
        ws.write("file", "3\n");
        let saved = without_waiting(&ws, &name, |ws| {
            ws.open().save(&SaveRequest::default(), ws.now()).map(|saved| saved.created)
        });
        assert!(saved.unwrap(), "{name}");
        without_waiting(&ws, &name, |ws| drop(ws.open().status(None).unwrap()));
        // The repository may not move, but the files are restored, and no operation waits.
        without_waiting(&ws, &name, move |ws| {
            let request = RestoreRequest { git: true, ..RestoreRequest::whole(one.id) };
            drop(ws.open().restore(&request, ws.now()));
            ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        });
        assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n", "{name}");
    }
}

/// The same after an interruption: a file of the repository has become a FIFO.
#[test]
fn special_files_in_a_repository_do_not_block_recovery() {
    for name in ["index", "HEAD"] {
        let ws = interrupted_with_git();
        std::fs::remove_file(ws.path(format!(".git/{name}"))).unwrap();
        assert!(Command::new("mkfifo").arg(ws.path(format!(".git/{name}"))).status().unwrap().success());
        without_waiting(&ws, name, |ws| ws.open().recover(Way::Forward, ws.now()).map(drop)).unwrap();
        assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    }
}

/// At whatever point `forget` is killed, the store has all its checkpoints or does not exist. The next save works in
/// both cases.
#[test]
fn a_half_forgotten_store_is_complete_or_gone() {
    let make = || {
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.save();
        ws.write("a", "2\n");
        ws.save();
        ws
    };
    let points = DRIVER.points(&make().base(), "forget");
    for point in 1..=points.len() {
        let ws = make();
        let format = ws.store().join("backtrail/format");
        assert_eq!(DRIVER.run(&ws.base(), "forget", point, Fault::Kill), Ended::Killed);
        let what = format!("killed at point {point}");
        assert_eq!(
            ws.open().has_store().unwrap(),
            format.exists(),
            "{what}: the remaining files look like a damaged store"
        );
        let was_there = format.exists();
        ws.write("a", "3\n");
        ws.save();
        assert_eq!(ws.open().verify().unwrap().damaged, [], "{what}");
        let saved = ws.open().list(&backtrail::ListFilter::default()).unwrap().len();
        assert!(!was_there || saved == 3, "{what}: {saved}");
    }
}
