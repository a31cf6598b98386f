//! Checks the imports between modules, read from the sources as text.
//!
//! `ARCHITECTURE.md` describes these layers. Every exception is listed with its reason. An exception that is no longer
//! needed fails the test, too, so that the list stays current.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// The imports that each part of the library may have from the library. Parts that are not listed are operations, which
/// may import everything.
const IMPORTS: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("threads", &["error"]),
    ("model", &[]),
    ("disk", &["model"]),
    ("error", &["model"]),
    ("events", &["model"]),
    ("settings", &["disk", "error", "model"]),
    ("files", &["disk", "error", "events", "model", "settings", "text", "threads"]),
    ("store", &["disk", "error", "events", "model", "settings", "text", "threads"]),
];

/// A file that may break a rule.
struct Exception {
    rule: &'static str,
    file: &'static str,
    path: &'static str,
    #[expect(dead_code, reason = "for whoever reads the list")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "the system is called in disk/ alone",
        file: "files/read.rs",
        path: "rustix::fs::fstat",
        reason: "stamps a file that is open already, before and after it is read",
    },
    Exception {
        rule: "the system is called in disk/ alone",
        file: "store/verify.rs",
        path: "std::fs::File::open",
        reason: "reads a pack by its parts; nothing is written",
    },
    Exception {
        rule: "the system is called in disk/ alone",
        file: "restore/stage.rs",
        path: "rustix::process::geteuid",
        reason: "only root can give files to another owner",
    },
    Exception {
        rule: "the system is called in disk/ alone",
        file: "restore/stage.rs",
        path: "rustix::process::getegid",
        reason: "only root can give files to another owner",
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
        name: "git's formats are known in store/, user_repository/, files/ignore.rs, files/glob and files/git_directory.rs alone",
        holds_in: |file| {
            !file.starts_with("store/")
                && !file.starts_with("user_repository/")
                && !file.starts_with("files/glob")
                && !["files/ignore.rs", "files/git_directory.rs"].contains(&file)
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
        let text = read(&crates().join(package).join("Cargo.toml"));
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
        ("files/scan.rs", "use crate::{\n    disk::Dir,\n    store::{Store, Layout as L},\n};", "store"),
        ("files/mod.rs", "fn f() { super::store::open() }", "store"),
        ("store/pack.rs", "fn f(s: &crate::files::Scan) {}", "files"),
        ("model/path.rs", "use super::super::disk;", "disk"),
        ("error.rs", "use crate::save;", "save"),
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
        ("files/scan.rs", "use gix_hash::ObjectId;"),
        ("store/pack.rs", "fn f() { println!(\"{}\", 1); }"),
        ("store/pack.rs", "use std::io; fn f() { io::stdout().lock(); }"),
        ("undo.rs", "use jiff::Timestamp; fn f() { Timestamp::now(); }"),
        ("undo.rs", "fn f() { std::env::var(\"HOME\"); }"),
        ("undo.rs", "use tokio::spawn;"),
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
    let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == part) else { return Vec::new() };
    let imported = used_paths(file, source).into_iter().filter_map(|path| {
        let rest = path.strip_prefix("crate::")?;
        let name = rest.split("::").next()?;
        (name != part && !allowed.contains(&name)).then(|| format!("{file}: crate::{name}"))
    });
    imported.collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the sources of a package: their paths below `src`, and their texts.
fn sources(package: &str) -> Vec<(String, String)> {
    let root = crates().join(package).join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(!found.is_empty(), "no sources in {}", root.display());
    found
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<(String, String)>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display())).path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name, read(&path)));
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns every path that a source names, as an absolute path, and method calls without arguments as `.name()`.
fn used_paths(file: &str, source: &str) -> Vec<String> {
    let tokens = tokens(&without_comments_and_strings(source));
    let tokens = without_tests(&tokens);
    let module = module_of(file);
    let mut used = Vec::new();
    let mut short_names: HashMap<String, String> = HashMap::new();
    let mut rest = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        if tokens[position] == "use" {
            let end =
                position + tokens[position..].iter().position(|token| token == ";").unwrap_or(tokens.len() - position);
            for (path, short) in expand(&tokens[position + 1..end]) {
                let path = absolute(&path, &module);
                used.push(path.clone());
                short_names.insert(short, path);
            }
            position = end;
        } else {
            rest.push(tokens[position].clone());
        }
        position += 1;
    }
    used.extend(inline_paths(&rest).into_iter().map(|path| {
        let (first, below) = path.split_once("::").map_or((path.as_str(), None), |(first, below)| (first, Some(below)));
        match (short_names.get(first), below) {
            (Some(full), Some(below)) => format!("{full}::{below}"),
            (Some(full), None) => full.clone(),
            (None, _) => absolute(&path, &module),
        }
    }));
    used.sort();
    used.dedup();
    used
}

/// Returns the module of a file, as the names below `crate`.
fn module_of(file: &str) -> Vec<String> {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
    name.split('/').filter(|part| !["lib", "main"].contains(part)).map(str::to_owned).collect()
}

fn absolute(path: &str, module: &[String]) -> String {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut above = module.len();
    let mut is_relative = false;
    while parts.first().is_some_and(|part| ["self", "super"].contains(part)) {
        is_relative = true;
        if parts.remove(0) == "super" {
            above = above.saturating_sub(1);
        }
    }
    if !is_relative {
        return path.to_owned();
    }
    let base = module[..above].iter().map(String::as_str);
    ["crate"].into_iter().chain(base).chain(parts).collect::<Vec<_>>().join("::")
}

/// Returns the paths of one `use`, each with its name in the file.
fn expand(tokens: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut stack: Vec<Vec<String>> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut name: Option<String> = None;
    let mut finish = |path: &mut Vec<String>, name: &mut Option<String>, base: usize| {
        if path.len() > base {
            if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                path.pop();
            }
            let short = name.take().or_else(|| path.last().cloned()).unwrap_or_default();
            found.push((path.join("::"), short));
        }
    };
    let mut tokens = tokens.iter();
    let mut is_group = false;
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "::" => {}
            "as" => name = tokens.next().cloned(),
            "{" => stack.push(path.clone()),
            "," | "}" => {
                let base = stack.last().cloned().unwrap_or_default();
                if !is_group {
                    finish(&mut path, &mut name, base.len());
                }
                is_group = token == "}";
                if is_group {
                    stack.pop();
                }
                path = if is_group { path } else { base };
                continue;
            }
            part => path.push(part.to_owned()),
        }
        is_group = false;
    }
    if !is_group {
        finish(&mut path, &mut name, 0);
    }
    found
}

fn inline_paths(tokens: &[String]) -> Vec<String> {
    let is_name = |token: &String| token.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let at = |position: usize| tokens.get(position).map_or("", String::as_str);
    let mut found = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        if at(position) == "." && at(position + 2) == "(" && at(position + 3) == ")" {
            found.push(format!(".{}()", at(position + 1)));
            position += 4;
            continue;
        }
        if !is_name(&tokens[position]) || (position > 0 && at(position - 1) == ".") {
            position += 1;
            continue;
        }
        let mut path = tokens[position].clone();
        position += 1;
        while at(position) == "::" && tokens.get(position + 1).is_some_and(is_name) {
            path = format!("{path}::{}", at(position + 1));
            position += 2;
        }
        let is_macro = at(position) == "!" && ["(", "[", "{"].contains(&at(position + 1));
        found.push(if is_macro { format!("{path}!") } else { path });
    }
    found
}

fn tokens(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut characters = source.chars().peekable();
    while let Some(first) = characters.next() {
        if first.is_alphanumeric() || first == '_' {
            let mut word = String::from(first);
            while let Some(next) = characters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                word.push(next);
            }
            found.push(word);
        } else if first == ':' && characters.next_if_eq(&':').is_some() {
            found.push("::".to_owned());
        } else if !first.is_whitespace() {
            found.push(first.to_string());
        }
    }
    found
}

/// Removes the items after `#[cfg(test)]`: the rules do not apply to tests.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        if tokens[position..].iter().zip(MARK).filter(|(token, mark)| token == mark).count() == MARK.len() {
            let mut depth = 0;
            for token in &tokens[position + MARK.len()..] {
                position += 1;
                match token.as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    ";" => {}
                    _ => continue,
                }
                if depth == 0 {
                    break;
                }
            }
            position += MARK.len();
        } else {
            kept.push(tokens[position].clone());
            position += 1;
        }
    }
    kept
}

fn without_comments_and_strings(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            end_of_string(rest)
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            raw.find("\"#").map_or(rest.len(), |end| end + 5)
        } else if first == '\'' {
            end_of_character(rest)
        } else {
            0
        };
        if skipped == 0 {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            kept.push(' ');
            rest = &rest[skipped..];
        }
    }
    kept
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character literal. Returns 1 for the quote of a lifetime.
fn end_of_character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => text[escaped + 1..].find('\'').map_or(1, |end| escaped + 1 + end + 1),
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}
