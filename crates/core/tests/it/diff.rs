//! A diff reports every change, and its patch reproduces the changes with `git apply`.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use backtrail::{Change, ChangeStatus, CheckpointId, ErrorCode, PatchLimits, Scope};
use backtrail_testkit::{Found, Manifest, Random, TestWorkspace, git_output};

/// Returns the part of a tree that git can hold: files with their executable bit, and symlinks.
fn as_git_sees(manifest: Manifest) -> BTreeMap<String, String> {
    manifest
        .0
        .into_iter()
        .filter_map(|(path, found)| {
            let what = match found {
                Found::File(mode, bytes) => format!("{} {:?}", mode & 0o100 != 0, bytes),
                Found::Link(target) => format!("link {target:?}"),
                Found::Directory(_) | Found::Special => return None,
            };
            Some((format!("{:?}", String::from_utf8_lossy(&path)), what))
        })
        .collect()
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if kind.is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Applies a patch to a copy of the old tree and compares the result with the new tree.
#[track_caller]
fn assert_applies(ws: &TestWorkspace, old: &Path, patch: &str, what: &str) {
    let file = ws.base().join("patch");
    std::fs::write(&file, patch).unwrap();
    if !patch.is_empty() {
        let output = git_output(old, &["apply", "--whitespace=nowarn", "-p1", file.to_str().unwrap()]);
        assert!(output.status.success(), "{what}: {}\n{patch}", String::from_utf8_lossy(&output.stderr));
    }
    let (patched, wanted) = (as_git_sees(Manifest::of(old)), as_git_sees(ws.manifest()));
    assert_eq!(patched, wanted, "{what}: the patched tree differs from the new one\n{patch}");
}

/// Returns the changes as `git diff --name-status` writes them.
fn statuses(changes: &[Change]) -> Vec<(Vec<u8>, char)> {
    let is_executable = |side: &Option<backtrail::Side>| match side {
        Some(backtrail::Side::File { mode, .. }) => mode.is_executable(),
        _ => false,
    };
    let mut found: Vec<_> = changes
        .iter()
        .filter(|change| !change.is_directory())
        .filter_map(|change| {
            let letter = match change.status {
                ChangeStatus::Added => 'A',
                ChangeStatus::Modified => 'M',
                ChangeStatus::Deleted => 'D',
                ChangeStatus::TypeChanged => 'T',
                ChangeStatus::ModeChanged if is_executable(&change.old) != is_executable(&change.new) => 'M',
                ChangeStatus::ModeChanged => return None,
            };
            Some((change.path.as_bytes().to_vec(), letter))
        })
        .collect();
    found.sort();
    found
}

fn git_statuses(ws: &TestWorkspace, from: &CheckpointId, to: &CheckpointId) -> Vec<(Vec<u8>, char)> {
    let arguments = ["diff", "--no-renames", "--name-status", "-z", &from.to_string(), &to.to_string()];
    let listing = ws.store_git(&arguments);
    let words: Vec<&[u8]> = listing.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let mut found: Vec<_> = words.chunks(2).map(|pair| (pair[1].to_vec(), char::from(pair[0][0]))).collect();
    found.sort();
    found
}

/// Saves, changes the files, saves again. Compares the diff with git's diff, and the patched files with the real ones.
#[track_caller]
fn check(ws: &TestWorkspace, change: impl FnOnce(&TestWorkspace), what: &str) {
    let before = ws.save();
    let copies: Vec<PathBuf> = (0..2).map(|number| ws.base().join(format!("old-{number}"))).collect();
    for copy in &copies {
        copy_tree(&ws.root(), copy);
    }
    change(ws);
    let workspace = ws.open();
    let to_disk = workspace.diff(Some(before.id), None, &Scope::Whole).unwrap();
    assert_applies(ws, &copies[0], &to_disk.patch, &format!("{what}, against the files"));
    let after = ws.save();
    let stored = workspace.diff(Some(before.id), Some(after.id), &Scope::Whole).unwrap();
    assert_applies(ws, &copies[1], &stored.patch, &format!("{what}, between checkpoints"));
    assert_eq!(statuses(&stored.changes), git_statuses(ws, &before.id, &after.id), "{what}: statuses");
    assert_eq!(stored.changes, to_disk.changes, "{what}: between checkpoints, against the files");
    assert_eq!(workspace.show(&after.id).unwrap().changes, stored.changes, "{what}: `show`");
    let changed: Vec<_> = stored.changes.iter().map(|change| change.path.clone()).collect();
    assert_eq!(after.files_changed, changed, "{what}: recorded paths");
    let sum = |count: fn(&Change) -> u64| stored.changes.iter().map(count).sum::<u64>();
    assert_eq!(
        (after.insertions, after.deletions),
        (sum(|change| change.insertions), sum(|change| change.deletions)),
        "{what}: recorded lines"
    );
    // A diff of one path or one directory has exactly its part of the changes.
    for part in changed.iter().flat_map(|path| std::iter::once(path.clone()).chain(path.ancestors())) {
        let scope = Scope::of_paths(vec![part.clone()]);
        let wanted: Vec<_> = stored.changes.iter().filter(|change| scope.contains(&change.path)).cloned().collect();
        for to in [None, Some(after.id)] {
            let within = workspace.diff(Some(before.id), to, &scope).unwrap();
            assert_eq!(within.changes, wanted, "{what}: within {part}, {to:?}");
        }
    }
    // The reverse diff, with the older checkpoint as the newer side.
    let back = workspace.diff(Some(after.id), Some(before.id), &Scope::Whole).unwrap();
    assert_eq!(
        statuses(&back.changes),
        git_statuses(ws, &after.id, &before.id),
        "{what}: statuses of the reverse diff"
    );
}

#[test]
fn patches_apply_with_and_without_a_final_newline() {
    let ws = TestWorkspace::new();
    let texts = [
        "",
        "a",
        "a\n",
        "a\nb",
        "a\nb\n",
        "\n",
        "\n\n",
        "a\r\nb\r\n",
        "a\rb",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
        " \n\t\n",
    ];
    for (i, old) in texts.iter().enumerate() {
        for j in 0..texts.len() {
            ws.write(format!("{i}-{j}"), old);
        }
    }
    check(
        &ws,
        |ws| {
            for i in 0..texts.len() {
                for (j, new) in texts.iter().enumerate() {
                    ws.write(format!("{i}-{j}"), new);
                }
            }
        },
        "line ends",
    );
}

#[test]
fn patches_with_near_and_distant_hunks_apply() {
    let ws = TestWorkspace::new();
    let numbers: Vec<usize> = (0..200).collect();
    let text = |numbers: &[usize]| numbers.iter().map(|number| format!("line {number}\n")).collect::<String>();
    let variants: Vec<(&str, Vec<usize>)> = vec![
        ("first", numbers[1..].to_vec()),
        ("last", numbers[..199].to_vec()),
        ("middle", [&numbers[..90], &numbers[91..]].concat()),
        ("six apart", numbers.iter().copied().filter(|number| ![50, 56, 57, 63, 71].contains(number)).collect()),
        ("seven apart", numbers.iter().copied().filter(|number| number % 7 != 0).collect()),
        ("eight apart", numbers.iter().copied().filter(|number| number % 8 != 0).collect()),
        ("swapped", [&numbers[100..], &numbers[..100]].concat()),
        (
            "inserted",
            numbers
                .iter()
                .flat_map(|number| if number % 20 == 0 { vec![999, *number] } else { vec![*number] })
                .collect(),
        ),
        ("none", Vec::new()),
    ];
    for (name, _) in &variants {
        ws.write(name, text(&numbers));
        ws.write(format!("{name} back"), text(&variants.iter().find(|(other, _)| other == name).unwrap().1));
    }
    check(
        &ws,
        |ws| {
            for (name, changed) in &variants {
                ws.write(name, text(changed));
                ws.write(format!("{name} back"), text(&numbers));
            }
        },
        "hunks",
    );
}

#[test]
fn patches_of_binary_and_non_utf8_files_apply() {
    let ws = TestWorkspace::new();
    let mut random = Random::new(1);
    let sizes = [0, 1, 2, 3, 4, 5, 25, 26, 27, 51, 52, 53, 1000, 70_000];
    for size in sizes {
        ws.write(format!("gone-{size}"), [b"\0", random.bytes(size).as_slice()].concat());
        ws.write(format!("edited-{size}"), [b"\0", random.bytes(size).as_slice()].concat());
        ws.write(format!("to-text-{size}"), [b"\0", random.bytes(size).as_slice()].concat());
        ws.write(format!("to-binary-{size}"), "text\n");
    }
    ws.write("latin", b"caf\xe9\n");
    ws.write("utf16", b"\xff\xfea\0b\0\n\0");
    ws.write("late-nul", [vec![b'a'; 20_000], vec![0]].concat());
    check(
        &ws,
        |ws| {
            for size in sizes {
                ws.remove(format!("gone-{size}"));
                ws.write(format!("new-{size}"), [b"\0", random.bytes(size).as_slice()].concat());
                ws.write(format!("edited-{size}"), [b"\0", random.bytes(size + 1).as_slice()].concat());
                ws.write(format!("to-text-{size}"), "text\n");
                ws.write(format!("to-binary-{size}"), [b"\0", random.bytes(size).as_slice()].concat());
            }
            ws.write("latin", b"caf\xe9s\n");
            ws.write("utf16", b"\xff\xfea\0c\0\n\0");
            ws.write("late-nul", [vec![b'a'; 20_001], vec![0]].concat());
        },
        "binary",
    );
}

#[test]
fn patches_of_modes_links_and_type_changes_apply() {
    let ws = TestWorkspace::new();
    ws.write_mode("to-executable", "1\n", 0o644);
    ws.write_mode("from-executable", "1\n", 0o755);
    ws.write_mode("both", "1\n", 0o644);
    ws.write_mode("only-group", "1\n", 0o644);
    ws.write_mode("gone-executable", "1\n", 0o755);
    ws.symlink("a", "retargeted");
    ws.symlink("a", "link-to-file");
    ws.symlink("a", "gone-link");
    ws.write("file-to-link", "text\n");
    ws.write("file-to-directory", "text\n");
    ws.write("directory-to-file/x", "text\n");
    ws.write("directory-to-link/x", "text\n");
    ws.write("empty-gone", "");
    check(
        &ws,
        |ws| {
            ws.chmod("to-executable", 0o755);
            ws.chmod("from-executable", 0o644);
            ws.write_mode("both", "2\n", 0o755);
            ws.chmod("only-group", 0o664);
            ws.remove("gone-executable");
            ws.write_mode("new-executable", "1\n", 0o755);
            for name in ["retargeted", "link-to-file", "gone-link", "file-to-link", "file-to-directory", "empty-gone"] {
                ws.remove(name);
            }
            ws.symlink("b/c d", "retargeted");
            ws.write("link-to-file", "text");
            ws.symlink("no newline", "file-to-link");
            ws.write("file-to-directory/x", "text\n");
            ws.remove("directory-to-file");
            ws.write("directory-to-file", "text\n");
            ws.remove("directory-to-link");
            ws.symlink("a", "directory-to-link");
            ws.symlink(b"\xff\xfe", "new-link");
            ws.write("empty-new", "");
            ws.write_mode("empty-new-executable", "", 0o755);
        },
        "types",
    );
}

#[test]
fn patches_of_files_with_odd_names_apply() {
    let ws = TestWorkspace::new();
    let names: [&[u8]; 22] = [
        b"new\nline",
        b"tab\there",
        b"quo\"te",
        b"back\\slash",
        b" leading",
        b"trailing ",
        b"a b",
        b"two  spaces",
        b"-dash",
        b"caf\xc3\xa9",
        b"not-utf8-\xff\xfe",
        b"\xe6\x97\xa5\xe6\x9c\xac",
        b"\xf0\x9f\x8e\x89",
        b"car\rriage",
        b"bell\x07",
        b"del\x7f",
        b"e f/c d",
        b"x b/y",
        b"semi;colon",
        b"star*",
        b"'single'",
        b"dev/null",
    ];
    for name in names {
        ws.write(name, "1\n");
        ws.write([name, b".gone"].concat(), "1\n");
        ws.write([name, b".bin"].concat(), b"\0");
        ws.write([name, b".mode"].concat(), "1\n");
    }
    check(
        &ws,
        |ws| {
            for name in names {
                ws.write(name, "2\n");
                ws.remove([name, b".gone"].concat());
                ws.write([name, b".bin"].concat(), b"\0\x01");
                ws.chmod([name, b".mode"].concat(), 0o755);
                ws.write([name, b".new"].concat(), "1");
            }
        },
        "names",
    );
}

#[test]
fn patches_between_random_trees_apply() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d e", "x/a", "x/b", "x/y/z", "w"];
    for seed in 0..25 {
        let mut random = Random::new(seed);
        let ws = TestWorkspace::new();
        ws.write("always", format!("{seed}"));
        let fill = |ws: &TestWorkspace, random: &mut Random| {
            for name in NAMES {
                if !random.chance(75) {
                    continue;
                }
                if ws.exists(name) {
                    ws.remove(name);
                }
                if let Some((above, _)) = name.split_once('/')
                    && ws.exists(above)
                    && !ws.path(above).is_dir()
                {
                    ws.remove(above);
                }
                match random.below(6) {
                    0 => ws.symlink(random.pick(&NAMES), name),
                    1 => ws.write_mode(name, random.pick(&["", "1\n", "\0"]), random.pick(&[0o644, 0o755, 0o600])),
                    2 => ws.mkdir(name),
                    3 => {}
                    _ => {
                        let lines: String =
                            (0..random.below(30)).map(|_| random.pick(&["x\n", "y\n", "zz\n", "\n"])).collect();
                        ws.write(name, lines);
                    }
                }
            }
        };
        fill(&ws, &mut random);
        check(
            &ws,
            |ws| {
                fill(ws, &mut random);
                ws.write("always", "changed");
            },
            &format!("seed {seed}"),
        );
    }
}

#[test]
fn lines_are_counted_as_git_counts_them() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n2\n3\n4\n");
    ws.write("b", "1\n2");
    ws.write("gone", "1\n2\n3");
    ws.write("bin", "\0a");
    let before = ws.save();
    ws.write("a", "1\n3\n4\n5\n6\n");
    ws.write("b", "1\n2\n");
    ws.remove("gone");
    ws.write("bin", "\0b");
    ws.write("new", "x\ny");
    let after = ws.save();
    let numbers = ws.store_git(&["diff", "--no-renames", "--numstat", &before.id.to_string(), &after.id.to_string()]);
    let ours: String = ws
        .open()
        .diff(Some(before.id), Some(after.id), &Scope::Whole)
        .unwrap()
        .changes
        .iter()
        .map(|change| match change.binary {
            true => format!("-\t-\t{}\n", change.display_path()),
            false => format!("{}\t{}\t{}\n", change.insertions, change.deletions, change.display_path()),
        })
        .collect();
    assert_eq!(ours, String::from_utf8(numbers).unwrap());
}

#[test]
fn a_diff_with_a_scope_has_only_changes_in_the_scope() {
    let ws = TestWorkspace::new();
    for name in ["a/x", "a/y", "ab", "b"] {
        ws.write(name, "1\n");
    }
    let before = ws.save();
    for name in ["a/x", "a/y", "ab", "b"] {
        ws.write(name, "2\n");
    }
    let after = ws.save();
    let scope = Scope::of_paths(vec![ws.workspace_path("a"), ws.workspace_path("b")]);
    for to in [None, Some(after.id)] {
        let diff = ws.open().diff(Some(before.id), to, &scope).unwrap();
        let paths: Vec<_> = diff.changes.iter().map(Change::display_path).collect();
        assert_eq!(paths, ["a/x", "a/y", "b"]);
        assert!(!diff.patch.contains("ab"), "{}", diff.patch);
    }
}

/// A loose ref is found without the timeline, a packed ref through it.
#[test]
fn loose_and_packed_refs_give_the_same_diff() {
    let ws = TestWorkspace::new();
    let ids: Vec<_> = (0..4)
        .map(|number| {
            ws.write("a", format!("{number}\n"));
            ws.write(format!("only-{number}"), "x\n");
            ws.save().id
        })
        .collect();
    let gone = ids[1];
    ws.open().delete(&[gone], false, ws.now()).unwrap();
    let look = || {
        let workspace = ws.open();
        let (first, second) = (ids[0], ids[2]);
        let paths = |changes: &[Change]| changes.iter().map(Change::display_path).collect::<Vec<_>>().join(" ");
        let between = workspace.diff(Some(first), Some(second), &Scope::Whole).unwrap();
        let own = workspace.diff_of(&second, &Scope::Whole, &PatchLimits::default()).unwrap();
        assert_eq!(own.from, Some(first), "the checkpoint before it was deleted");
        assert_eq!(workspace.show(&second).unwrap().changes, own.changes);
        for unknown in [workspace.diff(Some(gone), Some(second), &Scope::Whole), {
            workspace.diff_of(&gone, &Scope::Whole, &PatchLimits::default())
        }] {
            assert_eq!(unknown.unwrap_err().code(), ErrorCode::UnknownCheckpoint);
        }
        (paths(&between.changes), between.patch, paths(&own.changes), own.patch)
    };
    let loose = look();
    assert_eq!((loose.0.as_str(), loose.2.as_str()), ("a only-1 only-2", "a only-2"));
    ws.store_git(&["pack-refs", "--all", "--prune"]);
    assert_eq!(look(), loose);
}

#[test]
fn before_the_first_save_everything_is_new() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write_mode("x", "1\n", 0o755);
    ws.mkdir("empty");
    let diff = ws.open().diff(None, None, &Scope::Whole).unwrap();
    assert!(diff.changes.iter().all(|change| change.status == ChangeStatus::Added));
    let empty = ws.base().join("nothing");
    std::fs::create_dir(&empty).unwrap();
    assert_applies(&ws, &empty, &diff.patch, "everything new");
    assert!(!ws.stores().exists(), "a diff must not create a store");
}

#[test]
fn directories_are_listed_only_if_empty_or_if_their_mode_changed() {
    let ws = TestWorkspace::new();
    ws.write("full/a", "1");
    ws.mkdir("stays-empty");
    ws.mkdir("goes");
    let first = ws.save();
    ws.mkdir("comes/inner");
    ws.remove("goes");
    std::fs::set_permissions(ws.path("full"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let second = ws.save();
    let diff = ws.open().diff(Some(first.id), Some(second.id), &Scope::Whole).unwrap();
    let shown: Vec<_> = diff.changes.iter().map(|change| (change.display_path(), change.status)).collect();
    let expected = [
        ("comes/inner/".to_owned(), ChangeStatus::Added),
        ("full/".to_owned(), ChangeStatus::ModeChanged),
        ("goes/".to_owned(), ChangeStatus::Deleted),
    ];
    assert_eq!(shown, expected);
    assert_eq!(diff.patch, "");
}
