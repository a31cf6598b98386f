//! Git's ignore rules decide which paths are captured. The tests compare with real git.

use std::path::Path;

use backtrail::{Reason, RestoreRequest, SaveRequest, Settings, fuzzing::IgnoreQuestion, settings::ScanSettings};
use backtrail_testkit::{Found, Random, TestWorkspace, git, git_output, git_output_with};

/// Saves, and returns the paths of the newest checkpoint.
fn captured_paths(ws: &TestWorkspace) -> Vec<String> {
    let saved = ws.save_with(&SaveRequest::default());
    ws.paths_in_store(&saved.checkpoint.id)
}

/// Returns the paths that git tracks and those that `git add -A` would add.
fn listed_by_git(directory: &Path, options: &[&str]) -> Vec<Vec<u8>> {
    let arguments = [options, &["ls-files", "-co", "--exclude-standard", "-z"]].concat();
    let mut paths: Vec<Vec<u8>> = git(directory, &arguments)
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

const NAMES: [&str; 18] = [
    "a", "b", "c", "ab", "foo", "bar", "build", "lib", "x.log", "y.log", "a.txt", "b.txt", "#hash", "!bang", "sp ace",
    "trail ", "FOO", "br[1]",
];

const PATTERNS: [&str; 70] = [
    "a",
    "/a",
    "a/",
    "/a/",
    "!a",
    "!/a",
    "!a/",
    "*.log",
    "!x.log",
    "*",
    "!*/",
    "!*.txt",
    "/*",
    "!/foo",
    "foo/*",
    "!foo/bar",
    "foo/",
    "foo/**",
    "**/bar",
    "**/foo/**",
    "a/**/b",
    "/lib/**/*.txt",
    "?",
    "??",
    "[ab]",
    "[!ab]",
    "[^a]",
    "[a-c]",
    "[a-c].txt",
    "*.t?t",
    "b*",
    "*b",
    "*a*",
    "\\#hash",
    "#hash",
    "\\!bang",
    "!bang",
    "sp ace",
    "sp*",
    "trail\\ ",
    "trail ",
    "foo",
    "FOO",
    "build/",
    "/build",
    "!build",
    "build/*",
    "!build/a",
    "lib/a",
    "lib/*/a",
    "a/b",
    "a/b/c",
    "*/b",
    "*/*/a",
    "**",
    "**/",
    "/**/a",
    "a**",
    "br\\[1\\]",
    "br[1]",
    "[[:alpha:]]",
    "[[:digit:]]*",
    "a//b",
    "/",
    "!",
    "\\",
    "foo\\",
    "*.log/",
    "{a,b}",
    "ab\t",
];

/// Returns an ignore file with random rules and odd line endings.
fn random_rules(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    if random.chance(10) {
        text.extend_from_slice(b"\xef\xbb\xbf");
    }
    for _ in 0..random.below(6) + 1 {
        text.extend_from_slice(random.pick(&PATTERNS).as_bytes());
        text.extend_from_slice(random.pick(&["\n", "\n", "\n", "\n\n", "  \n", "\r\n", "\n# note\n"]).as_bytes());
    }
    if random.chance(20) {
        let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
        text.truncate(end);
    }
    text
}

fn grow_tree(ws: &TestWorkspace, random: &mut Random, directory: &str, depth: usize) {
    let join = |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
    if random.chance(if depth == 0 { 90 } else { 25 }) {
        ws.write(join(".gitignore"), random_rules(random));
    }
    for _ in 0..random.below(4) + 2 {
        let name = random.pick(&NAMES);
        let path = join(name);
        if ws.exists(&path) {
            continue;
        }
        if depth < 4 && random.chance(40) {
            ws.mkdir(&path);
            grow_tree(ws, random, &path, depth + 1);
        } else if random.chance(8) {
            ws.symlink("a", &path);
        } else {
            ws.write(&path, &path);
        }
    }
}

fn settings_without_precious() -> Settings {
    let scan = ScanSettings { precious: Vec::new(), ..ScanSettings::default() };
    Settings { scan, ..Settings::default() }
}

#[test]
fn the_captured_paths_are_those_that_git_lists() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let ws = TestWorkspace::new();
        grow_tree(&ws, &mut random, "", 0);
        ws.git(&["init", "-q"]);
        let excludes = ws.home().join("excludes");
        if random.chance(40) {
            std::fs::write(ws.root().join(".git/info/exclude"), random_rules(&mut random)).unwrap();
        }
        if random.chance(40) {
            std::fs::write(&excludes, random_rules(&mut random)).unwrap();
            let config = format!("[core]\n\texcludesFile = {}\n", excludes.display());
            std::fs::write(ws.home().join(".gitconfig"), config).unwrap();
        }
        if random.chance(50) {
            // Tracked files are captured even if a rule ignores them.
            let files: Vec<_> = ws.manifest().0.into_iter().filter(|(_, found)| !is_directory(found)).collect();
            let literal = |path: Vec<u8>| format!(":(literal){}", String::from_utf8(path).unwrap());
            let chosen: Vec<String> =
                files.into_iter().filter(|_| random.chance(15)).map(|(path, _)| literal(path)).collect();
            let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
            ws.git(&[&["add", "-f", "--"], chosen.as_slice()].concat());
        }
        let option = format!("core.excludesFile={}", excludes.display());
        let expected = listed_by_git(&ws.root(), &["-c", &option]);
        let workspace = ws.open_with(&ws.root(), settings_without_precious());
        let saved = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
        let mut found: Vec<Vec<u8>> =
            ws.tree_in_store(&saved.checkpoint.id).into_iter().map(|(path, _, _)| path).collect();
        found.retain(|path| !path.ends_with(b".gitignore") || expected.contains(path));
        assert_same_paths(&ws, &ws.root(), &["-c", &option], &found, &expected, seed);
    }
}

/// Compares two lists of paths. Reports each difference with the rule that decided it in git.
#[track_caller]
fn assert_same_paths(
    ws: &TestWorkspace,
    directory: &Path,
    options: &[&str],
    found: &[Vec<u8>],
    expected: &[Vec<u8>],
    seed: u64,
) {
    let explain = |path: &[u8]| {
        let name = String::from_utf8_lossy(path).into_owned();
        let arguments = [options, &["check-ignore", "-v", "-n", "--no-index", "--", &name]].concat();
        let verdict = git_output(directory, &arguments).stdout;
        format!("{name:?} ({})", String::from_utf8_lossy(&verdict).trim_end())
    };
    let only = |here: &[Vec<u8>], there: &[Vec<u8>]| -> Vec<String> {
        here.iter().filter(|path| !there.contains(path)).map(|path| explain(path)).collect()
    };
    let (too_much, missing) = (only(found, expected), only(expected, found));
    let rules: Vec<String> = ws
        .manifest()
        .0
        .into_iter()
        .filter(|(path, _)| path.ends_with(b".gitignore"))
        .map(|(path, found)| match found {
            Found::File(_, bytes) => {
                format!("{} {:?}", String::from_utf8_lossy(&path), String::from_utf8_lossy(&bytes))
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert!(
        too_much.is_empty() && missing.is_empty(),
        "seed {seed}\n captured, not listed by git: {too_much:#?}\n listed by git, not captured: {missing:#?}\n {rules:#?}"
    );
}

fn is_directory(found: &Found) -> bool {
    matches!(found, Found::Directory(_))
}

#[test]
fn a_workspace_below_the_top_of_a_repository_follows_the_rules_above_it() {
    for seed in 0..12 {
        let mut random = Random::new(1_000 + seed);
        let ws = TestWorkspace::new();
        grow_tree(&ws, &mut random, "p/q", 1);
        ws.write("p/.gitignore", random_rules(&mut random));
        ws.write(".gitignore", random_rules(&mut random));
        ws.git(&["init", "-q"]);
        // Skips ignored directories: the rules of the outer repository do not apply in them.
        if git_output(&ws.root(), &["check-ignore", "-q", "p/q"]).status.success() {
            continue;
        }
        let root = ws.root().join("p/q");
        let expected = listed_by_git(&root, &[]);
        let workspace = ws.open_with(&root, settings_without_precious());
        let id = workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint.id;
        let listing = git(workspace.store_directory(), &["ls-tree", "-r", "-z", "--name-only", &id.to_string()]);
        let mut found: Vec<Vec<u8>> =
            listing.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
        found.retain(|path| !path.ends_with(b".gitignore") || expected.contains(path));
        found.sort();
        assert_same_paths(&ws, &root, &[], &found, &expected, seed);
    }
}

#[test]
fn rules_apply_without_a_repository() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("a.log", "1");
    ws.write("a.txt", "1");
    ws.write("d/.gitignore", "!keep.log\n");
    ws.write("d/keep.log", "1");
    assert_eq!(captured_paths(&ws), [".gitignore", "a.txt", "d/.gitignore", "d/keep.log"]);
}

#[test]
fn a_workspace_that_the_outer_repository_ignores_is_captured_completely() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "/projects/\n*.o\n");
    ws.write("projects/one/a.o", "1");
    ws.write("projects/one/b", "1");
    ws.git_init();
    let root = ws.root().join("projects/one");
    let workspace = ws.open_at(&root);
    let id = workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint.id;
    let names = git(workspace.store_directory(), &["ls-tree", "-r", "--name-only", &id.to_string()]);
    assert_eq!(String::from_utf8_lossy(&names), "a.o\nb\n");
}

/// Regression: an ignore file over the size limit was skipped with its rules, so a restore removed ignored files.
#[test]
fn the_size_limit_does_not_apply_to_rule_files() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.write("sub/.gitignore", format!("secrets/\n*.key\n{}\n", "#".repeat(200)));
    ws.write("sub/secrets/one", "1");
    ws.write("sub/deep/two.key", "2");
    ws.write("sub/file", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(saved.skipped, []);
    assert!(ws.paths_in_store(&saved.checkpoint.id).contains(&"sub/.gitignore".to_owned()));
    ws.remove("sub/.gitignore");
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    assert_eq!(ws.read("sub/secrets/one").unwrap(), b"1");
    assert_eq!(ws.read("sub/deep/two.key").unwrap(), b"2");
}

#[test]
fn a_tracked_file_is_captured_even_if_ignored() {
    let ws = TestWorkspace::new();
    ws.write("out/tracked.log", "1");
    ws.write("out/other.log", "1");
    ws.git(&["init", "-q"]);
    ws.git(&["add", "-f", "out/tracked.log"]);
    ws.write(".gitignore", "out/\n");
    assert_eq!(captured_paths(&ws), [".gitignore", "out/tracked.log"]);
    ws.git(&["rm", "-q", "--cached", "out/tracked.log"]);
    assert_eq!(captured_paths(&ws), [".gitignore", "out/tracked.log"], "once captured, it stays captured");
    ws.git(&["add", "-f", "out/other.log"]);
    assert_eq!(captured_paths(&ws), [".gitignore", "out/other.log", "out/tracked.log"]);
}

#[test]
fn precious_files_are_captured_even_if_ignored_but_not_in_ignored_directories() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", ".env*\n.envrc\n/dist\n*.pem\n");
    for path in [".env", ".env.local", ".envrc", "sub/.env", "dist/.env", "key.pem"] {
        ws.write(path, path);
    }
    assert_eq!(captured_paths(&ws), [".env", ".env.local", ".envrc", ".gitignore", "sub/.env"]);
    ws.write("backtrail.toml", "[scan]\nprecious = [\"*.pem\"]\n");
    let all = [".env", ".env.local", ".envrc", ".gitignore", "backtrail.toml", "key.pem", "sub/.env"];
    assert_eq!(captured_paths(&ws), all, "a path that was precious before stays captured");
}

#[test]
fn include_captures_paths_in_ignored_directories_and_exclude_skips_more() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "config/\nout/\n");
    ws.write(
        "backtrail.toml",
        "[scan]\ninclude = [\"config/local.yaml\", \"out/keep/\"]\nexclude = [\"*.bin\", \"/data\"]\n",
    );
    for path in
        ["config/local.yaml", "config/other", "out/keep/a", "out/keep/b/c", "out/no", "x.bin", "data/x", "d/data"]
    {
        ws.write(path, path);
    }
    let expected =
        [".gitignore", "backtrail.toml", "config/local.yaml", "d/data", "out/keep/a", "out/keep/b/c"].map(String::from);
    assert_eq!(captured_paths(&ws), expected);
}

#[test]
fn an_included_path_stays_captured_while_it_exists() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "secret\nlogs/\n");
    ws.write("secret", "1");
    ws.write("logs/a", "1");
    ws.write("logs/b", "1");
    let request =
        SaveRequest { include: vec![ws.workspace_path("secret"), ws.workspace_path("logs/a")], ..Default::default() };
    let first = ws.save_with(&request);
    assert_eq!(ws.paths_in_store(&first.checkpoint.id), [".gitignore", "logs/a", "secret"]);
    ws.write("secret", "22");
    let second = ws.save();
    assert!(ws.is_in_store(b"22"), "the later content of an included path is not captured");
    assert_eq!(second.files_changed, [ws.workspace_path("secret")]);
    ws.remove("secret");
    let third = ws.save();
    assert_eq!(ws.paths_in_store(&third.id), [".gitignore", "logs/a"]);
    ws.write("secret", "3");
    assert!(!ws.save_with(&SaveRequest::default()).created, "a path that was deleted in between is ignored again");
}

#[test]
fn including_a_missing_path_is_an_error_and_saves_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let request = SaveRequest { include: vec![ws.workspace_path("no/such")], ..Default::default() };
    let error = ws.open().save(&request, ws.now()).unwrap_err();
    assert_eq!(error.code(), backtrail::ErrorCode::UnknownPath);
    assert_eq!(ws.open().list(&Default::default()).unwrap(), []);
}

#[test]
fn a_captured_file_that_becomes_ignored_stays_captured() {
    let ws = TestWorkspace::new();
    ws.write("data.csv", "1\n");
    ws.write("a", "1\n");
    ws.save();
    ws.write(".gitignore", "*.csv\n");
    let status = ws.open().status(None).unwrap();
    let paths: Vec<_> = status.changes.iter().map(backtrail::Change::display_path).collect();
    assert_eq!(paths, [".gitignore"]);
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), [".gitignore", "a", "data.csv"]);
    assert_eq!(saved.files_changed, [ws.workspace_path(".gitignore")]);
    let shown = ws.open().show(&saved.id).unwrap();
    assert_eq!(shown.changes.len(), 1, "{:?}", shown.changes);
}

#[test]
fn a_file_is_captured_once_its_rule_is_removed() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.csv\n");
    ws.write("data.csv", "1\n");
    ws.save();
    ws.write(".gitignore", "");
    assert_eq!(captured_paths(&ws), [".gitignore", "data.csv"]);
}

#[test]
fn an_ignore_file_that_is_a_symlink_has_no_effect() {
    let ws = TestWorkspace::new();
    std::fs::write(ws.outside().join("rules"), "*\n").unwrap();
    ws.symlink(ws.outside().join("rules").to_str().unwrap(), ".gitignore");
    ws.write("a", "1");
    assert_eq!(captured_paths(&ws), [".gitignore", "a"]);
}

#[test]
fn an_ignore_file_that_ignores_itself_is_captured() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("cache/.gitignore", "*\n");
    ws.write("cache/big", "1");
    ws.write("cache/sub/x", "1");
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["a", "cache/.gitignore"]);
    assert!(saved.skipped.iter().all(|skipped| skipped.reason != Reason::Ignored), "{:?}", saved.skipped);
    assert!(saved.checkpoint.complete);
}

#[test]
fn a_directory_with_only_ignored_files_is_not_captured_as_empty() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("logs/a.log", "1");
    ws.mkdir("empty");
    let first = ws.save();
    assert!(first.files_changed.contains(&ws.workspace_path("empty")), "{:?}", first.files_changed);
    assert!(!first.files_changed.contains(&ws.workspace_path("logs")), "{:?}", first.files_changed);
    ws.remove("logs/a.log");
    let second = ws.save();
    assert_eq!(second.files_changed, [ws.workspace_path("logs")]);
}

#[test]
fn a_store_inside_the_workspace_is_not_captured() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let inside = ws.root().join("store");
    let location = backtrail::locate(&backtrail::Start::At(ws.root()), &ws.stores(), Some(&inside)).unwrap();
    let workspace = backtrail::Workspace::new(location, backtrail::Options::default());
    let first = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(first.checkpoint.files_changed, [ws.workspace_path("a")]);
    let again = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    assert!(!again.created, "the store counts as a change: {:?}", again.checkpoint.files_changed);
}

#[test]
fn a_carriage_return_at_the_end_of_the_rules_has_no_effect() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "one\r\ntwo\r");
    ws.write("one", "1");
    ws.write("two", "1");
    ws.git(&["init", "-q"]);
    assert_eq!(listed_by_git(&ws.root(), &[]), [b".gitignore"]);
    assert_eq!(captured_paths(&ws), [".gitignore"]);
}

/// Pieces of patterns, including odd ones.
const PIECES: [&[u8]; 40] = [
    b"a",
    b"b",
    b"A",
    b"ab",
    b"x1",
    b".",
    b"/",
    b"/",
    b"/",
    b"*",
    b"*",
    b"*",
    b"**",
    b"**/",
    b"/**",
    b"/**/",
    b"***",
    b"?",
    b"[ab]",
    b"[!a]",
    b"[^a-c]",
    b"[a-c]",
    b"[]a]",
    b"[a\\-c]",
    b"[\\]a]",
    b"[",
    b"]",
    b"\\",
    b"\\*",
    b"\\a",
    b"\\/",
    b"-",
    b"[[:alpha:]]",
    b"[[:digit:]-]",
    b"[[:upper:]b]",
    b"[[:a]",
    b"[[:no:]]",
    b"\xff",
    b"[\x80-\xff]",
    b" ",
];
const NAME_PIECES: [&[u8]; 16] =
    [b"a", b"a", b"b", b"c", b"A", b"ab", b"x1", b".", b"-", b"]", b"[", b"*", b"\\", b"\xff", b"\xc3\xa9", b"!"];

fn random_pattern(random: &mut Random) -> Vec<u8> {
    let start: &[u8] = random.pick(&[b"", b"", b"", b"/", b"!", b"!/"]);
    let pieces: Vec<&[u8]> = (0..1 + random.below(7)).map(|_| random.pick(&PIECES)).collect();
    [start, &pieces.concat()].concat()
}

fn random_path(random: &mut Random) -> Vec<u8> {
    let name = |random: &mut Random| {
        let pieces: Vec<&[u8]> = (0..1 + random.below(4)).map(|_| random.pick(&NAME_PIECES)).collect();
        pieces.concat()
    };
    let names: Vec<Vec<u8>> = (0..1 + random.below(5)).map(|_| name(random)).collect();
    names.join(&b'/')
}

/// Returns two rules and some paths. The first rule ignores much, so that a negated second rule has an effect.
fn random_question(random: &mut Random) -> (Vec<u8>, Vec<Vec<u8>>) {
    let rules = [random.pick(&["*", "*", "a*", "#"]).as_bytes(), b"\n", &random_pattern(random), b"\n"].concat();
    (rules, (0..16).map(|_| random_path(random)).collect())
}

/// Compares Backtrail's own matcher with git. One run of git answers everything: each pair of rules has a directory.
#[test]
fn generated_patterns_match_as_in_git() {
    let ws = TestWorkspace::in_memory();
    ws.git(&["init", "-q"]);
    let mut random = Random::new(18);
    let (mut asked, mut input) = (Vec::new(), Vec::new());
    for number in 0..if backtrail_testkit::is_long() { 40_000 } else { 4_000 } {
        let (rules, paths) = random_question(&mut random);
        ws.write(format!("{number}/.gitignore"), &rules);
        for path in paths {
            // The rules are those of the top directory. The directories below have none.
            let text = [&path, &b"\0"[..], &rules].concat();
            let Some(question) = IgnoreQuestion::parse(&text) else { continue };
            input.extend_from_slice(&[number.to_string().as_bytes(), b"/", &path, b"\0"].concat());
            asked.push(question);
        }
    }
    let arguments = ["-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"];
    let answer = git_output_with(&ws.root(), &arguments, input).stdout;
    let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let by_git: Vec<bool> =
        fields.chunks_exact(4).map(|entry| !entry[2].is_empty() && !entry[2].starts_with(b"!")).collect();
    assert_eq!(by_git.len(), asked.len(), "git did not answer every question");
    assert!(asked.len() > 20_000 && by_git.iter().filter(|ignored| **ignored).count() > 2_000);
    for (question, by_git) in asked.iter().zip(by_git) {
        assert_eq!(question.is_ignored(), by_git, "Backtrail and git disagree: {}", describe(question));
    }
}

fn describe(question: &IgnoreQuestion) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    format!("{:?} with the rules {:?}", text(&question.path), text(&question.rules[0]))
}

/// Regression: a line with thirty `**/` did not finish on paths of forty levels, nor did `*a*a*a…b` on long names.
#[test]
fn rules_with_many_stars_match_quickly() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", format!("{}no-such-name\n{}b\n", "**/".repeat(30), "*a".repeat(30)));
    let deep = ["a"; 40].join("/");
    for number in 0..20 {
        ws.write(format!("{deep}/file{number}"), "1\n");
    }
    ws.write("a".repeat(200), "1\n");
    let (sender, receiver) = std::sync::mpsc::channel();
    let workspace = ws.open();
    let now = ws.now();
    std::thread::spawn(move || sender.send(Box::new(workspace.save(&SaveRequest::default(), now))));
    let saved = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("the save hangs").unwrap();
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id).len(), 22);
}
