//! Names are bytes: every file is captured under its exact name.

use backtrail::{ListFilter, Reason, SaveRequest};
use backtrail_testkit::{Found, TestWorkspace, blob_id};

/// Checks that the store has everything on disk, byte for byte.
#[track_caller]
fn assert_all_captured(ws: &TestWorkspace) {
    let saved = ws.save();
    let expected: Vec<(Vec<u8>, String)> = ws
        .manifest()
        .0
        .into_iter()
        .filter_map(|(path, found)| match found {
            Found::File(_, bytes) => Some((path, blob_id(&bytes))),
            Found::Link(target) => Some((path, blob_id(&target))),
            _ => None,
        })
        .collect();
    let found: Vec<_> = ws.tree_in_store(&saved.id).into_iter().map(|(path, _, id)| (path, id)).collect();
    assert_eq!(found, expected);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.assert_store_is_sound();
}

#[test]
fn names_with_control_characters_quotes_and_backslashes_are_captured() {
    let ws = TestWorkspace::new();
    for name in
        ["new\nline", "tab\t", "quo\"te", "back\\slash", "\u{1}\u{7f}", " ", "...", "-rf", "~", "#x", "$(x)", "a:b"]
    {
        ws.write(name, name);
        ws.write(format!("directory {name}/{name}"), name);
    }
    assert_all_captured(&ws);
}

#[test]
fn names_that_are_not_utf8_are_captured() {
    let ws = TestWorkspace::new();
    ws.write(b"\xff", "1");
    ws.write(b"d\xfe/\xc3\x28", "2");
    ws.symlink(b"\xff", b"link\xfd");
    assert_all_captured(&ws);
    let listed = ws.open().list(&ListFilter::default()).unwrap();
    let paths: Vec<&[u8]> = listed[0].files_changed.iter().map(|path| path.as_bytes()).collect();
    assert_eq!(paths, [&b"d\xfe/\xc3\x28"[..], b"link\xfd", b"\xff"], "the record lost bytes of a name");
    let only = ListFilter { path: Some(ws.workspace_path(b"d\xfe")), ..ListFilter::default() };
    assert_eq!(ws.open().list(&only).unwrap().len(), 1);
}

#[test]
fn names_in_other_scripts_and_both_unicode_forms_are_captured() {
    let ws = TestWorkspace::new();
    for name in ["日本語.txt", "中文", "Ünïcödé", "🎉🎊", "עברית", "e\u{301}", "\u{e9}", "ﬁ", "fi", "I", "ı", "İ"]
    {
        ws.write(name, name);
    }
    assert_all_captured(&ws);
    ws.write("日本語.txt", "2");
    ws.write("中文", "2");
    assert_eq!(ws.save().files_changed.len(), 2);
}

#[test]
fn names_that_differ_only_in_case_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("README", "1");
    ws.write("Readme", "2");
    ws.write("d/x", "3");
    ws.write("D/x", "4");
    assert_all_captured(&ws);
    ws.rename("README", "readme");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("README"), ws.workspace_path("readme")]);
}

#[test]
fn names_that_git_sorts_in_its_own_way_are_captured() {
    let ws = TestWorkspace::new();
    for name in ["a", "a.b", "a-", "a0", "b/x", "b.c", "b-", "b0", "foo", "foo.txt", "foo-bar/x", "foo0/x"] {
        ws.write(name, name);
    }
    assert_all_captured(&ws);
    ws.remove("a");
    ws.write("a/x", "1");
    ws.remove("b");
    ws.write("b", "1");
    assert_all_captured(&ws);
}

#[test]
fn the_longest_names_and_deep_paths_are_captured() {
    let ws = TestWorkspace::new();
    let longest = "n".repeat(255);
    ws.write(&longest, "1");
    ws.write(format!("{longest}2/x").replacen("nn", "", 1), "2");
    let deep = vec!["d"; 300].join("/");
    ws.write(format!("{deep}/x"), "3");
    assert_all_captured(&ws);
}

#[test]
fn a_path_longer_than_the_system_limit_is_captured() {
    let ws = TestWorkspace::new();
    let part = "p".repeat(200);
    // Created from the bottom up, so that each rename uses only a short path.
    ws.write("bottom/file", "deep\n");
    for _ in 0..25 {
        ws.mkdir("next");
        ws.rename("bottom", format!("next/{part}"));
        ws.rename("next", "bottom");
    }
    let saved = ws.save();
    let paths = ws.paths_in_store(&saved.id);
    assert_eq!(paths.len(), 1);
    assert!(paths[0].len() > 4_096 && paths[0].ends_with("/file"), "{} bytes", paths[0].len());
    assert!(ws.is_in_store(b"deep\n"));
    assert!(saved.complete);
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    assert!(!ws.save_with(&SaveRequest::default()).created);
}

#[test]
fn names_that_some_system_reads_as_dot_git_are_skipped_and_reported() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let bad = [".GIT/config", ".Git", "git~1/x", "d/.git.", "d/.git ", "d/.g\u{200c}it", "e/.git::$INDEX_ALLOCATION/x"];
    for name in bad {
        ws.write(name, "1");
    }
    for good in [".gitmodules", ".gitattributes", ".github/x", "git", "x.git", ".gitx", "GIT~2"] {
        ws.write(good, "1");
    }
    let saved = ws.save_with(&SaveRequest::default());
    let mut skipped: Vec<_> =
        saved.skipped.iter().map(|skipped| (skipped.path.to_text().into_owned(), skipped.reason)).collect();
    skipped.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<_> =
        [".GIT", ".Git", "d/.git ", "d/.git.", "d/.g\u{200c}it", "e/.git::$INDEX_ALLOCATION", "git~1"]
            .map(|name| (name.to_owned(), Reason::Name))
            .to_vec();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(skipped, expected);
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id).len(), 8);
    assert!(saved.checkpoint.complete);
    ws.assert_store_is_sound();
}

#[test]
fn a_file_and_a_directory_that_swap_names_are_captured() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("b/x", "2");
    assert_all_captured(&ws);
    ws.rename("a", "c");
    ws.rename("b", "a");
    ws.rename("c", "b");
    assert_all_captured(&ws);
}

#[test]
fn many_names_in_one_directory_are_captured() {
    let ws = TestWorkspace::new();
    for number in 0..1_500 {
        ws.write(format!("many/{number}"), "same\n");
    }
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id).len(), 1_500);
    assert_eq!(saved.files_changed.len(), 1_500, "more changed paths than a record holds");
    let only = ListFilter { path: Some(ws.workspace_path("many/1499")), ..ListFilter::default() };
    assert_eq!(ws.open().list(&only).unwrap().len(), 1);
    assert_eq!(
        ws.store_git(&["cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"])
            .split(|byte| *byte == b'\n')
            .filter(|line| *line == b"blob")
            .count(),
        1 + count_state_blobs(&ws, &saved.id)
    );
}

/// Returns the number of blobs in the checkpoint's own state.
fn count_state_blobs(ws: &TestWorkspace, id: &backtrail::CheckpointId) -> usize {
    let listing = ws.store_git(&["ls-tree", "-r", &format!("{id}^1")]);
    listing.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
}

/// Regression: `git fsck` reads `.git` followed by invalid text as `.git`, so it reported a store with such a name as
/// damaged.
#[test]
fn dot_git_followed_by_invalid_text_is_skipped() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let odd: [&[u8]; 3] = [b".git\xff", b".git\xc5\xc5:x", ".git\u{ffff}".as_bytes()];
    for name in odd {
        ws.write(name, "1");
    }
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a"]);
    assert_eq!(saved.skipped.len(), odd.len(), "{:?}", saved.skipped);
    assert!(saved.skipped.iter().all(|skipped| skipped.reason == Reason::Name));
    ws.assert_store_is_sound();
}
