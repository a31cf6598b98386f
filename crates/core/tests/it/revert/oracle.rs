//! Random changes, against `git merge-tree` without renames: the same files merge, and to the same bytes.

use std::collections::BTreeSet;

use backtrail::{OnConflict, RevertRequest};
use backtrail_testkit::{TestWorkspace, git, git_output, is_long};

use super::request;

/// The number of files in each round. Every file is a case of its own.
const FILES: usize = 150;

/// The number of different lines in a file. Git and gitoxide may align lines that repeat often in different ways, and
/// both are right.
const WORDS: u64 = 60;

/// A small generator of numbers, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// One state of a file: its lines and whether it is executable.
type State = Option<(Vec<String>, bool)>;

/// Returns lines that no other file has, so that no file looks like a moved one.
fn fresh(file: usize, numbers: &mut Numbers) -> State {
    let lines = (0..3 + numbers.below(12)).map(|_| format!("{file} {}\n", numbers.below(WORDS))).collect();
    Some((lines, false))
}

/// Returns a state that differs from another one in a few lines, the mode, or everything.
fn edited(file: usize, state: &State, numbers: &mut Numbers) -> State {
    let Some((mut lines, mut is_executable)) = state.clone() else {
        return if numbers.below(2) == 0 { None } else { fresh(file, numbers) };
    };
    match numbers.below(12) {
        0 => return None,
        1 => is_executable = !is_executable,
        2 => {}
        _ => {
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(lines.len() as u64 + 1) as usize;
                let line =
                    format!("{file} {}{}\n", numbers.below(WORDS), if numbers.below(2) == 0 { "" } else { "\r" });
                match (numbers.below(3), at < lines.len()) {
                    (0, true) => drop(lines.remove(at)),
                    (1, true) => lines[at] = line,
                    _ => lines.insert(at, line),
                }
            }
        }
    }
    if numbers.below(10) == 0
        && let Some(last) = lines.last_mut()
    {
        *last = last.trim_end().to_owned();
    }
    Some((lines, is_executable))
}

fn write(ws: &TestWorkspace, states: &[State]) {
    for (file, state) in states.iter().enumerate() {
        let name = format!("f{file}");
        match state {
            Some((lines, is_executable)) => {
                ws.write_mode(&name, lines.concat(), if *is_executable { 0o755 } else { 0o644 });
            }
            None if ws.exists(&name) => ws.remove(&name),
            None => {}
        }
    }
}

fn tree(ws: &TestWorkspace) -> String {
    git(&ws.root(), &["add", "-A"]);
    String::from_utf8(git(&ws.root(), &["write-tree"])).unwrap().trim().to_owned()
}

fn assert_merges_like_git(seed: u64) {
    let mut numbers = Numbers(seed);
    let ws = TestWorkspace::new();
    git(&ws.root(), &["init", "-q"]);
    let before: Vec<State> = (0..FILES).map(|file| edited(file, &None, &mut numbers)).collect();
    let after: Vec<State> = (0..FILES).map(|file| edited(file, &before[file], &mut numbers)).collect();
    let now: Vec<State> = (0..FILES).map(|file| edited(file, &after[file], &mut numbers)).collect();
    write(&ws, &before);
    let before = tree(&ws);
    ws.save();
    write(&ws, &after);
    let after = tree(&ws);
    let changed = ws.save();
    write(&ws, &now);
    let now = tree(&ws);

    let base = format!("--merge-base={after}");
    let options = ["-c", "merge.renames=false", "merge-tree", "--write-tree", "--name-only", "--no-messages"];
    let merged = git_output(&ws.root(), &[&options[..], &[base.as_str(), now.as_str(), before.as_str()]].concat());
    let text = String::from_utf8(merged.stdout).unwrap();
    let mut lines = text.lines();
    let expected = lines.next().unwrap().to_owned();
    let conflicts: BTreeSet<String> = lines.map(str::to_owned).collect();

    let plan = ws.open().plan_revert(&request(changed.id)).unwrap();
    let found: BTreeSet<String> = plan.conflicts().iter().map(|conflict| conflict.path.to_string()).collect();
    assert_eq!(found, conflicts, "seed {seed}: the conflicts");
    let skipping = RevertRequest { on_conflict: OnConflict::Skip, ..request(changed.id) };
    ws.open().revert(&skipping, ws.now()).unwrap();
    let differing = String::from_utf8(git(&ws.root(), &["diff-tree", "-r", "--name-only", &expected, &tree(&ws)]));
    // The tree of git has markers, or one of the sides, in files with a conflict.
    let differing: BTreeSet<String> = differing.unwrap().lines().map(str::to_owned).collect();
    assert!(differing.is_subset(&conflicts), "seed {seed}: {:?}", differing.difference(&conflicts));
    for file in &conflicts {
        let change = git(&ws.root(), &["diff-tree", "-r", "--name-only", &now, &tree(&ws), "--", file]);
        assert_eq!(change, b"", "seed {seed}: {file} has a conflict and was changed");
    }
}

#[test]
fn random_changes_merge_as_git_merges_them() {
    // In the long run more than ten thousand files.
    let rounds = if is_long() { 70 } else { 8 };
    for seed in 1_u64..=rounds {
        assert_merges_like_git(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
