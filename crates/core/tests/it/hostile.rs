//! Handmade trees, records and journals that try to escape the workspace: none does, and nothing panics.

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::{Command, Stdio},
};

use backtrail::{CheckpointId, ListFilter, RestoreRequest, SaveRequest, Scope, Way};
use backtrail_testkit::{Manifest, TestWorkspace, git_directory_bytes, is_long};

/// Creates a workspace with a repository, and a file outside of it that no operation may touch.
fn workspace() -> TestWorkspace {
    let ws = TestWorkspace::in_memory();
    ws.write("file", "1\n");
    ws.write("dir/inner", "2\n");
    std::fs::write(ws.outside().join("precious"), "precious\n").unwrap();
    ws.git_init();
    ws.save();
    ws
}

/// Writes an object into the store as it is, even if it is invalid. Returns its id.
fn write_object(ws: &TestWorkspace, kind: &str, bytes: &[u8]) -> String {
    let mut child = Command::new("git")
        .args(["hash-object", "--literally", "-w", "--stdin", "-t", kind])
        .current_dir(ws.store())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn tree(ws: &TestWorkspace, entries: &[(&str, &[u8], &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
    }
    write_object(ws, "tree", &bytes)
}

pub(crate) const RECORD: &str = r#"{"v":1,"seq":90,"kind":"manual","time":1800000000000,"message":"m"}"#;

/// Publishes a checkpoint of this tree.
pub(crate) fn publish_checkpoint(ws: &TestWorkspace, tree: &str, record: &str) -> CheckpointId {
    let who = "Backtrail <backtrail@localhost> 1800000000 +0000";
    let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nm\n\nBacktrail-Record: {record}\n");
    let id = write_object(ws, "commit", text.as_bytes());
    std::fs::write(ws.store().join("refs/checkpoints").join(&id), format!("{id}\n")).unwrap();
    id.parse().unwrap()
}

/// Returns everything that must stay unchanged.
fn untouchable(ws: &TestWorkspace) -> [Manifest; 2] {
    [Manifest::of(&ws.outside()), git_directory_bytes(&ws.path(".git"))]
}

/// Runs every operation that reads a checkpoint or writes its files. Checks that nothing else changes.
fn use_checkpoint(ws: &TestWorkspace, id: CheckpointId, what: &str) {
    let before = untouchable(ws);
    let beside: Vec<_> = names(&ws.base());
    let used = catch_unwind(AssertUnwindSafe(|| {
        let workspace = ws.open();
        drop(workspace.list(&ListFilter::default()));
        drop(workspace.verify());
        drop(workspace.show(&id));
        drop(workspace.diff(Some(id), None, &Scope::Whole));
        drop(workspace.plan_restore(&RestoreRequest::whole(id)));
        drop(workspace.restore(&RestoreRequest::whole(id), ws.now()));
        let paths = Scope::of_paths(vec![ws.workspace_path("dir"), ws.workspace_path("file")]);
        drop(workspace.restore(&RestoreRequest { scope: paths, ..RestoreRequest::whole(id) }, ws.now()));
        let place = ws.base().join("exported");
        drop(workspace.export(&id, &place));
        if place.exists() {
            assert!(!place.join(".git").exists(), "{what}: exported a .git");
            remove(&place);
        }
        drop(workspace.undo(ws.now()));
    }));
    assert!(used.is_ok(), "{what}: an operation panicked");
    for (before, after) in before.iter().zip(untouchable(ws)) {
        before.assert_same(&after, what);
    }
    assert_eq!(beside, names(&ws.base()), "{what}: something is new beside the workspace");
    std::fs::remove_file(ws.store().join("refs/checkpoints").join(id.to_string())).ok();
}

#[expect(clippy::disallowed_methods, reason = "a test clears its own temporary tree")]
fn remove(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
}

fn names(directory: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Returns names that lead out of the workspace, or into a repository, on some system.
fn evil_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "..",
        ".",
        "",
        "/etc/backtrail-evil",
        "/",
        "a/b",
        "../outside/evil",
        "dir/../../outside/evil",
        "./x",
        "x/",
        ".git",
        ".GIT",
        ".Git",
        ".giT",
        "git~1",
        "GIT~1",
        "Git~2",
        "git~10",
        ".git ",
        ".git.",
        ".git. .",
        ".git...",
        ".git::$INDEX_ALLOCATION",
        ".git:$DATA",
        ".git:stream",
        ".git\\hooks",
        "..\\outside\\evil",
        "C:\\evil",
        "a\\b",
        "\\",
        ".g\u{200c}it",
        "\u{200d}.git",
        ".gi\u{200e}t",
        ".git\u{200f}",
        "\u{feff}.git",
        ".\u{202a}git",
        ".g\u{206a}it",
        ".git\u{2060}",
        ".GI\u{200b}T",
        ".git/config",
        ".git/hooks/post-commit",
        "CON",
        "nul",
        "aux.txt",
        "com1.log",
        "name.",
        "name ",
        "-rf",
        "--help",
        "\n",
        "a\nb",
        "\t",
        "\u{7f}",
        "\u{1b}[31m",
        ".gitmodules",
        ".gitattributes",
        ".gitignore",
        ".backtrail-1",
        ".backtrail-export",
        "backtrail.toml",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.extend([
        b"\xff\xfe".to_vec(),
        b".git\xe2\x80\x8c".to_vec(),
        vec![b'n'; 255],
        vec![b'n'; 256],
        vec![b'n'; 5000],
    ]);
    names
}

#[test]
fn no_hostile_tree_escapes_the_workspace() {
    let ws = workspace();
    let evil = write_object(&ws, "blob", b"evil\n");
    let link_out = write_object(&ws, "blob", ws.outside().to_str().unwrap().as_bytes());
    let below = tree(&ws, &[("100644", b"evil", &evil)]);
    let mut tried = 0;
    let mut try_tree = |entries: &[(&str, &[u8], &str)], what: String| {
        use_checkpoint(&ws, publish_checkpoint(&ws, &tree(&ws, entries), RECORD), &what);
        tried += 1;
    };
    for (number, name) in evil_names().into_iter().enumerate() {
        let shown = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
        let forms: [&[(&str, &[u8], &str)]; 3] =
            [&[("100644", &name, &evil)], &[("40000", &name, &below)], &[("120000", &name, &link_out)]];
        // All forms of each name in the long run, otherwise one.
        for (form, entries) in forms.into_iter().enumerate() {
            if is_long() || number % 3 == form || shown.starts_with("..") {
                try_tree(entries, format!("form {form} of {shown:?}"));
            }
        }
    }
    for mode in
        ["0", "100666", "104755", "777777", "160000", "140000", "60000", "20000", "10000", "40755", "1", "0100644"]
    {
        for id in [&evil, &below] {
            try_tree(&[(mode, b"x", id)], format!("mode {mode}"));
        }
    }
    let missing = "0123456789012345678901234567890123456789";
    let pairs: [&[(&str, &[u8], &str)]; 11] = [
        &[("100644", b"a", &evil), ("100644", b"a", &evil)],
        &[("120000", b"a", &link_out), ("40000", b"a", &below)],
        &[("40000", b"a", &below), ("120000", b"a", &link_out)],
        &[("100644", b"a", &evil), ("40000", b"a", &below)],
        &[("120000", b"dir", &link_out), ("100644", b"dir/evil", &evil)],
        &[("100644", b"z", &evil), ("100644", b"a", &evil)],
        &[("100644", b"x", missing)],
        &[("40000", b"x", missing)],
        &[("100644", b"x", &below)],
        &[("40000", b"x", &evil)],
        &[("120000", b"x", &below)],
    ];
    for (number, entries) in pairs.into_iter().enumerate() {
        try_tree(entries, format!("pair {number}"));
    }
    // Trees that are truncated in the middle of an entry, and bytes that are no tree.
    for bytes in [&b"100644 a"[..], b"100644 a\0short", b"\0\0\0", b"100644", b" a\0aaaaaaaaaaaaaaaaaaaa"] {
        let id = write_object(&ws, "tree", bytes);
        use_checkpoint(&ws, publish_checkpoint(&ws, &id, RECORD), &format!("tree {bytes:?}"));
        tried += 1;
    }
    // A deep tree, and one with many names for the same file.
    let mut deep = below.clone();
    for _ in 0..120 {
        deep = tree(&ws, &[("40000", b"a-name-that-makes-it-long-altogether", &deep)]);
    }
    use_checkpoint(&ws, publish_checkpoint(&ws, &deep, RECORD), "a path that is longer than any system allows");
    let mut wide = below;
    for _ in 0..10 {
        wide = tree(&ws, &[("40000", b"a", &wide), ("40000", b"b", &wide)]);
    }
    use_checkpoint(&ws, publish_checkpoint(&ws, &wide, RECORD), "a tree with a thousand names for one file");
    tried += 2;
    for (what, bytes) in misleading_objects() {
        let id = "1234567890123456789012345678901234567890";
        let place = ws.store().join("objects").join(&id[..2]);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(&id[2..]), bytes).unwrap();
        for mode in ["100644", "120000", "40000"] {
            use_checkpoint(
                &ws,
                publish_checkpoint(&ws, &tree(&ws, &[(mode, b"x", id)]), RECORD),
                &format!("{mode}: {what}"),
            );
            tried += 1;
        }
        assert!(!ws.exists("x"), "{what}: the file was written");
        std::fs::remove_file(place.join(&id[2..])).unwrap();
    }
    println!("{tried} trees");
    assert!(tried > if is_long() { 200 } else { 100 });
    ws.open().save(&SaveRequest { allow_empty: true, ..Default::default() }, ws.now()).unwrap();
}

/// Returns objects whose header is wrong, or that are very large.
fn misleading_objects() -> Vec<(&'static str, Vec<u8>)> {
    let packed = |head: &str, body: usize| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(head.as_bytes()).unwrap();
        let zeros = [0; 1 << 16];
        (0..body >> 16).for_each(|_| encoder.write_all(&zeros).unwrap());
        encoder.finish().unwrap()
    };
    let large = if is_long() { 1 << 30 } else { 4 << 20 };
    vec![
        ("more bytes than its header says", packed("blob 10\0", large)),
        ("fewer bytes than its header says", packed(&format!("blob {}\0", 1_u64 << 62), 1 << 16)),
        ("a size that is too large for a number", packed("blob 99999999999999999999999\0", 1 << 16)),
        ("a negative size", packed("blob -1\0", 1 << 16)),
        ("a valid object under another id", packed(&format!("blob {large}\0"), large)),
        ("a tree of zeros", packed(&format!("tree {}\0", 1 << 20), 1 << 20)),
        ("no type", packed("\0\0\0", 1 << 16)),
        ("no end", packed("blob 65536\0", 1 << 16)[..40].to_vec()),
        ("no zlib", vec![0xff; 4096]),
        ("nothing", Vec::new()),
    ]
}

#[test]
fn no_hostile_record_does_harm() {
    let ws = workspace();
    let evil = write_object(&ws, "blob", b"evil\n");
    let plain = tree(&ws, &[("100644", b"x", &evil)]);
    let with = |fields: &str| RECORD.replace("\"message\"", &format!("{fields},\"message\""));
    let max = u64::MAX;
    let records = [
        "".to_owned(),
        "{}".into(),
        "null".into(),
        "[]".into(),
        "{\"v\":1".into(),
        "\u{0}".into(),
        "[[[[[[".repeat(4000),
        RECORD.replace("\"seq\":90", &format!("\"seq\":{max}")),
        RECORD.replace("\"seq\":90", "\"seq\":-1"),
        RECORD.replace("\"v\":1", "\"v\":4294967295"),
        RECORD.replace("manual", "evil"),
        RECORD.replace("manual", "safety"),
        RECORD.replace("1800000000000", &i64::MAX.to_string()),
        RECORD.replace("1800000000000", &i64::MIN.to_string()),
        RECORD.replace("\"m\"}", "\"\\u0000\\u001b[2J\"}"),
        RECORD.replace("\"m\"}", &format!("\"{}\"}}", "m".repeat(1 << 20))),
        with("\"scope\":[\"../outside\"]"),
        with("\"scope\":[\"/etc\"]"),
        with("\"scope\":[\"\"]"),
        with("\"scope\":[\".git/config\"]"),
        with("\"state_files\":[\"../outside/precious\",\"/etc/passwd\"]"),
        with("\"state_files\":[\".git/config\"]"),
        with("\"included\":[\"../outside/precious\"]"),
        with("\"included\":[\".git\"]"),
        with("\"changed\":{\"in_state\":9}"),
        with("\"changed\":[\"../../x\"]"),
        with("\"modes\":{\"file\":65535,\"executable\":65535,\"directory\":65535}"),
        with("\"modes\":{\"file\":0,\"executable\":0,\"directory\":0}"),
        with("\"modes\":{\"file\":-1}"),
        with("\"parent\":\"0000000000000000000000000000000000000000\""),
        with("\"parent\":\"../../x\""),
        with("\"git\":{\"commit\":\"--upload-pack=evil\",\"branch\":\"../../x\",\"dirty_files\":[]}"),
        with("\"attachments\":[{\"name\":\"../../x\",\"bytes\":18446744073709551615}]"),
        with("\"complete\":false"),
        with(&format!("\"step\":{max},\"turn\":{max},\"insertions\":{max},\"deletions\":{max}")),
        with("\"metadata\":{\"k\":{\"deep\":[[[[[[1]]]]]]}}"),
        with("\"name\":\"@~1\""),
        with("\"name\":\"-rf\""),
    ];
    for record in &records {
        let shown: String = record.chars().take(120).collect();
        // Git ends a commit message at a NUL, so a record can't hold one unescaped.
        let id = publish_checkpoint(&ws, &plain, &record.replace('\0', "?"));
        let operated = catch_unwind(AssertUnwindSafe(|| {
            drop(ws.open().save(&SaveRequest { allow_empty: true, ..Default::default() }, ws.now()));
            drop(ws.open().prune(ws.now()));
        }));
        assert!(operated.is_ok(), "record {shown}: a save or a prune panicked");
        use_checkpoint(&ws, id, &format!("record {shown}"));
    }
    println!("{} records", records.len());
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[test]
fn no_hostile_journal_does_harm() {
    let ws = workspace();
    let safety = ws.open().list(&ListFilter::default()).unwrap()[0].id;
    let evil = backtrail_testkit::blob_id(b"1\n");
    let outside = ws.outside().display().to_string();
    let journal = |areas: &str, steps: &str| {
        format!(
            "{{\"version\":1,\"sequence\":7,\"target\":\"{safety}\",\"safety\":\"{safety}\",\"scope\":null,\"before\":null,\
             \"after\":null,\"direction\":\"forward\",\"workspace\":\"x\",\"areas\":{areas},\"steps\":{steps}}}"
        )
    };
    let file = format!("{{\"kind\":\"file\",\"content\":\"{evil}\",\"mode\":420}}");
    let store_area = "[{\"in\":\"store\",\"name\":\"7\"}]";
    let step = |path: &str| format!("[{{\"path\":{path:?},\"new\":{file},\"area\":0}}]");
    let mut journals = vec![
        String::new(),
        "{}".into(),
        "null".into(),
        "[".repeat(100_000),
        journal("[]", "[]"),
        journal(store_area, "[]"),
        journal("[]", &step("evil")),
        journal(store_area, &format!("[{{\"path\":\"evil\",\"new\":{file},\"area\":99}}]")),
        journal(store_area, "[{\"path\":\"file\",\"old\":{\"kind\":\"directory\",\"mode\":493},\"area\":0}]"),
        journal(store_area, "[{\"path\":\"\",\"old\":{\"kind\":\"directory\",\"mode\":493},\"area\":0}]"),
    ];
    for path in [
        "../outside/evil",
        "/etc/evil",
        "",
        ".",
        "..",
        "dir/../../outside/precious",
        ".git/config",
        "a//b",
        "a/./b",
        ".GIT/x",
        "x/.git/y",
    ] {
        journals.push(journal(store_area, &step(path)));
        journals.push(journal(store_area, &format!("[{{\"path\":{path:?},\"old\":{file},\"area\":0}}]")));
    }
    for name in ["..", ".", "", "/", "../../../../../outside", &outside, "a/b", "../journal", "../../refs/checkpoints"]
    {
        journals.push(journal(&format!("[{{\"in\":\"store\",\"name\":{name:?}}}]"), &step("evil")));
        journals.push(journal(&format!("[{{\"in\":\"workspace\",\"parent\":\"\",\"name\":{name:?}}}]"), &step("evil")));
        journals.push(journal(
            &format!("[{{\"in\":\"workspace\",\"parent\":{name:?},\"name\":\".backtrail-x\"}}]"),
            &step("evil"),
        ));
    }
    for name in ["dir", ".git", "file"] {
        journals.push(journal(&format!("[{{\"in\":\"workspace\",\"parent\":\"\",\"name\":{name:?}}}]"), "[]"));
    }
    let refs = names(&ws.store().join("refs/checkpoints"));
    let tree_before = ws.manifest();
    for text in &journals {
        let shown: String = text.chars().skip(200).take(200).collect();
        let before = untouchable(&ws);
        for file in ["journal", "staging"] {
            let line = if file == "journal" { text.clone() } else { areas_of(text) };
            let sealed = format!("{:08x} {line}\n", crc32(line.as_bytes()));
            std::fs::write(ws.store().join("backtrail").join(file), sealed).unwrap();
            let done = catch_unwind(AssertUnwindSafe(|| {
                drop(ws.open().verify());
                drop(ws.open().recover(Way::Forward, ws.now()));
                drop(ws.open().recover(Way::Back, ws.now()));
                drop(ws.open().save(&SaveRequest::default(), ws.now()));
            }));
            assert!(done.is_ok(), "{file} {shown}: an operation panicked");
            for (before, after) in before.iter().zip(untouchable(&ws)) {
                before.assert_same(&after, &format!("{file} {shown}"));
            }
            for name in &refs {
                assert!(ws.store().join("refs/checkpoints").join(name).exists(), "{file} {shown}: a ref is gone");
            }
            for left in ["journal", "journal.damaged", "staging"] {
                std::fs::remove_file(ws.store().join("backtrail").join(left)).ok();
            }
            ws.path("evil").exists().then(|| ws.remove("evil"));
            tree_before.assert_same(&ws.manifest(), &format!("{file} {shown}"));
        }
    }
    println!("{} journals", journals.len());
}

/// The journals name a path in a repository, and the staging area has a file that would be moved there.
#[test]
fn no_hostile_journal_writes_into_a_repository() {
    let ws = workspace();
    let safety = ws.open().list(&ListFilter::default()).unwrap()[0].id;
    let content = backtrail_testkit::blob_id(b"1\n");
    let file = format!("{{\"kind\":\"file\",\"content\":\"{content}\",\"mode\":420}}");
    let journal = |path: &str| {
        format!(
            "{{\"version\":1,\"sequence\":7,\"target\":\"{safety}\",\"safety\":\"{safety}\",\"scope\":null,\"before\":null,\
             \"after\":null,\"direction\":\"forward\",\"workspace\":\"x\",\"areas\":[{{\"in\":\"store\",\"name\":\"7\"}}],\
             \"steps\":[{{\"path\":{path:?},\"new\":{file},\"area\":0}}]}}"
        )
    };
    let put_in_place = |path: &str| {
        let stage = ws.store().join("backtrail/stage/7");
        std::fs::create_dir_all(&stage).unwrap();
        std::fs::write(stage.join("0"), "1\n").unwrap();
        let line = journal(path);
        let sealed = format!("{:08x} {line}\n", crc32(line.as_bytes()));
        std::fs::write(ws.store().join("backtrail/journal"), sealed).unwrap();
        drop(ws.open().recover(Way::Forward, ws.now()));
        for left in ["journal", "journal.damaged"] {
            std::fs::remove_file(ws.store().join("backtrail").join(left)).ok();
        }
    };
    put_in_place("honest");
    assert!(ws.exists("honest"), "the staging area is not where this test puts its file, so the test could never fail");
    let before = untouchable(&ws);
    for path in [".git/hooks/post-checkout", ".GIT/evil", "dir/.git/evil", "git~1", "dir/.git", ".git"] {
        put_in_place(path);
        for (before, after) in before.iter().zip(untouchable(&ws)) {
            before.assert_same(&after, path);
        }
        assert!(path == ".git" || !ws.exists(path), "{path} was written");
    }
}

/// Returns the staging areas that a journal names, in the format of the file `staging`.
fn areas_of(journal: &str) -> String {
    let start = journal.find("\"areas\":").map(|at| at + "\"areas\":".len());
    let areas = start.and_then(|start| Some(&journal[start..start + journal[start..].find("]")? + 1]));
    areas.unwrap_or("[]").to_owned()
}
