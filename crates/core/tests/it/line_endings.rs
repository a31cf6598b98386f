//! Files are captured byte for byte: git attributes and git configuration have no effect.

use backtrail_testkit::{Found, TestWorkspace, blob_id};

const CONTENTS: [(&str, &[u8]); 9] = [
    ("lf", b"a\nb\n"),
    ("crlf", b"a\r\nb\r\n"),
    ("mixed", b"a\r\nb\nc\r"),
    ("cr", b"a\rb\r"),
    ("bom", b"\xef\xbb\xbfa\r\n"),
    ("utf16", b"\xff\xfea\0\r\0\n\0"),
    ("ident", b"$Id$ $Id: 0123456789 $\n"),
    ("latin", b"\xe9\r\n"),
    ("pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"),
];

#[track_caller]
fn assert_bytes_are_kept(ws: &TestWorkspace, what: &str) {
    for (name, bytes) in CONTENTS {
        ws.write(format!("{name}.txt"), bytes);
    }
    let saved = ws.save();
    let held: Vec<_> = ws.tree_in_store(&saved.id).into_iter().map(|(path, _, id)| (path, id)).collect();
    for (path, found) in ws.manifest().0 {
        if let Found::File(_, bytes) = found {
            let name = String::from_utf8_lossy(&path).into_owned();
            assert!(held.contains(&(path, blob_id(&bytes))), "{what}: {name} is not stored byte for byte");
        }
    }
    assert_eq!(ws.open().status(None).unwrap().changes, [], "{what}");
}

#[test]
fn git_attributes_do_not_change_captured_bytes() {
    let attributes = [
        "* text=auto\n",
        "* text eol=crlf\n",
        "* text eol=lf\n",
        "* ident\n",
        "* working-tree-encoding=UTF-16\n",
        "* filter=lfs diff=lfs merge=lfs -text\n",
        "* filter=missing\n",
        "* export-ignore\n",
        "* binary\n",
    ];
    for text in attributes {
        let ws = TestWorkspace::new();
        ws.write(".gitattributes", text);
        ws.git(&["init", "-q"]);
        ws.git(&["config", "filter.lfs.required", "true"]);
        ws.git(&["config", "filter.lfs.clean", "no-such-program"]);
        assert_bytes_are_kept(&ws, text);
    }
}

#[test]
fn git_configuration_does_not_change_captured_bytes() {
    let settings: [&[(&str, &str)]; 4] = [
        &[("core.autocrlf", "true"), ("core.safecrlf", "true")],
        &[("core.autocrlf", "input")],
        &[("core.eol", "crlf")],
        &[
            ("core.fileMode", "false"),
            ("core.symlinks", "false"),
            ("core.ignoreCase", "true"),
            ("core.precomposeUnicode", "true"),
        ],
    ];
    for pairs in settings {
        let ws = TestWorkspace::new();
        ws.git(&["init", "-q"]);
        let mut global = String::new();
        for (key, value) in pairs {
            ws.git(&["config", key, value]);
            let (section, name) = key.split_once('.').unwrap();
            global.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
        }
        std::fs::write(ws.home().join(".gitconfig"), global).unwrap();
        ws.write_mode("tool", "#!/bin/sh\n", 0o755);
        assert_bytes_are_kept(&ws, &format!("{pairs:?}"));
        let tool = ws.tree_in_store(&ws.open().current().unwrap().unwrap());
        assert!(tool.iter().any(|(path, mode, _)| path == b"tool" && mode == "100755"), "{pairs:?}");
    }
}

#[test]
fn a_change_of_only_line_endings_is_a_change() {
    let ws = TestWorkspace::new();
    ws.write(".gitattributes", "* text=auto\n");
    ws.write("a.txt", "one\ntwo\n");
    ws.git_init();
    ws.save();
    ws.write("a.txt", "one\r\ntwo\r\n");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("a.txt")]);
    assert_eq!((saved.insertions, saved.deletions), (2, 2));
}

#[test]
fn a_clean_checkout_with_converted_line_endings_is_not_dirty() {
    let ws = TestWorkspace::new();
    ws.write(".gitattributes", "* text eol=crlf\n");
    ws.write("a.txt", "one\r\ntwo\r\n");
    ws.git_init();
    assert_eq!(ws.save().git.unwrap().dirty_files, []);
}
