//! Checks the imports between modules and the calls that only some of them may make.
//!
//! `ARCHITECTURE.md` describes these layers. Every exception is listed with its reason. An exception that is no longer
//! needed fails the test, too, so that the list stays current.

mod used_paths;

use std::collections::{BTreeMap, BTreeSet};

use backtrail_testkit::{repository_files, repository_text};
use used_paths::used_paths;

const FOUNDATION: &[&str] =
    &["app_files", "clock", "disk", "error", "events", "model", "settings", "spans", "text", "threads"];

/// The layers of the library, from the bottom up: each module, and what it may import besides itself.
const IMPORTS: &[(&str, &[&[&str]])] = &[
    ("model", &[]),
    ("text", &[]),
    ("disk", &[&["model"]]),
    ("error", &[&["model"]]),
    ("events", &[&["model"]]),
    ("spans", &[&["error", "model"]]),
    ("threads", &[&["error"]]),
    ("clock", &[&["disk"]]),
    ("app_files", &[&["disk"]]),
    ("settings", &[&["disk", "error", "model"]]),
    ("scan", &[FOUNDATION]),
    ("store", &[FOUNDATION]),
    ("user_git", &[FOUNDATION, &["scan"]]),
    ("watcher", &[FOUNDATION]),
    ("workspace", &[FOUNDATION, &["scan", "store", "user_git", "watcher"]]),
    ("address", &[FOUNDATION, &["store", "workspace"]]),
    ("operations", &[FOUNDATION, &["scan", "store", "user_git", "watcher", "workspace", "address"]]),
    ("json", &[FOUNDATION, &["operations"]]),
];

/// A file that may break a rule.
struct Exception {
    rule: &'static str,
    file: &'static str,
    path: &'static str,
    #[expect(dead_code, reason = "for the reader of the list")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "the system is called in disk/ alone",
        file: "scan/read.rs",
        path: "rustix::fs::fstat",
        reason: "stamps a file that is open already, before and after it is read",
    },
    Exception {
        rule: "the system is called in disk/ alone",
        file: "store/verify.rs",
        path: "std::fs::File::open",
        reason: "reads a pack by its parts; nothing is written",
    },
];

/// Something that is forbidden, except in some files.
struct Rule {
    name: &'static str,
    holds_in: fn(&str) -> bool,
    forbids: fn(&str) -> bool,
}

const CORE_RULES: &[Rule] = &[
    Rule {
        name: "git's formats are known in store/, user_git/, scan/ignore.rs, scan/glob, scan/git_directory.rs and operations/merge/ alone",
        holds_in: |file| {
            !file.starts_with("store/")
                && !file.starts_with("user_git/")
                && !file.starts_with("scan/glob")
                && !file.starts_with("operations/merge/")
                && !["scan/ignore.rs", "scan/git_directory.rs"].contains(&file)
        },
        forbids: |path| path.starts_with("gix"),
    },
    Rule {
        name: "the system is called in disk/ alone",
        holds_in: |file| !file.starts_with("disk/"),
        // A handle that disk/ has opened may be passed on and read. An error number is only a number.
        forbids: |path| {
            (is_below(path, "std::fs") && path != "std::fs::File")
                || (is_below(path, "rustix") && !is_below(path, "rustix::io::Errno"))
                || [".exists()", ".is_dir()", ".is_file()", ".read_dir()", ".canonicalize()", ".symlink_metadata()"]
                    .contains(&path)
        },
    },
    Rule { name: "the library prints nothing", holds_in: |_| true, forbids: is_printing },
    Rule {
        name: "the library knows no environment and starts no program",
        holds_in: |_| true,
        forbids: |path| is_below(path, "std::env") || is_below(path, "std::process::Command"),
    },
    Rule {
        name: "the library has no clock of its own",
        holds_in: |_| true,
        forbids: |path| {
            let ends = ["Timestamp::now", "Zoned::now", "SystemTime::now"];
            ends.iter().any(|end| path.ends_with(end)) || is_below(path, "std::time::SystemTime")
        },
    },
    Rule { name: "nothing is asynchronous", holds_in: |_| true, forbids: is_asynchronous },
    Rule {
        name: "no file and no directory has a span or an event of its own",
        holds_in: |file| file.starts_with("scan/") || file.starts_with("disk/") || file.starts_with("model/"),
        forbids: |path| is_below(path, "tracing") || is_below(path, "crate::spans"),
    },
];

const CLI_RULES: &[Rule] = &[
    Rule {
        name: "printing is done in output/ alone",
        holds_in: |file| !file.starts_with("output/"),
        forbids: is_printing,
    },
    Rule { name: "git's formats are the library's", holds_in: |_| true, forbids: |path| path.starts_with("gix") },
    Rule { name: "nothing is asynchronous", holds_in: |_| true, forbids: is_asynchronous },
];

const SERVER_RULES: &[Rule] = &[
    Rule { name: "stdout carries the protocol alone", holds_in: |_| true, forbids: is_printing },
    Rule {
        name: "the environment is the command line's, and no program is started",
        holds_in: |_| true,
        forbids: |path| is_below(path, "std::env") || is_below(path, "std::process"),
    },
    Rule {
        name: "files are the library's",
        holds_in: |_| true,
        forbids: |path| is_below(path, "std::fs") || is_below(path, "rustix::fs"),
    },
    Rule { name: "git's formats are the library's", holds_in: |_| true, forbids: |path| path.starts_with("gix") },
    Rule {
        name: "tools and resources block, and are run on threads of their own",
        holds_in: |file| file.starts_with("tools/") || ["resources.rs", "access.rs", "answers.rs"].contains(&file),
        forbids: is_asynchronous,
    },
];

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn is_printing(path: &str) -> bool {
    ["print!", "println!", "eprint!", "eprintln!", "dbg!"].contains(&path.rsplit("::").next().unwrap_or(path))
        || path == "std::io::stdout"
        || path == "std::io::stderr"
}

fn is_asynchronous(path: &str) -> bool {
    ["tokio", "async_std", "smol", "futures"].iter().any(|name| is_below(path, name))
}

#[test]
fn the_library_keeps_its_layers() {
    let files = sources("core");
    let breaches: Vec<String> = files.iter().flat_map(|(file, source)| import_breaches(file, source)).collect();
    assert!(breaches.is_empty(), "imports that point upward or sideways:\n  {}", breaches.join("\n  "));
}

#[test]
fn operations_import_each_other_in_one_direction() {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, source) in sources("core") {
        let Some(operation) = operation_of(&file.replace('/', "::")) else { continue };
        let imported =
            used_paths(&file, &source).into_iter().filter_map(|path| operation_of(path.strip_prefix("crate::")?));
        imports.entry(operation.clone()).or_default().extend(imported.filter(|other| *other != operation));
    }
    assert!(imports.len() > 10, "the operations were not found: {imports:?}");
    assert_eq!(cycle_among(&imports), None, "operations that import each other");
}

/// Returns the name of the operation that a path below `crate` belongs to.
fn operation_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("operations::")?.split("::").next()?;
    Some(name.trim_end_matches(".rs").to_owned()).filter(|name| name != "mod")
}

/// Returns the modules that remain after all that import no remaining one were removed. `None` if nothing remains.
fn cycle_among(imports: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut rest: BTreeSet<&String> = imports.keys().collect();
    loop {
        let is_free = |name: &&&String| !imports[**name].iter().any(|other| rest.contains(other));
        let free: Vec<&String> = rest.iter().filter(is_free).copied().collect();
        if free.is_empty() {
            return (!rest.is_empty()).then(|| rest.into_iter().cloned().collect());
        }
        rest.retain(|name| !free.contains(name));
    }
}

#[test]
fn the_library_keeps_to_itself() {
    assert_no_breach(CORE_RULES, &sources("core"));
}

#[test]
fn the_command_line_prints_in_one_place() {
    assert_no_breach(CLI_RULES, &sources("cli"));
}

#[test]
fn the_server_keeps_to_the_protocol() {
    assert_no_breach(SERVER_RULES, &sources("server"));
}

#[test]
fn crates_depend_downward() {
    let names_in = |package: &str, table: &str| -> Vec<String> {
        let text = repository_text(&format!("crates/{package}/Cargo.toml"));
        let lines = text.lines().skip_while(|line| *line != table).skip(1).take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
    };
    let core = names_in("core", "[dependencies]");
    assert!(core.contains(&"gix-hash".to_owned()), "the table was not found");
    assert!(!core.iter().any(|name| name.starts_with("backtrail")), "the library depends on nothing above it");
    for package in ["cli", "server"] {
        let names = names_in(package, "[dependencies]");
        assert!(!names.contains(&"backtrail-testkit".to_owned()), "the testkit is for tests alone");
    }
    let cli = names_in("cli", "[dependencies]");
    assert!(!cli.contains(&"backtrail-python".to_owned()), "the Python package stands above the command line");
    let server = names_in("server", "[dependencies]");
    assert!(!server.contains(&"backtrail-cli".to_owned()), "the command line stands on the server");
    for package in ["core", "cli", "testkit"] {
        for table in ["[dependencies]", "[dev-dependencies]"] {
            assert!(!names_in(package, table).iter().any(|name| is_asynchronous(name)), "{package} is synchronous");
        }
    }
}

#[test]
fn a_breach_is_seen_however_it_is_written() {
    let broken = [
        ("scan/walk.rs", "use crate::{\n    disk::Dir,\n    store::{Store, Layout as L},\n};", "store"),
        ("scan/mod.rs", "fn f() { super::store::open() }", "store"),
        ("store/pack.rs", "fn f(s: &crate::scan::Scan) {}", "scan"),
        ("model/path.rs", "use super::super::disk;", "disk"),
        ("error.rs", "use crate::operations::save;", "operations"),
        ("workspace/mod.rs", "use crate::operations::restore::Way;", "operations"),
    ];
    for (file, source, culprit) in broken {
        let found = import_breaches(file, source);
        assert!(found.iter().any(|breach| breach.ends_with(&format!("crate::{culprit}"))), "{file}: {found:?}");
    }
    let broken = [
        ("save.rs", "use std::{io, fs::{self, File}}; fn f() { fs::write(a, b); }"),
        ("save.rs", "use std::fs::File; fn f() { File::open(path); }"),
        ("save.rs", "fn f() { if path.is_dir() {} }"),
        ("save.rs", "use rustix::fs as sys; fn f() { sys::fstat(file); }"),
        ("scan/walk.rs", "use gix_hash::ObjectId;"),
        ("store/pack.rs", "fn f() { println!(\"{}\", 1); }"),
        ("store/pack.rs", "use std::io; fn f() { io::stdout().lock(); }"),
        ("undo.rs", "use jiff::Timestamp; fn f() { Timestamp::now(); }"),
        ("undo.rs", "fn f() { std::env::var(\"HOME\"); }"),
        ("undo.rs", "use tokio::spawn;"),
        ("scan/walk.rs", "use tracing::trace; fn f() { trace!(\"a file\"); }"),
        ("scan/read.rs", "fn f() { let _phase = crate::spans::phase!(\"read\"); }"),
    ];
    for (file, source) in broken {
        assert!(!rule_breaches(CORE_RULES, file, source).is_empty(), "{file}: {source}");
    }
    let sound = [
        ("save.rs", "// std::fs::write\n/* println!() */ const A: &str = \"std::env::var\"; const B: char = '\"';"),
        ("save.rs", "use std::fs::File; fn f(file: &File) {}"),
        ("save.rs", "#[cfg(test)]\nmod tests { fn f() { std::fs::write(a, b); } }"),
        ("disk/dir.rs", "use rustix::fs::openat;"),
    ];
    for (file, source) in sound {
        assert_eq!(rule_breaches(CORE_RULES, file, source), Vec::<(&str, String)>::new(), "{file}: {source}");
    }
}

fn assert_no_breach(rules: &[Rule], files: &[(String, String)]) {
    let mut unused: Vec<&Exception> =
        EXCEPTIONS.iter().filter(|exception| rules.iter().any(|rule| rule.name == exception.rule)).collect();
    let mut breaches = Vec::new();
    for (file, source) in files {
        for (rule, path) in rule_breaches(rules, file, source) {
            let is_exception =
                |exception: &&Exception| exception.rule == rule && exception.file == file && exception.path == path;
            if EXCEPTIONS.iter().any(|exception| is_exception(&exception)) {
                unused.retain(|exception| !is_exception(exception));
            } else {
                breaches.push(format!("{file}: {path} ({rule})"));
            }
        }
    }
    assert!(breaches.is_empty(), "\n  {}", breaches.join("\n  "));
    let unused: Vec<_> = unused.iter().map(|exception| (exception.file, exception.path)).collect();
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
}

fn rule_breaches(rules: &[Rule], file: &str, source: &str) -> Vec<(&'static str, String)> {
    let used = used_paths(file, source);
    let broken = |rule: &Rule| used.iter().filter(|path| (rule.forbids)(path)).cloned().collect::<Vec<_>>();
    let rules = rules.iter().filter(|rule| (rule.holds_in)(file));
    rules.flat_map(|rule| broken(rule).into_iter().map(|path| (rule.name, path))).collect()
}

fn import_breaches(file: &str, source: &str) -> Vec<String> {
    let part = file.split(['/', '.']).next().unwrap_or(file);
    if ["lib", "fuzzing"].contains(&part) {
        return Vec::new();
    }
    let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == part) else {
        return vec![format!("{file} belongs to no layer")];
    };
    let is_allowed = |name: &str| name == part || allowed.iter().any(|names| names.contains(&name));
    let imported = used_paths(file, source).into_iter().filter_map(|path| {
        let name = path.strip_prefix("crate::")?.split("::").next()?;
        (!is_allowed(name)).then(|| format!("{file}: crate::{name}"))
    });
    imported.collect()
}

/// Returns the sources of a package: their paths below `src`, and their texts.
fn sources(package: &str) -> Vec<(String, String)> {
    let directory = format!("crates/{package}/src");
    let files = repository_files(&directory).into_iter().filter(|file| file.ends_with(".rs"));
    let found: Vec<(String, String)> =
        files.map(|file| (file[directory.len() + 1..].to_owned(), repository_text(&file))).collect();
    assert!(!found.is_empty(), "no sources in {directory}");
    found
}
