//! A restore that was interrupted, and then what it needs goes away: the next command still works, and nothing is lost.

use std::{process::Command, sync::mpsc, time::Duration};

use backtrail::{Error, Recovery, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::{hostile::crc32, restore_git::two_commits_in};

const DRIVER: Driver = Driver { child_test: "crash::child" };
const PATIENCE: Duration = Duration::from_secs(1);

/// Three saved files, each edited since; the restore of them is killed before the last of these steps.
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
    assert_eq!(ws.read("f1").unwrap(), b"saved\n", "it was half done");
    ws
}

#[test]
fn a_half_restored_workspace_is_not_forgotten() {
    let ws = interrupted("exchange");
    let error = backtrail::forget(&ws.store(), None, PATIENCE).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    ws.open().recover(Way::Back, ws.now()).unwrap();
    assert_eq!(ws.read("f1").unwrap(), b"unsaved f1\n");
    backtrail::forget(&ws.store(), None, PATIENCE).unwrap();
    assert!(!ws.store().join("backtrail/format").exists());
}

#[test]
fn nor_is_one_that_was_moved_then() {
    let ws = interrupted("exchange");
    let store = ws.store();
    let beside = ws.root().with_file_name("beside");
    std::fs::rename(ws.root(), &beside).unwrap();
    let error = backtrail::forget(&store, None, PATIENCE).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    let elsewhere = ws.outside().join("elsewhere");
    std::fs::rename(&beside, &elsewhere).unwrap();
    let error = backtrail::forget(&store, Some(&elsewhere), PATIENCE).unwrap_err();
    assert!(matches!(error, Error::HalfRestored { .. }), "{error}");
    std::fs::rename(&elsewhere, ws.root()).unwrap();
    ws.remove("");
    backtrail::forget(&store, None, PATIENCE).unwrap();
    assert!(!store.join("backtrail/format").exists());
}

#[test]
fn a_workspace_that_was_renamed_is_not_gone() {
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

/// Recovers, and gives what it told could not be done.
fn recovered(ws: &TestWorkspace, way: Way) -> (Recovery, Vec<String>) {
    let done = ws.open().recover(way, ws.now()).unwrap();
    let told = done.conflicts.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.reason)).collect();
    (done.outcome, told)
}

/// A restore with the repository, killed when it was about to change that.
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
fn a_repository_that_went_does_not_keep_a_restore_from_its_end() {
    for (way, outcome, file) in
        [(Way::Forward, Recovery::Finished, "edited, not committed\n"), (Way::Back, Recovery::TakenBack, "unsaved\n")]
    {
        // Another repository around the workspace is not the one that went.
        for is_inside_another in [false, true] {
            let ws = interrupted_with_git();
            if is_inside_another {
                backtrail_testkit::git(&ws.base(), &["init", "-q"]);
            }
            ws.remove(".git");
            let (found, told) = recovered(&ws, way);
            assert_eq!(found, outcome);
            assert!(told.iter().any(|one| one.contains("repository is gone")), "{told:?}");
            assert_eq!(ws.read("file").unwrap(), file.as_bytes());
            assert!(!ws.exists(".git"), "and none is made");
            ws.write("more", "1\n");
            ws.save();
            ws.assert_store_is_sound();
        }
    }
}

#[test]
fn files_are_taken_back_where_the_repository_went() {
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

/// A staging area lies at the top of each mount in the workspace; this one is made up, as mounting takes privileges.
#[test]
fn a_mount_that_went_does_not_keep_a_restore_from_its_end() {
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
        let (_, told) = recovered(&ws, way);
        assert!(told.len() == 1 && told[0].starts_with("m/f3: "), "{told:?}");
        assert_eq!(ws.read("f2").unwrap(), kept.as_bytes());
        assert!(!ws.exists("m"));
        ws.save();
        ws.assert_store_is_sound();
    }
}

/// Does something with a workspace that must not wait for anybody.
fn at_once<T: Send + 'static>(
    ws: &TestWorkspace,
    what: &str,
    act: impl FnOnce(TestWorkspace) -> T + Send + 'static,
) -> T {
    let (send, receive) = mpsc::channel();
    let base = ws.base();
    std::thread::spawn(move || drop(send.send(act(TestWorkspace::attach(&base)))));
    receive.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what}: it waits"))
}

/// Whoever reads a FIFO waits for a writer, for ever, with the workspace locked.
#[test]
fn special_files_in_a_repository_are_not_waited_for() {
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
        let saved =
            at_once(&ws, &name, |ws| ws.open().save(&SaveRequest::default(), ws.now()).map(|saved| saved.created));
        assert!(saved.unwrap(), "{name}");
        at_once(&ws, &name, |ws| drop(ws.open().status(None).unwrap()));
        // The repository may not be moved, but its files come back, and nobody waits.
        at_once(&ws, &name, move |ws| {
            let request = RestoreRequest { git: true, ..RestoreRequest::whole(one.id) };
            drop(ws.open().restore(&request, ws.now()));
            ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        });
        assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n", "{name}");
    }
}

/// The same after an interruption: what was a file is none any more.
#[test]
fn nor_are_those_that_came_during_a_restore() {
    for name in ["index", "HEAD"] {
        let ws = interrupted_with_git();
        std::fs::remove_file(ws.path(format!(".git/{name}"))).unwrap();
        assert!(Command::new("mkfifo").arg(ws.path(format!(".git/{name}"))).status().unwrap().success());
        at_once(&ws, name, |ws| ws.open().recover(Way::Forward, ws.now()).map(drop)).unwrap();
        assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    }
}

/// However far forgetting came, there is a store with its checkpoints, or there is none; the next save works on either.
#[test]
fn a_half_forgotten_store_is_one_or_is_none() {
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
        assert_eq!(ws.open().has_store().unwrap(), format.exists(), "{what}: what is left looks damaged");
        let was_there = format.exists();
        ws.write("a", "3\n");
        ws.save();
        assert_eq!(ws.open().verify().unwrap().damaged, [], "{what}");
        let saved = ws.open().list(&backtrail::ListFilter::default()).unwrap().len();
        assert!(!was_there || saved == 3, "{what}: {saved}");
    }
}
