//! Checks the answer of every command against the schemas in `docs/json.md`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::Stdio,
};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::{
    conversation::prompt,
    place::{Place, Run, WAIT_FOR_THE_LOCK, raw},
};

const PAGE: &str = include_str!("../../../../docs/json.md");

/// The schemas of `docs/json.md`. A schema is stored under each name in its heading.
struct Page {
    schemas: BTreeMap<String, (Value, Validator)>,
    used: RefCell<BTreeSet<String>>,
}

impl Page {
    fn read() -> Self {
        let blocks = blocks(PAGE);
        let types: Map<String, Value> = blocks
            .iter()
            .filter(|block| block.part == "Types")
            .map(|block| (block.heading.clone(), block.schema()))
            .collect();
        let mut schemas = BTreeMap::new();
        for block in blocks.iter().filter(|block| block.part != "Types") {
            let mut schema = block.schema();
            schema.as_object_mut().unwrap().insert("$defs".into(), Value::Object(types.clone()));
            for name in block.names() {
                let validator = jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(
                    schemas.insert(name.clone(), (schema.clone(), validator)).is_none(),
                    "two schemas have the name {name}"
                );
            }
        }
        Self { schemas, used: RefCell::default() }
    }

    /// Checks an answer against the schema with this name.
    #[track_caller]
    fn check(&self, name: &str, answer: &Value) {
        let (_, validator) = self.schemas.get(name).unwrap_or_else(|| panic!("docs/json.md has no {name}"));
        let problems: Vec<String> =
            validator.iter_errors(answer).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{name} does not match docs/json.md: {problems:#?}\n{answer:#}");
        self.used.borrow_mut().insert(name.to_owned());
    }

    /// Runs a command that must succeed, and checks and returns its answer.
    #[track_caller]
    fn run(&self, place: &Place, name: &str, words: &[&str]) -> Value {
        let answer = place.json(words.iter().copied());
        self.check(name, &answer);
        answer
    }

    /// Checks the answer of a command that must fail.
    #[track_caller]
    fn check_failure(&self, run: &Run) {
        assert_ne!(run.code, 0, "{}", run.shown());
        self.check("error", &run.json());
    }
}

/// A schema of `docs/json.md`, with its headings.
struct Block {
    part: String,
    heading: String,
    text: String,
}

impl Block {
    fn schema(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("the schema of {}: {error}", self.heading))
    }

    fn names(&self) -> Vec<String> {
        self.heading.split("`, `").map(str::to_owned).collect()
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut part, mut heading) = (String::new(), String::new());
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            part = title.to_owned();
        } else if let Some(title) = line.strip_prefix("### ") {
            heading = title.trim_matches('`').to_owned();
        } else if line == "```json" {
            let text = lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n");
            found.push(Block { part: part.clone(), heading: heading.clone(), text });
        }
    }
    found
}

/// Returns a workspace that fills every field of an answer: a repository with a modified file, a feature list, a name
/// that is not UTF-8, and a large file.
fn place_that_fills_every_field() -> Place {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    place.write("dir/b.txt", "b\n");
    for words in [&["init", "-q", "-b", "main"][..], &["add", "a.txt"], &["commit", "-q", "-m", "first"]] {
        git(&place, words);
    }
    place.write("a.txt", "changed\n");
    place.write("features.json", r#"{"current": "login", "completed": ["start"]}"#);
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = \"1KiB\"\n[state]\nfeatures = \"features.json\"\n");
    place.write("large", vec![b'x'; 2_000]);
    place.write(raw(b"odd\xff"), "1\n");
    place
}

/// Runs git in the user's own repository.
fn git(place: &Place, words: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=x", "-c", "user.email=x@localhost"]).args(words).current_dir(place.path("ws"));
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.status().unwrap().success(), "{words:?}");
}

const FULL_SAVE: &[&str] = &[
    "save",
    "all of it",
    "--name",
    "full",
    "--description",
    "more",
    "--kind",
    "step",
    "--step",
    "3",
    "--session",
    "s",
    "--session-number",
    "2",
    "--tokens",
    "100",
    "--agent",
    "a",
    "--meta",
    "k=v",
    "--attach",
    "note=a.txt",
];

#[test]
fn every_json_answer_matches_its_documented_schema() {
    let page = Page::read();
    let place = place_that_fills_every_field();
    check_saving(&page, &place);
    check_reading(&page, &place);
    check_restoring(&page, &place);
    check_maintenance(&page, &place);
    check_agents(&page, &place);
    check_page(&page, &place);
    let events = place.ok(["events"]);
    for line in events.lines() {
        page.check("event", &serde_json::from_str(line).unwrap());
    }
    for word in ["initialized", "checkpoint_restored", "checkpoint_deleted", "checkpoints_pruned", "recovered", "error"]
    {
        assert!(events.contains(&format!("\"event\":\"{word}\"")), "no {word} in {events}");
    }
    check_failures(&page, &place);
    let documented: BTreeSet<String> = blocks(PAGE)
        .iter()
        .filter(|block| block.part != "Types")
        .flat_map(Block::names)
        .filter(|name| name != "forget-workspace")
        .collect();
    let used = page.used.borrow();
    let unused: Vec<&String> = documented.difference(&used).collect();
    assert!(unused.is_empty(), "documented, but not checked here: {unused:?}");
}

fn check_saving(page: &Page, place: &Place) {
    assert_eq!(page.run(place, "status", &["status"])["checkpoint"], Value::Null);
    assert_eq!(page.run(place, "init", &["init"])["created"], true);
    let saved = page.run(place, "save", FULL_SAVE);
    assert!(saved["skipped"].as_array().is_some_and(|skipped| !skipped.is_empty()), "{saved}");
    let filled = ["git", "feature_state", "context"].map(|key| saved["checkpoint"][key].is_object());
    assert_eq!(filled, [true; 3], "{saved}");
    assert_eq!(page.run(place, "save", &["save", "--kind", "step"])["created"], false);
    place.write("a.txt", "again\n");
    assert_eq!(page.run(place, "step", &["step", "--session", "s"])["created"], true);
    assert_eq!(page.run(place, "step", &["step", "--session", "s"])["checkpoint"], Value::Null);
    let run = place.run(["try", "--json", "--", "sh", "-c", "echo talk; echo x > a.txt; exit 3"]);
    assert_eq!(run.code, 3, "{}", run.shown());
    let last: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    page.check("try", &last);
    assert_eq!(last["rolled_back"], true);
    let text = "name: p\nsteps:\n  - name: one\n    run: \"true\"\n  - name: two\n    run: \"false\"\n";
    fs::write(place.path("pipe.yaml"), text).unwrap();
    page.run(place, "pipeline", &["pipeline", "--dry-run", "../pipe.yaml"]);
    let run = place.run(["pipeline", "--json", "../pipe.yaml"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    page.check("pipeline", &run.json());
    let words = ["--wait", "0", "try", "--json", "--", "sh", "-c", &format!("{WAIT_FOR_THE_LOCK}; exit 3")];
    let last: Value = serde_json::from_str(place.run_while_locked(words).text().lines().last().unwrap()).unwrap();
    page.check("try", &last);
    assert_eq!(last["rollback_error"]["code"], "busy", "{last}");
    place.remove("ready");
    place.remove("go");
}

fn check_reading(page: &Page, place: &Place) {
    place.write("dir/b.txt", "other\n");
    place.write(raw(b"new\xfe"), "1\n");
    place.remove("a.txt");
    page.run(place, "status", &["status"]);
    let changes = page.run(place, "diff", &["diff"])["changes"].clone();
    assert!(changes.as_array().unwrap().iter().any(|change| change["path_base64"].is_string()), "{changes}");
    page.run(place, "save", &["save", "more"]);
    page.run(place, "diff", &["diff", "full", "@"]);
    page.run(place, "show", &["show", "@"]);
    page.run(place, "list", &["list"]);
    page.run(place, "diff", &["diff", "full..@"]);
    page.run(place, "diff", &["show", "full..@"]);
    page.run(place, "list", &["list", "full..@"]);
    page.run(place, "history", &["history", "a.txt"]);
    place.write("dir/b.txt", "other\nunsaved\n");
    let origins = page.run(place, "blame", &["blame", "dir/b.txt"])["ranges"].clone();
    assert_eq!(origins[1]["checkpoint"], Value::Null, "{origins}");
    let run = place.run(["bisect", "--json", "--", "sh", "-c", "echo talk; test -e a.txt"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let last: Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    page.check("bisect", &last);
    assert!(last["first_bad"].is_string(), "{last}");
    place.write("dir/b.txt", "other\n");
    page.run(place, "export", &["export", "@", "../exported"]);
}

fn check_reverting(page: &Page) {
    let place = Place::new();
    let text = |line: &str| format!("1\n2\n3\n{line}\n5\n6\n7\n");
    place.write("a", text("4"));
    place.write("moved", "1\n2\n3\n4\n");
    page.run(&place, "save", &["save"]);
    place.write("a", text("agent"));
    place.write("moved", "1\n2\n3\nagent\n");
    page.run(&place, "save", &["save", "--author", "agent"]);
    place.write("a", text("mine"));
    fs::rename(place.path("ws/moved"), place.path("ws/elsewhere")).unwrap();
    let planned = page.run(&place, "revert", &["revert", "@", "--dry-run", "--hunks"]);
    assert_eq!(planned["conflicts"][0]["lines"], json!([[4, 4]]), "{planned}");
    assert!(planned["changes"][0]["hunks"][0]["id"].is_string(), "{planned}");
    page.check_failure(&place.run(["revert", "@", "--json"]));
    let done = page.run(&place, "revert", &["revert", "@", "--skip-conflicts"]);
    assert_eq!(done["moved"][0]["to"], "elsewhere", "{done}");
    page.run(&place, "undo", &["undo"]);
    for line in place.ok(["events"]).lines() {
        page.check("event", &serde_json::from_str(line).unwrap());
    }
}

/// Checks the answers of `fork`, `forks` and `adopt`.
fn check_forks(page: &Page) {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.ok(["save", "one"]);
    let forked = page.run(&place, "fork", &["fork", "../fork"]);
    assert_eq!(forked["forks"].as_array().unwrap().len(), 1, "{forked}");
    fs::write(place.path("fork/a.txt"), "two\n").unwrap();
    let listed = page.run(&place, "forks", &["forks"]);
    assert_eq!(listed["forks"][0]["files"], 1, "{listed}");
    page.run(&place, "adopt", &["adopt", "../fork", "--dry-run"]);
    let adopted = page.run(&place, "adopt", &["adopt", "../fork"]);
    assert_eq!(adopted["changes"][0]["path"], "a.txt", "{adopted}");
    for line in place.ok(["events"]).lines() {
        page.check("event", &serde_json::from_str(line).unwrap());
    }
}

fn check_restoring(page: &Page, place: &Place) {
    check_reverting(page);
    check_forks(page);
    page.run(place, "watch", &["watch", "--status"]);
    place.write("a.txt", "unsaved\n");
    page.run(place, "restore", &["restore", "full", "--dry-run", "--hunks"]);
    place.write("cloned/.git/HEAD", "x");
    place.write("cloned/file", "x");
    let planned = page.run(place, "restore", &["restore", "full", "--dry-run", "--exact"]);
    assert_eq!(planned["stays"][0]["path"], "cloned/.git", "{planned}");
    fs::rename(place.path("ws/cloned"), place.path("cloned")).unwrap();
    let restored = page.run(place, "restore", &["restore", "full", "dir/b.txt"]);
    let safety = page.run(place, "show", &["show", restored["safety"].as_str().unwrap()]);
    assert_eq!(safety["checkpoint"]["scope"], json!(["dir/b.txt"]));
    page.run(place, "rewind", &["rewind"]);
    page.run(place, "undo", &["undo"]);
    page.run(place, "redo", &["redo"]);
    assert_eq!(page.run(place, "redo", &["redo"])["plan"], Value::Null);
    git(place, &["commit", "-q", "-a", "-m", "second"]);
    let moved = page.run(place, "restore", &["restore", "full", "--git", "--exact"]);
    assert!(moved["git"].is_object(), "{moved}");
    let fifo = place.path("ws/dir/b.txt");
    fs::remove_file(&fifo).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let planned = page.run(place, "restore", &["restore", "full", "--dry-run"]);
    assert_eq!(page.run(place, "diff", &["diff", "full"])["skipped"][0]["path"], "dir/b.txt");
    assert_eq!(planned["conflicts"].as_array().unwrap().len(), 1, "{planned}");
    page.check_failure(&place.run(["restore", "full", "--json"]));
    page.run(place, "restore", &["restore", "full", "--skip-conflicts"]);
    fs::remove_file(&fifo).unwrap();
    assert_eq!(page.run(place, "recover", &["recover"])["outcome"], "nothing");
    check_interrupted_restores(page, place);
}

/// Kills two restores while they run. `recover` finishes the first one, `save` the second one.
fn check_interrupted_restores(page: &Page, place: &Place) {
    for number in 0..2_000 {
        place.write(format!("many/{number}"), "1\n");
    }
    place.ok(["save", "many files", "--name", "many"]);
    kill_a_restore(place);
    place.write("many/7", "the user's\n");
    let recovered = page.run(place, "recover", &["recover"]);
    assert_eq!((&recovered["outcome"], &recovered["conflicts"][0]["path"]), (&json!("finished"), &json!("many/7")));
    let seen = place.ok(["events"]);
    assert!(seen.contains("\"event\":\"recovered\",\"outcome\":\"finished\",\"conflicts\":[{"), "{seen}");
    kill_a_restore(place);
    place.write("many/7", "the user's\n");
    let saved = place.run(["save", "--json", "goes on"]);
    let warning = "not restored: many/7: it has neither its old nor its new content";
    assert!(
        saved.stderr.contains("an interrupted restore was finished") && saved.stderr.contains(warning),
        "{}",
        saved.stderr
    );
}

fn kill_a_restore(place: &Place) {
    let journal = place.store().join("backtrail/journal");
    for _ in 0..20 {
        (0..2_000).for_each(|number| place.write(format!("many/{number}"), "2\n"));
        let mut restore = place.command(&place.path("ws"), ["restore", "many"]).spawn().unwrap();
        while !journal.exists() && restore.try_wait().unwrap().is_none() {}
        restore.kill().unwrap();
        restore.wait().unwrap();
        if journal.exists() {
            break;
        }
    }
}

fn check_maintenance(page: &Page, place: &Place) {
    page.run(place, "pin", &["pin", "full"]);
    page.run(place, "unpin", &["unpin", "full"]);
    page.run(place, "exclude", &["exclude", "*.log", "data/"]);
    page.run(place, "save", &["save", "--kind", "session", "--allow-empty", "to go"]);
    for number in 0..4 {
        page.run(place, "save", &["save", "--kind", "session", "--allow-empty", &format!("s{number}")]);
    }
    page.run(place, "save", &["save", "--allow-empty", "deleted"]);
    page.run(place, "delete", &["delete", "--dry-run", "@"]);
    assert_eq!(page.run(place, "delete", &["delete", "@"])["deleted"].as_array().unwrap().len(), 1);
    assert!(page.run(place, "prune", &["prune", "--dry-run"])["verdicts"].is_array());
    assert!(page.run(place, "prune", &["prune"]).get("verdicts").is_none());
    assert_eq!(page.run(place, "verify", &["verify"])["ok"], true);
    page.run(place, "doctor", &["doctor"]);
    let report = page.run(place, "doctor --report", &["doctor", "--report"]);
    for part in ["settings", "checks", "operations", "events", "log"] {
        assert!(!report[part].as_array().unwrap().is_empty(), "{part}: {report:#}");
    }
    page.run(place, "workspaces", &["workspaces"]);
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    assert_eq!(place.run_in(&other, ["init"]).code, 0);
    assert_eq!(page.run(place, "workspaces", &["workspaces"])["workspaces"].as_array().unwrap().len(), 2);
    let store = place.json(["init"])["store"].as_str().unwrap().to_owned();
    page.run(place, "workspaces --adopt", &["workspaces", "--adopt", &store]);
    page.run(place, "workspaces --forget", &["workspaces", "--forget", "../other", "--yes"]);
    assert_eq!(place.run_in(&other, ["init"]).code, 0);
    page.run(place, "forget-workspace", &["forget-workspace", "../other", "--yes"]);
}

fn check_page(page: &Page, place: &Place) {
    let mut command = place.command(&place.path("ws"), ["ui", "--no-open", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    page.check("ui", &serde_json::from_str(&line).unwrap());
}

fn check_agents(page: &Page, place: &Place) {
    page.run(place, "install --list", &["install", "--list"]);
    page.run(place, "install", &["install", "claude", "--dry-run"]);
    let installed = page.run(place, "install", &["install", "claude"]);
    assert!(installed["rehearsal"].is_object(), "{installed}");
    page.run(place, "install --list", &["install", "--list"]);
    page.run(place, "uninstall", &["uninstall", "claude"]);
    let place = Place::new();
    for number in 1..=2 {
        place.write("a", format!("{number}\n"));
        prompt(&place, "claude", number);
    }
    let restored = page.run(&place, "restore", &["restore", "latest", "--conversation"]);
    assert!(restored["conversation"]["session"].is_string(), "{restored}");
    page.run(&place, "restore", &["restore", "latest", "--conversation", "--dry-run"]);
    page.run(&place, "rewind", &["rewind", "--turn", "--conversation"]);
}

/// Checks each kind of failure that can be provoked reliably.
fn check_failures(page: &Page, place: &Place) {
    for words in [
        &["frobnicate"][..],
        &["show", "no-such"],
        &["cat", "@", "no-such"],
        &["history", "no-such"],
        &["list", "--path", "/etc/passwd"],
        &["save", "-w", "/etc"],
        &["save", "--name", "@"],
        &["restore", "full", "--plan", "0123"],
        &["export", "@", "."],
        &["workspaces", "--forget", "."],
        &["git", "gc"],
    ] {
        page.check_failure(&place.run(["--json"].iter().chain(words)));
    }
    let held = place.hold_lock();
    page.check_failure(&place.run(["save", "--json", "--wait", "0"]));
    drop(held);
    place.write("backtrail.toml", "[scan\n");
    page.check_failure(&place.run(["save", "--json"]));
    let objects = place.store().join("objects/pack");
    for pack in fs::read_dir(objects).unwrap().map(|entry| entry.unwrap().path()) {
        fs::set_permissions(&pack, PermissionsExt::from_mode(0o600)).unwrap();
        let length = fs::metadata(&pack).unwrap().len();
        fs::File::options().write(true).open(&pack).unwrap().set_len(length / 2).unwrap();
    }
    let run = place.run(["verify", "--json"]);
    assert_eq!(run.code, 5, "{}", run.shown());
    page.check("verify", &run.json());
}

/// A schema requires every key, so that a missing one is noticed. The few optional keys are listed here.
#[test]
fn schemas_declare_and_require_every_key() {
    const OPTIONAL: &[&str] = &[
        "path_base64",
        "hunks",
        "lines",
        "moved",
        "verdicts",
        "would_lose",
        "checkpoint",
        "rehearsal",
        "needs",
        "conversation",
        "moved_to",
        "conflicts",
        "rollback_error",
        "skipped",
        "stays",
        "not_restored",
        "undeleted",
        "deleted",
        "also",
        // Left out of a brief list.
        "files_changed",
        "dirty_files",
        // Only if `show` was asked for it.
        "patch",
    ];
    fn walk(schema: &Value, place: &str) {
        match schema {
            Value::Object(object) => {
                if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                    assert_eq!(object["additionalProperties"], false, "{place} allows undeclared keys");
                    let required: BTreeSet<&str> =
                        object["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                    for key in properties.keys() {
                        let is_declared = required.contains(key.as_str()) || OPTIONAL.contains(&key.as_str());
                        assert!(is_declared, "{place}: {key} is neither required nor optional");
                    }
                }
                object.iter().for_each(|(key, value)| walk(value, &format!("{place}/{key}")));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, place)),
            _ => {}
        }
    }
    blocks(PAGE).iter().for_each(|block| walk(&block.schema(), &block.heading));
}

#[test]
fn every_command_is_documented() {
    let place = Place::new();
    let help = place.ok(["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    let documented: Vec<String> = blocks(PAGE).iter().flat_map(Block::names).collect();
    let without = PAGE.lines().find(|line| line.contains("have no JSON document of their own")).unwrap();
    for name in names {
        let is_documented = documented.iter().any(|known| known == name) || without.contains(&format!("`{name}`"));
        assert!(is_documented, "docs/json.md does not mention {name}");
    }
}

/// A table in `docs/json.md` has the exit status of each code.
#[test]
fn the_table_and_the_schema_have_the_same_error_codes() {
    let error = blocks(PAGE).iter().find(|block| block.heading == "error").unwrap().schema();
    let codes = &error["properties"]["error"]["properties"]["code"]["enum"];
    let codes: BTreeSet<&str> = codes.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| exit status"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert_eq!(listed, codes);
}
