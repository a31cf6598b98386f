//! A random model of protection: rule files at every level, both settings files, marks, sizes, special files, nested
//! repositories and the index change between operations, and captured paths must stay captured.
//!
//! The oracle shares no code with the engine: the git program lists the paths of a checkpoint, the testkit reads the
//! disk, and this file matches exclude patterns itself. `BACKTRAIL_LONG=1` runs many more steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backtrail::{
    CheckpointId, Kind, Origin, RestoreRequest, SaveRequest, Settings, Skipped, StepRequest, Workspace, WorkspacePath,
};
use backtrail_testkit::{Found, Random, TestWorkspace, git_output};

const FILES: [&str; 14] = [
    "a",
    "b.log",
    "d/a",
    "d/b.log",
    "d/e/a",
    "d/e/b.txt",
    "dist/a",
    "dist/sub/b.txt",
    "src/main",
    "src/in/b.log",
    "n/a",
    "n/out/b.txt",
    ".env",
    "wt/x/a",
];
const RULE_FILES: [&str; 6] =
    [".gitignore", "d/.gitignore", "dist/.gitignore", "src/.gitignore", "n/.gitignore", "d/e/.gitignore"];
const RULES: [&str; 9] =
    ["", "*\n", "*.log\n", "dist/\n", "*.txt\n!b.txt\n", "/d\n", "wt/\n.gitignore\n", "src/in\nn/\n", ".env\n*.toml\n"];
const EXCLUDES: [&str; 5] = ["*.log", "dist/", "src", "*", "a"];
const MARKS: [(&str, &str); 5] = [
    ("src/CACHEDIR.TAG", TAG),
    ("d/e/pyvenv.cfg", "home = /usr\n"),
    ("dist/CACHEDIR.TAG", TAG),
    ("src/backtrail/format", "backtrail store 1\n"),
    ("src/objects/x", "1"),
];
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";
const SPECIAL: [&str; 3] = ["a", "d/a", "src/main"];

type Tree = BTreeMap<Vec<u8>, Found>;

struct Run {
    ws: TestWorkspace,
    random: Random,
    log: Vec<String>,
    /// The captured paths of each checkpoint, as they were on disk when it was taken.
    captured: HashMap<CheckpointId, Tree>,
    order: Vec<CheckpointId>,
    confirmed: BTreeSet<String>,
    workspace_excludes: Vec<String>,
    user_excludes: Vec<String>,
    writes: usize,
}

#[test]
fn captured_paths_stay_captured() {
    let is_long = std::env::var_os("BACKTRAIL_LONG").is_some();
    let (seeds, steps) = if is_long { (250, 400) } else { (4, 150) };
    for seed in 0..seeds {
        Run::new(seed).run(steps);
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let ws = TestWorkspace::in_memory();
        ws.git(&["init", "-q"]);
        Self {
            ws,
            random: Random::new(seed),
            log: vec![format!("seed {seed}")],
            captured: HashMap::new(),
            order: Vec::new(),
            confirmed: BTreeSet::new(),
            workspace_excludes: Vec::new(),
            user_excludes: Vec::new(),
            writes: 0,
        }
    }

    fn run(mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.below(100) {
                0..=59 => self.mutate(),
                60..=73 => self.save(),
                74..=79 => self.agent_step(),
                80..=86 => self.attempt(),
                87..=91 => self.restore(),
                92..=94 => self.undo_and_redo(),
                95 => self.rewind(),
                96 => self.prune(),
                97 => self.exclude(),
                _ => self.set_users_settings(),
            }
        }
        self.ws.assert_store_is_sound();
    }

    fn open(&self) -> Workspace {
        let values = serde_json::json!({ "scan": { "exclude": self.user_excludes } });
        let settings = Settings::default().with_values(values).unwrap().with_workspace(&self.ws.root()).unwrap();
        self.ws.open_with(&self.ws.root(), settings)
    }

    fn recent_log(&self) -> String {
        let first = self.log.len().saturating_sub(60);
        format!("{}\n{}", self.log[0], self.log[first..].join("\n"))
    }

    /// Reads the disk, without git's own directories.
    fn disk(&self) -> Tree {
        let is_git = |path: &[u8]| path.split(|byte| *byte == b'/').any(|part| part == b".git");
        self.ws.manifest().0.into_iter().filter(|(path, _)| !is_git(path)).collect()
    }

    fn content(&mut self) -> String {
        self.writes += 1;
        let filler = if self.random.chance(20) { 1_200 } else { self.random.below(90) };
        format!("{}\n{}", self.writes, "x".repeat(filler + self.writes % 7))
    }

    /// Makes room for a file: removes the path, and every parent that is not a directory.
    fn clear(&self, path: &str) {
        for (at, _) in path.match_indices('/') {
            let parent = &path[..at];
            if std::fs::symlink_metadata(self.ws.path(parent)).is_ok_and(|found| !found.is_dir()) {
                self.ws.remove(parent);
            }
        }
        if self.ws.exists(path) {
            self.ws.remove(path);
        }
    }

    fn write(&mut self, path: &str, text: &str) {
        self.clear(path);
        self.ws.write(path, text);
        self.log.push(format!("write {path} ({} bytes): {:?}", text.len(), &text[..text.len().min(30)]));
    }

    fn mutate(&mut self) {
        match self.random.below(20) {
            0..=7 => {
                let (path, text) = (self.random.pick(&FILES), self.content());
                self.write(path, &text);
            }
            8 | 9 => {
                let path = self.random.pick(&FILES);
                if self.ws.exists(path) {
                    self.ws.remove(path);
                    self.log.push(format!("remove {path}"));
                }
            }
            10 | 11 => {
                let (path, rules) = (self.random.pick(&RULE_FILES), self.random.pick(&RULES));
                self.write(path, rules);
            }
            12 => {
                let path = self.random.pick(&RULE_FILES);
                if self.ws.exists(path) {
                    self.ws.remove(path);
                    self.log.push(format!("remove {path}"));
                }
            }
            13 => {
                let rules = self.random.pick(&RULES);
                std::fs::create_dir_all(self.ws.path(".git/info")).unwrap();
                std::fs::write(self.ws.path(".git/info/exclude"), rules).unwrap();
                self.log.push(format!("info/exclude {rules:?}"));
            }
            14 => self.set_workspace_settings(),
            15 => {
                let (path, text) = self.random.pick(&MARKS);
                if self.ws.exists(path) && self.random.chance(50) {
                    self.ws.remove(path);
                    self.log.push(format!("remove {path}"));
                } else {
                    self.write(path, text);
                }
            }
            16 => {
                let path = self.random.pick(&SPECIAL);
                self.clear(path);
                std::fs::create_dir_all(self.ws.path(path).parent().unwrap()).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(self.ws.path(path)).status().unwrap().success());
                self.log.push(format!("mkfifo {path}"));
            }
            17 => {
                let path = self.random.pick(&FILES);
                if self.disk().get(path.as_bytes()).is_some_and(|found| matches!(found, Found::File(..))) {
                    let mode = self.random.pick(&[0o644, 0o600, 0o755]);
                    self.ws.chmod(path, mode);
                    self.log.push(format!("chmod {mode:o} {path}"));
                }
            }
            18 => {
                let path = self.random.pick(&FILES);
                let arguments =
                    if self.random.chance(60) { ["add", "-f", "--", path] } else { ["rm", "-q", "--cached", path] };
                let done = git_output(&self.ws.root(), &arguments).status.success();
                self.log.push(format!("git {arguments:?}: {done}"));
            }
            _ => {
                let path = self.random.pick(&["n", "wt/x"]);
                if self.disk().get(path.as_bytes()).is_some_and(|found| matches!(found, Found::Directory(_))) {
                    let done = git_output(&self.ws.path(path), &["init", "-q"]).status.success();
                    self.log.push(format!("git init {path}: {done}"));
                }
            }
        }
    }

    fn set_workspace_settings(&mut self) {
        let mut lines = vec!["[scan]".to_owned()];
        self.workspace_excludes.clear();
        if self.random.chance(60) {
            self.workspace_excludes.push(self.random.pick(&EXCLUDES).to_owned());
            lines.push(format!("exclude = {:?}", self.workspace_excludes));
        }
        if self.random.chance(40) {
            lines.push(format!("max_file_bytes = {}", self.random.pick(&[10, 1_000, 100_000])));
        }
        if self.random.chance(20) {
            lines.push("precious = []".into());
        }
        if self.random.chance(20) {
            lines.push("include = [\"dist/a\", \"wt/\"]".into());
        }
        if self.random.chance(20) {
            lines.push("rebuildable = \"capture\"".into());
        }
        let text = lines.join("\n") + "\n";
        self.write("backtrail.toml", &text);
    }

    fn set_users_settings(&mut self) {
        self.user_excludes =
            if self.random.chance(60) { Vec::new() } else { vec![self.random.pick(&EXCLUDES[..3]).to_owned()] };
        self.log.push(format!("user's settings: exclude {:?}", self.user_excludes));
    }

    fn exclude(&mut self) {
        let pattern = self.random.pick(&EXCLUDES[..3]).to_owned();
        let (_, all) = self.open().exclude(&self.ws.root(), std::slice::from_ref(&pattern), self.ws.now()).unwrap();
        if self.open().has_store().unwrap() {
            self.confirmed.insert(pattern);
        }
        self.log.push(format!("backtrail exclude → {all:?}"));
    }

    /// Returns the patterns that the owner confirmed: the patterns of the user's own file, and patterns of the
    /// `exclude` command that the workspace's file still has.
    fn owners_patterns(&self) -> Vec<String> {
        let text = self.ws.read("backtrail.toml").map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("exclude")).unwrap_or_default().to_owned();
        let has = |pattern: &&String| line.contains(&format!("{pattern:?}"));
        let users = if line.is_empty() {
            self.user_excludes.clone()
        } else {
            self.user_excludes.iter().filter(has).cloned().collect()
        };
        users.into_iter().chain(self.confirmed.iter().filter(has).cloned()).collect()
    }

    fn is_excluded_by_owner(&self, path: &[u8]) -> bool {
        let path = String::from_utf8_lossy(path).into_owned();
        let parts: Vec<&str> = path.split('/').collect();
        self.owners_patterns().iter().any(|pattern| match pattern.as_str() {
            "*" => true,
            "*.log" => parts.iter().any(|part| part.ends_with(".log")),
            directory if directory.ends_with('/') => {
                parts[..parts.len() - 1].contains(&directory.trim_end_matches('/'))
            }
            name => parts.contains(&name),
        })
    }

    fn current(&self) -> Option<CheckpointId> {
        self.open().current().unwrap()
    }

    fn listed(&self, id: &CheckpointId) -> BTreeSet<Vec<u8>> {
        self.ws.tree_in_store(id).into_iter().map(|(path, _, _)| path).collect()
    }

    fn remember(&mut self, id: CheckpointId, disk: &Tree) {
        let listed = self.listed(&id);
        let tree = disk.iter().filter(|(path, _)| listed.contains(*path));
        self.captured.insert(id, tree.map(|(path, found)| (path.clone(), found.clone())).collect());
        self.order.push(id);
    }

    fn save(&mut self) {
        let (before, disk) = (self.current(), self.disk());
        let kind = self.random.pick(&[Kind::Manual, Kind::Step, Kind::Automatic, Kind::Turn]);
        let request = SaveRequest { kind: Some(kind), ..SaveRequest::default() };
        let saved = self.open().save(&request, self.ws.now()).unwrap();
        self.log.push(format!(
            "save → {} created {} dropped {:?}",
            saved.checkpoint.id.short(),
            saved.created,
            saved.dropped
        ));
        self.check_checkpoint(before, &disk, saved.created.then_some(saved.checkpoint.id), &saved.dropped);
    }

    fn agent_step(&mut self) {
        let (before, disk) = (self.current(), self.disk());
        let request =
            StepRequest { origin: Origin { session: Some("s".into()), ..Origin::default() }, ..StepRequest::default() };
        let stepped = self.open().step(&request, self.ws.now()).unwrap();
        let saved = stepped.saved;
        let (id, dropped) = saved.map(|saved| (Some(saved.checkpoint.id), saved.dropped)).unwrap_or_default();
        self.log.push(format!("step → {:?} dropped {dropped:?}", id.map(|id| id.short())));
        self.check_checkpoint(before, &disk, id, &dropped);
    }

    fn check_checkpoint(
        &mut self,
        before: Option<CheckpointId>,
        disk: &Tree,
        created: Option<CheckpointId>,
        dropped: &[Skipped],
    ) {
        let Some(id) = created else {
            let before = before.expect("a save without a current checkpoint takes one");
            assert_eq!(dropped, [], "{}", self.recent_log());
            for path in self.listed(&before) {
                let was = &self.captured[&before][&path];
                assert_eq!(disk.get(&path), Some(was), "unsaved: {}\n{}", show(&path), self.recent_log());
            }
            return;
        };
        self.remember(id, disk);
        let now = self.listed(&id);
        for rule_file in [".gitignore", "backtrail.toml"] {
            let is_there = matches!(disk.get(rule_file.as_bytes()), Some(Found::File(..)));
            assert!(
                !is_there || now.contains(rule_file.as_bytes()),
                "{rule_file} is not captured\n{}",
                self.recent_log()
            );
        }
        let is_dropped = |path: &[u8]| {
            let path = WorkspacePath::new(path).unwrap();
            dropped.iter().any(|dropped| path.is_within(&dropped.path))
        };
        for path in before.map(|before| self.listed(&before)).unwrap_or_default() {
            let is_file = match disk.get(&path) {
                None | Some(Found::Directory(_)) => continue,
                Some(Found::Special) => false,
                Some(_) => true,
            };
            if now.contains(&path) || self.is_excluded_by_owner(&path) {
                continue;
            }
            let recent_log = self.recent_log();
            assert!(is_dropped(&path), "no longer captured, and not reported: {}\n{recent_log}", show(&path));
            if is_file {
                let size = |found: Option<&Found>| match found {
                    Some(Found::File(_, bytes)) => bytes.len(),
                    _ => 0,
                };
                let held = before.and_then(|before| self.captured[&before].get(&path));
                assert!(
                    size(disk.get(&path)) > size(held),
                    "dropped although it did not grow: {}\n{recent_log}",
                    show(&path)
                );
            }
        }
    }

    /// Takes a checkpoint, makes changes and restores it: the library's part of a `try` that fails.
    fn attempt(&mut self) {
        let at = self.disk();
        let survey = self.open().survey().unwrap();
        self.save();
        let id = self.current().unwrap();
        self.log.push("try".into());
        // A change is visible in the times only after the clock of the file system has ticked.
        std::thread::sleep(std::time::Duration::from_millis(5));
        for _ in 0..=self.random.below(5) {
            self.mutate();
        }
        let between = self.disk();
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(id) };
        let done = self.open().restore(&request, self.ws.now()).unwrap();
        let mut listed = self.open().not_taken_back(&survey, &id).unwrap();
        listed.extend(done.conflicts.iter().map(|conflict| conflict.path.clone()));
        self.log.push(format!("rolled back, not taken back: {listed:?}"));
        let now = self.disk();
        let paths: BTreeSet<&Vec<u8>> = at.keys().chain(now.keys()).collect();
        for path in paths {
            let is_listed = || {
                let path = WorkspacePath::new(path.as_slice()).unwrap();
                listed.iter().any(|listed| path.is_within(listed))
            };
            if at.get(path) != now.get(path) && !in_rebuildable(path, &[&at, &between, &now]) {
                assert!(is_listed(), "neither taken back nor listed: {}\n{}", show(path), self.recent_log());
            }
        }
    }

    fn pick_checkpoint(&mut self) -> Option<CheckpointId> {
        let known: BTreeSet<CheckpointId> =
            self.open().list(&Default::default()).unwrap().into_iter().map(|checkpoint| checkpoint.id).collect();
        let order: Vec<CheckpointId> = self.order.iter().filter(|id| known.contains(id)).copied().collect();
        let back = self.random.below(order.len().clamp(1, 8));
        order.iter().rev().nth(back).copied()
    }

    fn restore(&mut self) {
        let Some(id) = self.pick_checkpoint() else { return };
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(id) };
        let done = self.open().restore(&request, self.ws.now()).unwrap();
        self.log.push(format!("restore {} conflicts {:?}", id.short(), done.conflicts));
        self.check_restored(&id, &done.conflicts);
    }

    fn check_restored(&self, id: &CheckpointId, conflicts: &[backtrail::Conflict]) {
        let disk = self.disk();
        for (path, was) in &self.captured[id] {
            let here = WorkspacePath::new(path.as_slice()).unwrap();
            let is_in_conflict =
                conflicts.iter().any(|conflict| here.is_within(&conflict.path) || conflict.path.is_within(&here));
            assert!(
                is_in_conflict || disk.get(path) == Some(was),
                "not restored: {}: {:?} instead of {was:?}\n{}",
                show(path),
                disk.get(path),
                self.recent_log()
            );
        }
    }

    fn undo_and_redo(&mut self) {
        let Some(id) = self.pick_checkpoint() else { return };
        let before = self.disk();
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(id) };
        let done = self.open().restore(&request, self.ws.now()).unwrap();
        if done.safety.is_none() {
            return; // Nothing was restored: an undo would take back an earlier restore.
        }
        let after = self.disk();
        let safety = done.safety.map(|safety| self.listed(&safety)).unwrap_or_default();
        let undone = self.open().undo(self.ws.now()).unwrap().unwrap();
        let safety: Vec<String> = safety.iter().map(|path| show(path)).collect();
        self.log.push(format!("restore {} with {:?}, safety {safety:?}", id.short(), paths(&done.changes)));
        self.log.push(format!("undo with {:?}, conflicts {:?}", paths(&undone.changes), undone.conflicts));
        self.assert_same(&before, &self.disk(), "after the undo");
        if self.random.chance(50) {
            self.open().redo(self.ws.now()).unwrap();
            self.log.push("redo".into());
            self.assert_same(&after, &self.disk(), "after the redo");
        }
    }

    fn assert_same(&self, expected: &Tree, found: &Tree, when: &str) {
        let paths: BTreeSet<&Vec<u8>> = expected.keys().chain(found.keys()).collect();
        let differs = |path: &&&Vec<u8>| expected.get(**path) != found.get(**path);
        let different: Vec<String> = paths
            .iter()
            .filter(differs)
            .map(|path| format!("{}: {:?} instead of {:?}", show(path), found.get(*path), expected.get(*path)))
            .collect();
        assert!(different.is_empty(), "{when}: {different:#?}\n{}", self.recent_log());
    }

    fn rewind(&mut self) {
        let workspace = self.open();
        let Ok(id) = workspace.resolve("@~1", &self.ws.now().to_zoned(jiff::tz::TimeZone::UTC)) else { return };
        if !self.captured.contains_key(&id) {
            return;
        }
        let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(id) };
        let done = workspace.restore(&request, self.ws.now()).unwrap();
        self.log.push(format!("rewind to {} conflicts {:?}", id.short(), done.conflicts));
        self.check_restored(&id, &done.conflicts);
    }

    fn prune(&mut self) {
        let before = self.current();
        self.open().prune(self.ws.now()).unwrap();
        self.log.push("prune".into());
        assert_eq!(self.current(), before, "{}", self.recent_log());
    }
}

/// Returns whether a parent directory of a path carried a mark at one of these times.
fn in_rebuildable(path: &[u8], times: &[&Tree]) -> bool {
    let text = String::from_utf8_lossy(path).into_owned();
    ["src", "d/e", "dist"].iter().any(|directory| {
        let is_marked = |tree: &&Tree| {
            let has = |name: &str| tree.contains_key(format!("{directory}/{name}").as_bytes());
            has("CACHEDIR.TAG") || has("pyvenv.cfg")
        };
        (text == *directory || text.starts_with(&format!("{directory}/"))) && times.iter().any(is_marked)
    })
}

fn paths(changes: &[backtrail::Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{} {:?}", change.display_path(), change.status)).collect()
}

fn show(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
