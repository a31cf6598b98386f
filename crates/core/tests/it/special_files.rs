//! FIFOs, sockets and devices are reported as skipped, and never opened.

use std::{fs, os::unix::net::UnixListener, process::Command};

use backtrail::{ErrorCode, Reason, RestoreRequest, SaveRequest, Scope, Settings};
use backtrail_testkit::{Found, TestWorkspace};

fn make_fifo(ws: &TestWorkspace, name: &str) {
    assert!(Command::new("mkfifo").arg(ws.path(name)).status().unwrap().success());
}

#[test]
fn special_files_are_skipped_and_reported() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    make_fifo(&ws, "d/pipe");
    let _socket = UnixListener::bind(ws.path("socket")).unwrap();
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["d/a"]);
    let skipped: Vec<_> =
        saved.skipped.iter().map(|skipped| (skipped.path.to_text().into_owned(), skipped.reason)).collect();
    assert_eq!(skipped, [("d/pipe".to_owned(), Reason::Special), ("socket".to_owned(), Reason::Special)]);
    assert!(saved.checkpoint.complete);
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created);
    assert_eq!(again.skipped, saved.skipped, "a save without a change still reports them");
}

#[test]
fn a_file_that_becomes_special_is_not_reported_as_deleted() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("b", "1");
    ws.save();
    ws.remove("a");
    make_fifo(&ws, "a");
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.write("b", "2");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("b")]);
    assert_eq!(ws.open().show(&saved.id).unwrap().changes.len(), 1);
    ws.remove("a");
    ws.write("a", "2");
    let back = ws.save();
    assert_eq!(ws.paths_in_store(&back.id), ["a", "b"]);
}

#[test]
fn a_directory_with_only_a_special_file_is_not_an_empty_directory() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.mkdir("run");
    make_fifo(&ws, "run/pipe");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("a")]);
}

#[test]
fn rules_and_settings_that_are_special_files_do_not_block() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    make_fifo(&ws, ".gitignore");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["a"]);
    make_fifo(&ws, "backtrail.toml");
    let refused = Settings::default().with_workspace(&ws.root()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Settings);
    assert!(refused.to_string().contains("it is not a regular file"), "{refused}");
}

/// Rules that exclude secrets must apply even if workspaces share them through a link.
#[test]
fn settings_behind_a_link_apply() {
    let ws = TestWorkspace::new();
    ws.write("secret", "1");
    fs::write(ws.outside().join("shared.toml"), "[scan]\nexclude = [\"secret\"]\n").unwrap();
    ws.symlink(ws.outside().join("shared.toml").to_str().unwrap(), "backtrail.toml");
    assert_eq!(ws.paths_in_store(&ws.save().id), ["backtrail.toml"]);
    ws.remove("backtrail.toml");
    ws.write("rules/own.toml", "[scan]\nexclude = [\"secret\"]\n");
    ws.symlink("rules/own.toml", "backtrail.toml");
    assert_eq!(ws.paths_in_store(&ws.save().id), ["backtrail.toml", "rules/own.toml"]);
}

#[test]
fn a_settings_link_that_leads_to_no_file_is_an_error_and_does_not_block() {
    let ws = TestWorkspace::new();
    ws.mkdir("d");
    make_fifo(&ws, "pipe");
    for (target, problem) in [
        ("missing", "it is a symbolic link to a file that does not exist"),
        ("d", "it is a symbolic link to a directory"),
        ("pipe", "it is a symbolic link to something that is not a regular file"),
        ("/dev/zero", "it is a symbolic link to something that is not a regular file"),
        ("backtrail.toml", "it is a symbolic link to a file that does not exist"),
    ] {
        ws.symlink(target, "backtrail.toml");
        let refused = Settings::default().with_workspace(&ws.root()).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Settings, "{target}");
        assert!(refused.to_string().ends_with(problem), "{target}: {refused}");
        ws.remove("backtrail.toml");
    }
}

/// A workspace that comes from a stranger may contain a link to a private file of the user. No message may quote that
/// file.
#[test]
fn the_target_of_a_settings_link_is_not_quoted() {
    let ws = TestWorkspace::new();
    fs::write(ws.outside().join("key"), "-----BEGIN KEY-----\nhunter2\n").unwrap();
    ws.symlink(ws.outside().join("key").to_str().unwrap(), "backtrail.toml");
    let refused = Settings::default().with_workspace(&ws.root()).unwrap_err().to_string();
    assert!(refused.contains("backtrail.toml: line 1: "), "{refused}");
    assert!(!refused.contains("BEGIN") && !refused.contains("hunter2"), "{refused}");
}

/// Creates device nodes. Prints the reason and returns `false` if that is not allowed.
fn make_devices(ws: &TestWorkspace) -> bool {
    let nodes =
        [("d/null", "c", "1", "3"), ("d/zero", "c", "1", "5"), ("tty", "c", "4", "1"), ("disk", "b", "7", "99")];
    nodes.into_iter().all(|(name, kind, major, minor)| {
        let made = Command::new("mknod").arg(ws.path(name)).args([kind, major, minor]).output().unwrap();
        if !made.status.success() {
            println!("not tried: mknod: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        made.status.success()
    })
}

/// Runs `work` with a time limit, because an operation that opens a FIFO waits for ever.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        sender.send(()).unwrap();
    });
    match receiver.recv_timeout(std::time::Duration::from_secs(60)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the operation waits for a special file"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn devices_are_skipped_and_stay_where_they_are() {
    within_a_minute(|| {
        let ws = TestWorkspace::new();
        ws.write("d/a", "1");
        ws.write("b", "1");
        let one = ws.save();
        if !make_devices(&ws) {
            return;
        }
        ws.write("d/a", "2");
        let saved = ws.save_with(&SaveRequest::default());
        assert_eq!(saved.skipped.len(), 4, "{:?}", saved.skipped);
        assert!(saved.skipped.iter().all(|skipped| skipped.reason == Reason::Special));
        assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["b", "d/a"]);
        ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        assert_eq!(ws.read("d/a").unwrap(), b"1");
        for name in ["d/null", "d/zero", "tty", "disk"] {
            assert_eq!(ws.manifest().0[name.as_bytes()], Found::Special, "{name}");
        }
        ws.assert_store_is_sound();
    });
}

#[test]
fn a_special_file_in_the_way_is_a_conflict_and_blocks_nothing() {
    within_a_minute(|| {
        let ws = TestWorkspace::new();
        for name in ["a", "d/b", "e/c"] {
            ws.write(name, "1");
        }
        let one = ws.save();
        for name in ["a", "d/b", "e"] {
            ws.remove(name);
            make_fifo(&ws, name);
        }
        let _socket = UnixListener::bind(ws.path("socket")).unwrap();
        let before = ws.manifest();
        let workspace = ws.open();
        assert_eq!(workspace.status(None).unwrap().changes, [], "special files are not reported as deleted");
        workspace.diff(Some(one.id), None, &Scope::Whole).unwrap();
        let error = workspace.restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
        before.assert_same(&ws.manifest(), "a refused restore");
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(one.id) };
        let outcome = workspace.restore(&request, ws.now()).unwrap();
        assert_eq!(outcome.conflicts.len(), 3, "{:?}", outcome.conflicts);
        before.assert_same(&ws.manifest(), "a restore that skips them");
        workspace.verify().unwrap();
    });
}
