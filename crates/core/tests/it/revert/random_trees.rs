//! Random trees with every type of entry: a revert follows the table of the contract path by path, and undo, redo and
//! undo again are exact.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{Checkpoint, OnConflict, RevertRequest};
use backtrail_testkit::{Found, Manifest, Random, TestWorkspace, is_long};

use super::request;

const PATHS: [&str; 9] = ["a", "b", "d", "d/x", "d/y", "d/e/z", "f", "f/g", "l"];
const MODES: [u32; 3] = [0o644, 0o755, 0o600];

type Tree = BTreeMap<Vec<u8>, Found>;

struct Editor {
    ws: TestWorkspace,
    random: Random,
    written: usize,
}

impl Editor {
    /// Returns lines that no other file has, so that no file looks like a moved one.
    fn text(&mut self) -> String {
        self.written += 1;
        (0..12).map(|line| format!("{} {line}\n", self.written)).collect()
    }

    fn edit(&mut self) {
        let path = self.random.pick(&PATHS);
        match self.random.below(12) {
            0..4 => self.change_line(path),
            4..6 => {
                self.make_room(path);
                let text = self.text();
                self.ws.write_mode(path, text, self.mode());
            }
            6 => self.clear(path),
            7 if self.is_file(path) => self.ws.chmod(path, self.mode()),
            8 => {
                self.make_room(path);
                let target = self.random.pick(&PATHS);
                self.ws.symlink(target, path);
            }
            9 => {
                self.make_room(path);
                self.ws.mkdir(path);
            }
            10 => {
                self.make_room(path);
                let bytes = [&b"\0"[..], &self.random.bytes(20)].concat();
                self.ws.write(path, bytes);
            }
            _ => self.change_line(path),
        }
    }

    fn mode(&self) -> u32 {
        MODES[self.written % MODES.len()]
    }

    fn is_file(&self, path: &str) -> bool {
        !self.is_below_link(path) && self.ws.path(path).is_file() && !self.ws.path(path).is_symlink()
    }

    fn is_below_link(&self, path: &str) -> bool {
        path.match_indices('/').any(|(slash, _)| self.ws.path(&path[..slash]).is_symlink())
    }

    fn change_line(&mut self, path: &str) {
        if !self.is_file(path) {
            return;
        }
        let Ok(text) = String::from_utf8(self.ws.read(path).unwrap()) else { return };
        let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
        if lines.is_empty() || text.contains('\0') {
            return;
        }
        let at = self.random.below(lines.len());
        self.written += 1;
        lines[at] = format!("changed {}\n", self.written);
        self.ws.write(path, lines.concat());
    }

    fn make_room(&self, path: &str) {
        for (slash, _) in path.match_indices('/') {
            let above = self.ws.path(&path[..slash]);
            if above.is_symlink() || above.is_file() {
                std::fs::remove_file(above).unwrap();
            }
        }
        self.clear(path);
    }

    fn clear(&self, path: &str) {
        if !self.is_below_link(path) && self.ws.exists(path) {
            self.ws.remove(path);
        }
    }
}

fn is_directory(found: Option<&Found>) -> bool {
    matches!(found, Some(Found::Directory(_)))
}

fn is_near(path: &[u8], conflict: &[u8]) -> bool {
    let is_within = |path: &[u8], above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
    path == conflict || is_within(path, conflict) || is_within(conflict, path)
}

/// Checks the result of a revert that skipped its conflicts.
fn check(before: &Tree, after: &Tree, disk: &Tree, result: &Tree, conflicts: &BTreeSet<Vec<u8>>, what: &str) {
    let paths: BTreeSet<&Vec<u8>> = [before, after, disk, result].into_iter().flat_map(BTreeMap::keys).collect();
    for path in paths {
        let [before, after, disk, result] = [before, after, disk, result].map(|tree| tree.get(path));
        let name = String::from_utf8_lossy(path);
        if conflicts.contains(path) {
            assert_eq!(result, disk, "{what}: {name} has a conflict and was changed");
            continue;
        }
        // Directories come and go with the files in them.
        if conflicts.iter().any(|conflict| is_near(path, conflict))
            || [before, after, disk, result].map(is_directory).contains(&true)
        {
            continue;
        }
        if before == after {
            assert_eq!(result, disk, "{what}: {name} is not a part of the change");
        } else if disk == after || disk == before {
            assert_eq!(result, before, "{what}: {name} was not edited since");
        }
    }
}

fn run(seed: u64, cases: &mut [usize; 3]) {
    let mut editor = Editor { ws: TestWorkspace::new(), random: Random::new(seed), written: 0 };
    let mut saved: Vec<(Checkpoint, Manifest)> = Vec::new();
    while saved.len() < 4 {
        (0..6).for_each(|_| editor.edit());
        let request = backtrail::SaveRequest { allow_empty: true, ..Default::default() };
        let checkpoint = editor.ws.save_with(&request).checkpoint;
        saved.push((checkpoint, editor.ws.manifest()));
    }
    (0..editor.random.below(6)).for_each(|_| editor.edit());
    let ws = &editor.ws;
    let disk = ws.manifest();
    for at in 1..saved.len() {
        let (checkpoint, after) = &saved[at];
        let before = &saved[at - 1].1;
        let what = format!("seed {seed}, checkpoint {at}");
        let plan = ws.open().plan_revert(&request(checkpoint.id)).unwrap();
        let conflicts: BTreeSet<Vec<u8>> = plan.conflicts().iter().map(|one| one.path.as_bytes().to_vec()).collect();
        let refused = ws.open().revert(&request(checkpoint.id), ws.now());
        assert_eq!(refused.is_err(), !conflicts.is_empty(), "{what}: whether it is refused");
        if refused.is_err() {
            disk.assert_same(&ws.manifest(), &format!("{what}: refused"));
        }
        let skipping = RevertRequest { on_conflict: OnConflict::Skip, ..request(checkpoint.id) };
        let is_changed = match refused {
            Ok(done) => done.restore.applied,
            Err(_) => ws.open().revert(&skipping, ws.now()).unwrap().restore.applied,
        };
        let result = ws.manifest();
        check(&before.0, &after.0, &disk.0, &result.0, &conflicts, &what);
        if disk == *after {
            before.assert_same(&result, &format!("{what}: nothing was edited since"));
            cases[0] += 1;
        }
        cases[1] += usize::from(!conflicts.is_empty());
        cases[2] += usize::from(is_changed && disk != *after);
        if is_changed && disk != result {
            ws.open().undo(ws.now()).unwrap().unwrap();
            disk.assert_same(&ws.manifest(), &format!("{what}: undo"));
            ws.open().redo(ws.now()).unwrap().unwrap();
            result.assert_same(&ws.manifest(), &format!("{what}: redo"));
            ws.open().undo(ws.now()).unwrap().unwrap();
        }
        disk.assert_same(&ws.manifest(), &format!("{what}: undo again"));
    }
    ws.assert_store_is_sound();
}

#[test]
fn random_trees_follow_the_table_and_undo_is_exact() {
    let mut cases = [0; 3];
    let seeds = if is_long() { 1_500 } else { 30 };
    for seed in 1..=seeds {
        run(seed, &mut cases);
    }
    let [exact, conflicts, edited] = cases;
    println!("{seeds} trees: {exact} without later edits, {conflicts} with conflicts, {edited} with later edits");
    assert!(exact > 0 && conflicts > 0 && edited > 0, "the trees must reach all cases");
}
