//! System calls of the program: it starts no process, writes only where it may, and syncs data before it reports
//! success.
//!
//! Skipped, with a note, if strace is not available.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::place::Place;

/// A system call of a process or of one of its threads.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    /// The whole line of the trace, with the paths of descriptors.
    line: String,
    has_failed: bool,
}

/// Runs the program under strace. Returns `None` if that is not possible on this machine.
fn traced(place: &Place, words: &[&str]) -> Option<Vec<Call>> {
    let log = place.path("trace");
    let inner = place.command(&place.path("ws"), words);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "256", "-o"]).arg(&log).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(place.path("ws")).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(done) = command.output() else {
        report_skipped("strace is not installed");
        return None;
    };
    let stderr = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() && (stderr.contains("ptrace") || stderr.contains("PTRACE")) {
        report_skipped(&stderr);
        return None;
    }
    assert!(done.status.success(), "{words:?}: {stderr}");
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    fs::remove_file(log).unwrap();
    Some(calls(&text))
}

#[expect(clippy::print_stdout, reason = "a skipped test reports that it was skipped")]
fn report_skipped(why: &str) {
    println!("skipped: {why}");
}

/// Returns the calls in the order in which they ended. The two parts of a call that another thread interrupted are
/// joined.
fn calls(text: &str) -> Vec<Call> {
    let mut unfinished: Vec<(String, String)> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            unfinished.push((process.to_owned(), start.to_owned()));
            continue;
        }
        let mut whole = rest.to_owned();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let position = unfinished.iter().position(|(other, _)| other == process);
            let Some(position) = position else { continue };
            let (_, start) = unfinished.remove(position);
            let end = resumed.split_once("resumed>").map_or("", |(_, end)| end);
            whole = start + end;
        }
        let Some((name, _)) = whole.split_once('(') else { continue };
        let has_failed = whole.rsplit_once(" = ").is_some_and(|(_, result)| result.starts_with("-1"));
        found.push(Call { name: name.to_owned(), line: whole.clone(), has_failed });
    }
    found
}

fn assert_starts_nothing(calls: &[Call]) {
    let started: Vec<_> = calls.iter().filter(|call| call.name == "execve" || call.name == "execveat").collect();
    assert_eq!(started.len(), 1, "only the program itself is started: {started:#?}");
    let forked = calls.iter().filter(|call| match call.name.as_str() {
        "fork" | "vfork" => true,
        "clone" | "clone3" => !call.line.contains("CLONE_THREAD"),
        _ => false,
    });
    assert_eq!(forked.count(), 0, "no process is forked");
    let talks = calls.iter().filter(|call| call.name == "socket" || call.name == "connect");
    assert_eq!(talks.count(), 0, "the network is not used");
}

/// Returns the full paths that calls write to, create, move or remove, with the line of the call.
fn written(calls: &[Call], current: &Path) -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for call in calls.iter().filter(|call| !call.has_failed) {
        let is_change = match call.name.as_str() {
            "open" | "openat" | "openat2" => {
                ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.line.contains(flag))
            }
            "creat" | "mkdir" | "mkdirat" | "unlink" | "unlinkat" | "rmdir" | "rename" | "renameat" | "renameat2"
            | "link" | "linkat" | "symlink" | "symlinkat" | "chmod" | "fchmod" | "fchmodat" | "fchmodat2" | "chown"
            | "fchown" | "fchownat" | "utimensat" | "truncate" | "ftruncate" | "fallocate" | "mknodat" | "setxattr"
            | "fsetxattr" | "removexattr" | "write" | "pwrite64" | "writev" | "copy_file_range" => true,
            _ => false,
        };
        if is_change {
            paths.extend(paths_in(call, current).into_iter().map(|path| (path, call.line.clone())));
        }
    }
    paths
}

/// Returns the paths in the arguments of a call, each joined to the directory that precedes it.
fn paths_in(call: &Call, current: &Path) -> Vec<PathBuf> {
    let arguments = call.line.split_once('(').map_or("", |(_, rest)| rest);
    let arguments = arguments.rsplit_once(" = ").map_or(arguments, |(arguments, _)| arguments);
    let writes_bytes = ["write", "pwrite64", "writev"].contains(&call.name.as_str());
    // The target of a symlink is not written.
    let skipped = usize::from(call.name.starts_with("symlink"));
    let mut directory = current.to_owned();
    let (mut rest, mut found, mut strings) = (arguments, Vec::new(), 0);
    let mut only_directory = None;
    while let Some(position) = rest.find(['<', '"']) {
        let (is_path, tail) = (rest.as_bytes()[position] == b'"', &rest[position + 1..]);
        let Some(end) = tail.find(if is_path { '"' } else { '>' }) else { break };
        if is_path && !writes_bytes {
            strings += 1;
            if strings > skipped {
                found.push(directory.join(&tail[..end]));
                only_directory = None;
            }
        } else if !is_path {
            directory = PathBuf::from(&tail[..end]);
            only_directory.get_or_insert_with(|| directory.clone());
        } else {
            break;
        }
        rest = &tail[end + 1..];
    }
    // The call has no path, only a descriptor.
    if found.is_empty() { only_directory.into_iter().collect() } else { found }
}

/// Returns whether a path is a file. Pipes and terminals are not.
fn is_file(path: &Path) -> bool {
    path.is_absolute() && !path.starts_with("/dev") && !path.starts_with("/proc")
}

fn assert_writes_only_below(calls: &[Call], current: &Path, allowed: &[PathBuf]) {
    for (path, line) in written(calls, current).into_iter().filter(|(path, _)| is_file(path)) {
        let is_allowed = allowed.iter().any(|place| path.starts_with(place));
        // The parent directories of the store are created with it.
        let leads_there = line.starts_with("mkdir") && allowed.iter().any(|place| place.starts_with(&path));
        assert!(is_allowed || leads_there, "{} is written: {line}", path.display());
    }
}

/// Returns a repository with symlinks to the outside, a nested repository, and configured programs that must not run.
fn repository() -> Place {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("dir/b.txt", "b\n");
    place.write("nested/c.txt", "c\n");
    place.write(".gitattributes", "*.txt filter=loud\n");
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/secret"), "secret\n").unwrap();
    std::os::unix::fs::symlink(place.path("outside"), place.path("ws/link")).unwrap();
    std::os::unix::fs::symlink("../outside/secret", place.path("ws/link-to-file")).unwrap();
    for directory in ["ws", "ws/nested"] {
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(words).current_dir(place.path(directory)).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap().status.success(), "git {words:?}");
        };
        git(&["init", "-q"]);
        let mark = place.path("something-ran-early");
        git(&["config", "filter.loud.clean", &format!("touch {}; cat", mark.display())]);
        git(&["config", "core.fsmonitor", &format!("touch {}", mark.display())]);
    }
    place
}

/// Returns a repository that names programs in every possible way, and the file that each of these programs would
/// create.
fn loud_repository() -> (Place, PathBuf) {
    let place = repository();
    place.git(&["add", "a.txt", "dir"]);
    place.git(&["commit", "-q", "-m", "base"]);
    let mark = place.path("something-ran");
    let loud = format!("touch {}; cat", mark.display());
    place.write(".gitattributes", "* filter=loud diff=loud merge=loud\n");
    place.write(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::loud\n\tupdate = !loud\n");
    for directory in ["ws", "ws/nested"] {
        let settings = [
            "filter.loud.clean",
            "filter.loud.smudge",
            "filter.loud.process",
            "core.fsmonitor",
            "core.editor",
            "core.pager",
            "core.sshCommand",
            "core.askPass",
            "core.gitProxy",
            "core.alternateRefsCommand",
            "diff.external",
            "diff.loud.command",
            "diff.loud.textconv",
            "merge.loud.driver",
            "credential.helper",
            "gpg.program",
            "sequence.editor",
            "uploadpack.packObjectsHook",
            "alias.status",
            "init.templateDir",
        ];
        let config = place.path(directory).join(".git/config");
        let mut text = fs::read_to_string(&config).unwrap();
        for setting in settings {
            let (section, key) = setting.rsplit_once('.').unwrap();
            let section = section.split_once('.').map_or(section.to_owned(), |(a, b)| format!("{a} \"{b}\""));
            text.push_str(&format!("[{section}]\n\t{key} = \"{loud}\"\n"));
        }
        text.push_str(
            "[filter \"loud\"]\n\trequired = true\n[commit]\n\tgpgSign = true\n[core]\n\tuntrackedCache = true\n",
        );
        fs::write(config, text).unwrap();
        for hook in ["post-checkout", "post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"]
        {
            let path = place.path(directory).join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\n{loud}\n")).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    (place, mark)
}

#[test]
fn programs_that_a_repository_names_are_not_started() {
    let (place, mark) = loud_repository();
    place.ok(["save", "first"]);
    place.write("a.txt", "two\n");
    place.write("nested/c.txt", "two\n");
    let exported = place.path("exported");
    let commands: [&[&str]; 14] = [
        &["save", "second"],
        &["status"],
        &["list"],
        &["show", "@"],
        &["diff", "@~1"],
        &["history", "a.txt"],
        &["cat", "@", "a.txt"],
        &["restore", "@~1"],
        &["undo"],
        &["restore", "@~1", "nested"],
        &["restore", "@", "--git"],
        &["export", "@", exported.to_str().unwrap()],
        &["verify"],
        &["prune"],
    ];
    for words in commands {
        let Some(calls) = traced(&place, words) else { return };
        assert_starts_nothing(&calls);
        assert!(!mark.exists(), "{words:?} ran something that the repository names");
    }
}

fn stores(place: &Place) -> PathBuf {
    place.path("home/backtrail")
}

#[test]
fn a_save_starts_nothing_and_writes_only_into_the_store() {
    let place = repository();
    let current = place.path("ws");
    for _ in 0..2 {
        let Some(calls) = traced(&place, &["save", "--allow-empty", "traced"]) else { return };
        assert_starts_nothing(&calls);
        assert_writes_only_below(&calls, &current, &[stores(&place)]);
        let has_pack = written(&calls, &current).iter().any(|(path, _)| path.starts_with(place.store()));
        assert!(has_pack, "the trace must show the writes into the store");
        place.write("a.txt", "two\n");
    }
}

#[test]
fn a_save_is_durable_before_it_is_reported() {
    let place = repository();
    for _ in 0..2 {
        let Some(calls) = traced(&place, &["save", "--allow-empty", "traced"]) else { return };
        let position = |what: &str, is_it: &dyn Fn(&Call) -> bool| {
            let found = calls.iter().position(is_it);
            found.unwrap_or_else(|| panic!("no call: {what}"))
        };
        let is_sync = |call: &Call| call.name == "fsync" || call.name == "fdatasync" || call.name == "syncfs";
        let reported = position("saved", &|call| call.name == "write" && call.line.contains("\"saved "));
        // A file is synced before it gets its name, and the directory is synced afterwards.
        for (what, directory) in [(".pack", "objects/pack"), ("refs/checkpoints/", "refs/checkpoints")] {
            let is_named = |call: &Call| {
                let paths = if call.name.starts_with("rename") || call.name.starts_with("link") {
                    paths_in(call, &place.path("ws"))
                } else {
                    Vec::new()
                };
                !call.has_failed && paths.last().is_some_and(|to| to.to_string_lossy().contains(what))
            };
            let named = position(what, &is_named);
            let from = paths_in(&calls[named], &place.path("ws")).swap_remove(0);
            let of_file = format!("<{}>", from.display());
            let of_directory = format!("{directory}>");
            let content = calls[..named].iter().any(|call| is_sync(call) && call.line.contains(&of_file));
            assert!(content, "{what} is synced before it gets its name");
            let name = calls[named..reported].iter().any(|call| is_sync(call) && call.line.contains(&of_directory));
            assert!(name, "the name of {what} is synced before \"saved\"");
            assert!(named < reported);
        }
        place.write("a.txt", "two\n");
    }
}

#[test]
fn a_restore_and_an_undo_start_nothing_and_leave_git_alone() {
    let place = repository();
    let current = place.path("ws");
    place.ok(["save", "first"]);
    place.write("a.txt", "two\n");
    place.write("new/file", "new\n");
    place.write("nested/c.txt", "edited\n");
    fs::remove_file(place.path("ws/dir/b.txt")).unwrap();
    fs::remove_dir(place.path("ws/dir")).unwrap();
    std::os::unix::fs::symlink(place.path("outside"), place.path("ws/dir")).unwrap();
    let first = place.id("latest");
    for words in [&["restore", &first][..], &["undo"], &["redo"]] {
        let Some(calls) = traced(&place, words) else { return };
        assert_starts_nothing(&calls);
        assert_writes_only_below(&calls, &current, &[stores(&place), current.clone()]);
        let paths = written(&calls, &current);
        let in_git =
            paths.iter().find(|(path, _)| path.starts_with(&current) && path.iter().any(|part| part == ".git"));
        assert_eq!(in_git, None, "{words:?} writes into .git");
        assert!(paths.iter().any(|(path, _)| path.starts_with(&current)), "the trace must show the restore");
    }
    assert_eq!(fs::read(place.path("outside/secret")).unwrap(), b"secret\n");
    assert_eq!(fs::read(place.path("ws/a.txt")).unwrap(), b"one\n");
    assert!(!place.path("ws/dir").is_symlink() && place.path("ws/dir/b.txt").is_file());
}

#[test]
fn no_symlink_is_followed() {
    let place = repository();
    place.ok(["save", "first"]);
    place.write("a.txt", "two\n");
    let first = place.id("latest");
    let current = place.path("ws");
    place.write("more.txt", "1\n");
    for words in [&["save", "second"][..], &["restore", &first], &["undo"]] {
        let Some(calls) = traced(&place, words) else { return };
        for call in calls.iter().filter(|call| ["open", "openat", "openat2"].contains(&call.name.as_str())) {
            let opened = call.line.rsplit_once(" = ").map_or("", |(_, result)| result);
            let outside = place.path("outside");
            assert!(!opened.contains(outside.to_str().unwrap()), "{words:?}: {}", call.line);
            // Git's own files are read as git reads them.
            let is_entry = |path: &PathBuf| {
                path.starts_with(&current) && *path != current && !path.iter().any(|part| part == ".git")
            };
            let refuses_links = call.line.contains("O_NOFOLLOW") || call.line.contains("RESOLVE_NO_SYMLINKS");
            let is_safe = refuses_links || !paths_in(call, &current).iter().any(is_entry);
            assert!(is_safe, "{words:?} would follow a link: {}", call.line);
        }
    }
}
