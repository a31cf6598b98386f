//! The store: a private git repository that plain git accepts, with few files, and robust against damage.

use std::{
    collections::BTreeSet,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use backtrail::{Author, CheckpointId, Context, ErrorCode, Kind, ListFilter, Origin, SaveRequest};
use backtrail_testkit::{Found, TestWorkspace, blob_id, git, git_directory_bytes, git_output};

fn packs(ws: &TestWorkspace) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ws.store().join("objects/pack")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut packs: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "pack")).collect();
    packs.sort();
    packs
}

fn listed(ws: &TestWorkspace) -> Vec<CheckpointId> {
    ws.open().list(&ListFilter::default()).unwrap().into_iter().map(|checkpoint| checkpoint.id).collect()
}

/// Unpacks every object into its own file, so that a test can remove a single one.
fn unpack(ws: &TestWorkspace) {
    let store = ws.store();
    let aside = ws.base().join("packs");
    std::fs::rename(store.join("objects/pack"), &aside).unwrap();
    std::fs::create_dir(store.join("objects/pack")).unwrap();
    for entry in std::fs::read_dir(aside).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pack") {
            let output = std::process::Command::new("git")
                .args(["unpack-objects", "-q"])
                .current_dir(&store)
                .stdin(std::fs::File::open(path).unwrap())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

fn loose(ws: &TestWorkspace, id: &str) -> PathBuf {
    ws.store().join("objects").join(&id[..2]).join(&id[2..])
}

#[test]
fn plain_git_accepts_the_store_as_a_repository() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write_mode("d/x", "1\n", 0o700);
    ws.mkdir("empty");
    let first = ws.save();
    ws.write("a", "2\n");
    let second = ws.save();
    ws.assert_store_is_sound();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(text(ws.store_git(&["show", &format!("{}:a", first.id)])), "1\n");
    let refs = text(ws.store_git(&["for-each-ref", "--format=%(objectname)"]));
    let refs: BTreeSet<&str> = refs.lines().collect();
    assert_eq!(refs, BTreeSet::from([first.id.to_string().as_str(), second.id.to_string().as_str()]));
    let clone = ws.outside().join("clone");
    git(&ws.base(), &["clone", "-q", "--mirror", ws.store().to_str().unwrap(), clone.to_str().unwrap()]);
    assert_eq!(text(git(&clone, &["show", &format!("{}:a", second.id)])), "2\n");
}

#[test]
fn a_save_makes_one_pack_and_no_loose_object() {
    let ws = TestWorkspace::new();
    for number in 1..=5 {
        ws.write(format!("d{number}/a"), format!("{number}"));
        ws.write("same", format!("{number}"));
        ws.save();
        assert_eq!(packs(&ws).len(), number);
    }
    let names: Vec<_> =
        std::fs::read_dir(ws.store().join("objects")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "pack" || name == "info"), "{names:?}");
}

#[test]
fn a_save_without_a_change_writes_nothing_but_its_cache() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("d/b", "1");
    ws.save();
    let read_store = || {
        let mut held = git_directory_bytes(&ws.store());
        held.0.remove(&b"backtrail/stat-cache"[..]);
        held
    };
    let before = read_store();
    for _ in 0..3 {
        assert!(!ws.save_with(&SaveRequest::default()).created);
    }
    before.assert_same(&read_store(), "the store");
    std::fs::remove_file(ws.store().join("backtrail/stat-cache")).unwrap();
    assert!(!ws.save_with(&SaveRequest::default()).created);
    before.assert_same(&read_store(), "the store, saved without a cache");
}

#[test]
fn contents_that_the_store_has_are_not_stored_again() {
    let ws = TestWorkspace::new();
    ws.write("a", "unique\n");
    ws.save();
    ws.rename("a", "moved/b");
    ws.save();
    ws.rename("moved/b", "a");
    ws.save();
    let id = blob_id(b"unique\n");
    let mut holders = 0;
    for pack in packs(&ws) {
        let listing = ws.store_git(&["verify-pack", "-v", pack.with_extension("idx").to_str().unwrap()]);
        holders += usize::from(String::from_utf8_lossy(&listing).contains(&id));
    }
    assert_eq!(holders, 1);
}

#[test]
fn the_number_of_files_stays_bounded_over_many_saves() {
    let ws = TestWorkspace::new();
    let mut ids = Vec::new();
    for number in 0..130 {
        ws.write("a", format!("{number}\n"));
        let request = SaveRequest { message: Some(format!("save {number}")), ..Default::default() };
        ids.push(ws.save_with(&request).checkpoint.id);
    }
    assert!(packs(&ws).len() < 60, "{} packs", packs(&ws).len());
    let loose_refs = std::fs::read_dir(ws.store().join("refs/checkpoints")).unwrap().count();
    assert!(loose_refs < 110, "{loose_refs} loose refs");
    assert!(ws.store().join("packed-refs").exists());
    ids.reverse();
    assert_eq!(listed(&ws), ids);
    let messages: Vec<String> =
        ws.open().list(&ListFilter::default()).unwrap().into_iter().map(|checkpoint| checkpoint.message).collect();
    assert_eq!(messages.first().map(String::as_str), Some("save 129"));
    assert_eq!(messages.last().map(String::as_str), Some("save 0"));
    let refs = ws.store_git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(String::from_utf8_lossy(&refs).lines().count(), 130);
    assert_eq!(ws.open().verify().unwrap().checkpoints, 130);
    ws.assert_store_is_sound();
    for (position, id) in ids.iter().enumerate().step_by(20) {
        let content = ws.store_git(&["show", &format!("{id}:a")]);
        assert_eq!(String::from_utf8_lossy(&content), format!("{}\n", 129 - position));
    }
}

#[test]
fn other_users_may_not_read_the_store() {
    let ws = TestWorkspace::new();
    for number in 0..3 {
        ws.write("a", format!("{number}"));
        ws.save();
    }
    let check = |path: &Path, mode: u32| assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    let store = ws.store();
    check(&store, std::fs::metadata(&store).unwrap().permissions().mode() & 0o7777);
    for (path, found) in git_directory_bytes(&store).0 {
        let path = PathBuf::from(String::from_utf8(path).unwrap());
        match found {
            Found::File(mode, _) | Found::Directory(mode) => check(&path, mode),
            _ => {}
        }
    }
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o755)).unwrap();
    ws.write("a", "x");
    ws.save();
    check(&store, std::fs::metadata(&store).unwrap().permissions().mode() & 0o7777);
}

#[test]
fn files_that_plain_git_needs_are_repaired() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let damages: [(&str, Option<&[u8]>); 6] = [
        ("config", Some(b"[[[garbage")),
        ("config", None),
        ("HEAD", Some(b"\0\0")),
        ("HEAD", Some(b"")),
        ("HEAD", None),
        ("config", Some(b"\xff\xfe")),
    ];
    for (number, (name, bytes)) in damages.into_iter().enumerate() {
        let path = ws.store().join(name);
        match bytes {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        assert_eq!(listed(&ws).len(), number + 1, "reading does not need {name}");
        ws.write("a", format!("after {number}"));
        ws.save();
        let output = git_output(&ws.store(), &["fsck", "--full", "--strict"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} was {:?}: {said}", bytes.map(String::from_utf8_lossy));
    }
}

#[test]
fn temporary_files_of_a_dead_process_are_removed() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let before = git_directory_bytes(&ws.store()).0.len();
    // A name like those of the store's own temporary files.
    for place in ["objects/pack", "refs/checkpoints", "backtrail", "."] {
        std::fs::write(ws.store().join(place).join(".backtrail-tmp-1-2-left-behind"), "half").unwrap();
    }
    assert_eq!(listed(&ws).len(), 1);
    ws.save_with(&SaveRequest::default());
    assert_eq!(git_directory_bytes(&ws.store()).0.len(), before);
    ws.assert_store_is_sound();
}

#[test]
fn the_first_thread_checkpoint_keeps_older_programs_from_writing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let format = ws.store().join("backtrail/format");
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "backtrail store 1\nread: base\nwrite: base\n");
    for contents in ["2", "3"] {
        ws.write("a", contents);
        let thread = SaveRequest { kind: Some(Kind::Thread), ..SaveRequest::default() };
        assert_eq!(ws.open().save(&thread, ws.now()).unwrap().checkpoint.kind, Kind::Thread);
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "backtrail store 1\nread: base\nwrite: base thread\n");
    }
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 3);
}

#[test]
fn a_store_of_a_newer_version_is_not_changed() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    ws.write("a", "2");
    let format = ws.store().join("backtrail/format");
    std::fs::write(&format, "backtrail store 1\nread: base\nwrite: base future\n").unwrap();
    let before = git_directory_bytes(&ws.store());
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1, "it can be read");
    assert_eq!(ws.open().status(None).unwrap().changes.len(), 1);
    let error = ws.open().save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreTooNew);
    assert!(error.to_string().contains("future"), "{error}");
    before.assert_same(&git_directory_bytes(&ws.store()), "the store");
    std::fs::write(&format, "backtrail store 2\nread: base future\nwrite: base\n").unwrap();
    for error in [
        ws.open().list(&ListFilter::default()).map(drop).unwrap_err(),
        ws.open().status(None).map(drop).unwrap_err(),
        ws.open().verify().map(drop).unwrap_err(),
        ws.open().save(&SaveRequest::default(), ws.now()).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::StoreTooNew);
    }
    std::fs::write(&format, b"\0garbage").unwrap();
    let error = ws.open().list(&ListFilter::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreDamaged);
}

#[test]
fn a_lost_or_damaged_timeline_is_rebuilt() {
    let ws = TestWorkspace::new();
    for number in 0..6 {
        ws.write("a", format!("{number}"));
        let request = SaveRequest {
            name: Some(format!("n{number}")),
            metadata: serde_json::Map::from_iter([("k".to_owned(), serde_json::json!({"x": [1, null]}))]),
            origin: Origin { step: Some(number), ..Origin::default() },
            ..Default::default()
        };
        ws.save_with(&request);
    }
    let expected = ws.open().list(&ListFilter::default()).unwrap();
    let path = ws.store().join("backtrail/timeline");
    let sound = std::fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    let middle = sound.len() / 2;
    flipped[middle] ^= 4;
    let damages: [(&str, Option<Vec<u8>>); 6] = [
        ("gone", None),
        ("empty", Some(Vec::new())),
        ("garbage", Some(b"\0\xff garbage\n\n".repeat(40))),
        ("flipped", Some(flipped)),
        ("cut", Some(sound[..middle].to_vec())),
        ("twice", Some([sound.as_slice(), &sound].concat())),
    ];
    for (what, bytes) in damages {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), expected, "{what}");
        assert_eq!(ws.open().current().unwrap(), Some(expected[0].id), "{what}");
        assert!(!ws.save_with(&SaveRequest::default()).created, "{what}");
        assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), expected, "{what}, after a save");
        ws.assert_store_is_sound();
    }
}

#[test]
fn a_missing_object_damages_only_the_checkpoints_that_need_it() {
    let ws = TestWorkspace::new();
    ws.write("always", "always\n");
    let first = ws.save();
    ws.write("d/once", "once\n");
    let second = ws.save();
    ws.remove("d");
    let third = ws.save();
    unpack(&ws);
    ws.assert_store_is_sound();
    let lost = loose(&ws, &blob_id(b"once\n"));
    let bytes = std::fs::read(&lost).unwrap();
    std::fs::remove_file(&lost).unwrap();
    let verified = ws.open().verify().unwrap();
    let damaged: Vec<&str> = verified.damaged.iter().map(|damage| damage.id.as_str()).collect();
    assert_eq!(damaged, [second.id.to_string()]);
    assert_eq!(verified.checkpoints, 3);
    // The others work as before, and so does saving.
    assert_eq!(listed(&ws), [third.id, second.id, first.id]);
    ws.write("always", "changed\n");
    let fourth = ws.save();
    assert_eq!(fourth.parent, Some(third.id));
    let damaged: Vec<String> = ws.open().verify().unwrap().damaged.into_iter().map(|damage| damage.id).collect();
    assert_eq!(damaged, [second.id.to_string()]);
    std::fs::write(&lost, bytes).unwrap();
    ws.assert_store_is_sound();
}

#[test]
fn an_object_with_wrong_bytes_is_damage() {
    let ws = TestWorkspace::new();
    ws.write("a", "one\n");
    let first = ws.save();
    ws.write("a", "two\n");
    ws.save();
    unpack(&ws);
    let (one, two) = (loose(&ws, &blob_id(b"one\n")), loose(&ws, &blob_id(b"two\n")));
    std::fs::remove_file(&one).unwrap();
    std::fs::copy(two, one).unwrap();
    let damaged: Vec<String> = ws.open().verify().unwrap().damaged.into_iter().map(|damage| damage.id).collect();
    assert_eq!(damaged, [first.id.to_string()]);
    let path = ws.workspace_path("a");
    let outcome = ws.open().cat(&first.id, &path, &mut |_| Ok(()));
    assert_eq!(outcome.unwrap_err().code(), ErrorCode::StoreDamaged);
}

#[test]
fn a_lost_commit_damages_only_its_checkpoint() {
    let ws = TestWorkspace::new();
    let mut ids = Vec::new();
    for number in 0..3 {
        ws.write("a", format!("{number}"));
        ws.save();
        ids.push(ws.open().current().unwrap().unwrap());
    }
    unpack(&ws);
    std::fs::remove_file(loose(&ws, &ids[1].to_string())).unwrap();
    std::fs::remove_file(ws.store().join("backtrail/timeline")).unwrap();
    let damaged: Vec<String> = ws.open().verify().unwrap().damaged.into_iter().map(|damage| damage.id).collect();
    assert_eq!(damaged, [ids[1].to_string()]);
    assert_eq!(listed(&ws), [ids[2], ids[0]], "unreadable checkpoints are not listed, the others are");
    ws.write("a", "more");
    ws.save();
}

#[test]
fn a_flipped_bit_in_a_pack_is_always_detected() {
    let ws = TestWorkspace::new();
    ws.write("a", "some text that is long enough to be flipped somewhere\n");
    ws.save();
    ws.write("b", "other\n");
    ws.save();
    let pack = packs(&ws).remove(0);
    let sound = std::fs::read(&pack).unwrap();
    let mode = std::fs::metadata(&pack).unwrap().permissions();
    std::fs::set_permissions(&pack, std::fs::Permissions::from_mode(0o600)).unwrap();
    for position in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[position] ^= 1 << (position % 8);
        std::fs::write(&pack, bytes).unwrap();
        let verified = ws.open().verify();
        assert!(verified.is_err() || !verified.unwrap().damaged.is_empty(), "byte {position} of {}", sound.len());
    }
    std::fs::write(&pack, &sound).unwrap();
    std::fs::set_permissions(&pack, mode).unwrap();
    ws.assert_store_is_sound();
}

#[test]
fn a_ref_that_names_another_checkpoint_is_damage() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    ws.write("a", "2");
    let second = ws.save();
    let path = ws.store().join("refs/checkpoints").join(first.id.to_string());
    std::fs::write(&path, format!("{}\n", second.id)).unwrap();
    let damaged: Vec<String> = ws.open().verify().unwrap().damaged.into_iter().map(|damage| damage.id).collect();
    assert_eq!(damaged, [first.id.to_string()]);
}

#[test]
fn a_gc_by_plain_git_loses_nothing() {
    let ws = TestWorkspace::new();
    for number in 0..12 {
        ws.write("a", "line\n".repeat(100 + number));
        ws.write_mode(format!("d{number}/x"), format!("{number}"), 0o600);
        ws.write(".gitignore", "*.log\n");
        ws.save();
    }
    let expected = ws.open().list(&ListFilter::default()).unwrap();
    ws.store_git(&["reflog", "expire", "--expire=now", "--all"]);
    ws.store_git(&["gc", "-q", "--prune=now", "--aggressive"]);
    assert_eq!(packs(&ws).len(), 1);
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap(), expected);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.assert_store_is_sound();
    for number in 0..60 {
        ws.write("a", format!("{number}"));
        ws.save();
    }
    ws.assert_store_is_sound();
    assert_eq!(listed(&ws).len(), 72);
}

#[test]
fn all_values_of_a_save_request_are_kept() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let request = SaveRequest {
        message: Some("two\nlines \u{1f600}".into()),
        name: Some("日本".into()),
        description: Some("long\n\ntext".into()),
        kind: Some(Kind::Feature),
        context: Some(Context { session_number: Some(2), token_usage: Some(9_999_999_999) }),
        metadata: serde_json::Map::from_iter([("deep".to_owned(), serde_json::json!({"a": [1.5, "x", null, {}]}))]),
        attachments: vec![("log".into(), b"\0\xff".to_vec()), ("empty".into(), Vec::new())],
        origin: Origin {
            step: Some(u64::MAX),
            session: Some("s 1".into()),
            agent: Some("agent".into()),
            turn: Some(0),
            prompt: Some("do\tit".into()),
            tool: Some("Bash".into()),
            command: Some("make".into()),
            author: Some(Author::Other),
        },
        ..Default::default()
    };
    let saved = ws.save_with(&request).checkpoint;
    for held in [ws.open().get(&saved.id).unwrap(), {
        std::fs::remove_file(ws.store().join("backtrail/timeline")).unwrap();
        ws.open().get(&saved.id).unwrap()
    }] {
        assert_eq!(held, saved);
        assert_eq!(Some(held.message), request.message);
        assert_eq!(held.name, request.name);
        assert_eq!(held.description, request.description);
        assert_eq!(Some(held.kind), request.kind);
        assert_eq!((held.origin.step, held.origin.turn), (request.origin.step, request.origin.turn));
        assert_eq!(
            (held.origin.session, held.origin.agent),
            (request.origin.session.clone(), request.origin.agent.clone())
        );
        assert_eq!(
            (held.origin.prompt, held.origin.tool),
            (request.origin.prompt.clone(), request.origin.tool.clone())
        );
        assert_eq!(held.context, request.context);
        assert_eq!(held.metadata, request.metadata);
        let sizes: Vec<_> = held.attachments.iter().map(|held| (held.name.as_str(), held.bytes)).collect();
        assert_eq!(sizes, [("log", 2), ("empty", 0)]);
    }
    assert_eq!(ws.open().attachment(&saved.id, "log").unwrap(), b"\0\xff");
    assert_eq!(ws.open().attachment(&saved.id, "empty").unwrap(), b"");
    let unknown = ws.open().attachment(&saved.id, "none").unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::UnknownPath);
    ws.assert_store_is_sound();
}

#[test]
fn an_empty_workspace_can_be_saved() {
    let ws = TestWorkspace::new();
    let saved = ws.save_with(&SaveRequest::default());
    assert!(saved.created && saved.is_first);
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), [""; 0]);
    assert!(!ws.save_with(&SaveRequest::default()).created);
    ws.assert_store_is_sound();
}

#[test]
fn an_unchanged_workspace_gets_a_new_checkpoint_only_if_the_request_adds_something() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let save = |request: SaveRequest| ws.save_with(&request).created;
    assert!(save(SaveRequest { kind: Some(Kind::Step), ..Default::default() }));
    assert!(!save(SaveRequest { kind: Some(Kind::Step), message: Some("again".into()), ..Default::default() }));
    assert!(!save(SaveRequest { kind: Some(Kind::Session), ..Default::default() }));
    assert!(save(SaveRequest::default()), "manual is kept longer than step");
    assert!(!save(SaveRequest::default()));
    assert!(save(SaveRequest { name: Some("named".into()), ..Default::default() }));
    assert!(save(SaveRequest { attachments: vec![("x".into(), Vec::new())], ..Default::default() }));
    assert!(save(SaveRequest { allow_empty: true, ..Default::default() }));
    let refused = ws.open().save(&SaveRequest { kind: Some(Kind::Safety), ..Default::default() }, ws.now());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Usage);
}

#[test]
fn a_directory_with_other_files_does_not_become_a_store() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    std::fs::write(ws.outside().join("precious"), "1").unwrap();
    let location = backtrail::locate(&backtrail::Start::At(ws.root()), &ws.stores(), Some(&ws.outside())).unwrap();
    let workspace = backtrail::Workspace::new(location, backtrail::Options::default());
    let before = git_directory_bytes(&ws.outside());
    let error = workspace.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage);
    before.assert_same(&git_directory_bytes(&ws.outside()), "the other directory");
}

#[test]
fn two_workspaces_do_not_share_a_store() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    let other = ws.outside().join("other");
    std::fs::create_dir(&other).unwrap();
    let location = backtrail::locate(&backtrail::Start::At(other), &ws.stores(), Some(&ws.store())).unwrap();
    let workspace = backtrail::Workspace::new(location, backtrail::Options::default());
    let error = workspace.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert!(matches!(error, backtrail::Error::StoreOfAnother { .. }), "{error}");
    assert_eq!(listed(&ws).len(), 1);
}

#[test]
fn reading_before_the_first_save_creates_no_store() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let workspace = ws.open();
    assert_eq!(workspace.list(&ListFilter::default()).unwrap(), []);
    assert_eq!(workspace.status(None).unwrap().changes.len(), 1);
    assert_eq!(workspace.verify().unwrap().checkpoints, 0);
    assert_eq!(workspace.current().unwrap(), None);
    assert!(!workspace.has_store().unwrap());
    assert!(!ws.stores().exists());
}
