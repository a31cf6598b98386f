//! `blame`: the checkpoint that introduced each line. The oracle is `git blame` on a chain of commits with the same trees.

use std::collections::HashMap;

use backtrail::{Blame, CheckpointId, ErrorCode, RestoreRequest};
use backtrail_testkit::{Random, TestWorkspace, git_output_with, is_long};

fn blame(ws: &TestWorkspace, path: &str, at: Option<CheckpointId>) -> Blame {
    ws.open().blame(&ws.workspace_path(path), at, None).unwrap()
}

/// Returns the checkpoint and the path of each line.
fn by_line(blame: &Blame) -> Vec<Option<(CheckpointId, String)>> {
    let mut lines = Vec::new();
    for range in &blame.ranges {
        assert_eq!(range.start, lines.len() as u64 + 1, "the ranges have a gap");
        let origin = range.origin.as_ref().map(|origin| (origin.checkpoint.id, origin.path.to_string()));
        lines.extend(std::iter::repeat_n(origin, range.lines as usize));
    }
    lines
}

/// A text that is edited at random. Each new line is unique.
struct Editor {
    random: Random,
    next: u64,
    lines: Vec<String>,
}

impl Editor {
    fn edit(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            let at = self.random.below(self.lines.len() + 1);
            let count = (1 + self.random.below(3)).min(self.lines.len() - at);
            let new = if self.random.chance(30) { 0 } else { 1 + self.random.below(4) };
            let removed = if self.random.chance(50) { count } else { 0 };
            let new: Vec<String> = (0..new).map(|_| self.line()).collect();
            self.lines.splice(at..at + removed, new);
        }
    }

    fn line(&mut self) -> String {
        self.next += 1;
        format!("line {} of {}\n", self.next, self.random.number())
    }

    fn text(&self) -> String {
        self.lines.concat()
    }
}

/// Builds a chain of commits with the trees of these checkpoints, oldest first. Returns the checkpoint of each commit,
/// and the last commit.
fn chain(ws: &TestWorkspace, line: &[CheckpointId]) -> (HashMap<String, CheckpointId>, String) {
    let mut commits = HashMap::new();
    let mut last = String::new();
    for id in line {
        let tree = String::from_utf8(ws.store_git(&["rev-parse", &format!("{id}^{{tree}}")])).unwrap();
        let who = "t <t@example.com> 1700000000 +0000";
        let parent = if last.is_empty() { String::new() } else { format!("parent {last}\n") };
        let commit = format!("tree {}\n{parent}author {who}\ncommitter {who}\n\n{id}\n", tree.trim());
        let words = ["hash-object", "-t", "commit", "-w", "--stdin"];
        let written = git_output_with(&ws.store(), &words, commit.into_bytes());
        last = String::from_utf8(written.stdout).unwrap().trim().to_owned();
        commits.insert(last.clone(), *id);
    }
    (commits, last)
}

/// Returns the checkpoint and the path of each line, by `git blame`.
fn by_git(ws: &TestWorkspace, line: &[CheckpointId], path: &str) -> Vec<Option<(CheckpointId, String)>> {
    let (commits, last) = chain(ws, line);
    let told = ws.store_git(&["blame", "--line-porcelain", &last, "--", path]);
    let mut found = Vec::new();
    let mut checkpoint = None;
    for row in String::from_utf8(told).unwrap().lines() {
        let word = row.split(' ').next().unwrap_or_default();
        if let Some(id) = commits.get(word) {
            checkpoint = Some(*id);
        } else if let Some(name) = row.strip_prefix("filename ") {
            found.push(Some((checkpoint.unwrap(), name.to_owned())));
        }
    }
    found
}

/// Runs one random history: edits, moves, saves of other files, and restores that fork the timeline.
fn compare_with_git(seed: u64) {
    let ws = TestWorkspace::new();
    let mut editor = Editor { random: Random::new(seed), next: 0, lines: Vec::new() };
    let mut path = "dir/file".to_owned();
    let mut states: HashMap<CheckpointId, (String, Vec<String>, Vec<CheckpointId>)> = HashMap::new();
    let mut line: Vec<CheckpointId> = Vec::new();
    for number in 0..8 + editor.random.below(12) {
        if editor.random.chance(80) || editor.lines.len() < 6 {
            editor.edit();
        }
        if editor.random.chance(15) && line.len() > 1 {
            ws.remove(&path);
            path = format!("dir/moved-{number}");
        }
        ws.write(&path, editor.text());
        ws.write("other", number.to_string());
        let id = ws.save().id;
        line.push(id);
        states.insert(id, (path.clone(), editor.lines.clone(), line.clone()));
        if editor.random.chance(15) {
            let back = line[editor.random.below(line.len())];
            ws.open().restore(&RestoreRequest::whole(back), ws.now()).unwrap();
            (path, editor.lines, line) = states[&back].clone();
        }
    }
    assert_eq!(by_line(&blame(&ws, &path, None)), by_git(&ws, &line, &path), "seed {seed}");
    let middle = line[line.len() / 2];
    let (path, _, line) = &states[&middle];
    assert_eq!(by_line(&blame(&ws, path, Some(middle))), by_git(&ws, line, path), "seed {seed}, in the middle");
}

#[test]
fn random_histories_have_the_origins_that_git_blame_reports() {
    let seeds = if is_long() { 1_000 } else { 12 };
    (0..seeds).for_each(compare_with_git);
}

#[test]
fn lines_that_only_the_disk_has_are_unsaved() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n2\n");
    assert_eq!(by_line(&blame(&ws, "a", None)), [None, None], "before the first checkpoint");
    let saved = ws.save().id;
    ws.write("a", "1\nnew\n2\n");
    let origin = Some((saved, "a".to_owned()));
    assert_eq!(by_line(&blame(&ws, "a", None)), [origin.clone(), None, origin.clone()]);
    // A move that is not saved yet is followed as well.
    ws.rename("a", "b");
    assert_eq!(by_line(&blame(&ws, "b", None)), [origin.clone(), None, origin]);
}

#[test]
fn lines_of_a_deleted_checkpoint_are_approximate() {
    let ws = TestWorkspace::new();
    let versions = ["1\n", "1\n2\n", "1\n2\n3\n", "1\n2\n3\n"];
    let save = |(number, text): (usize, &str)| {
        ws.write("a", text);
        ws.write("other", number.to_string());
        ws.save().id
    };
    let ids: Vec<CheckpointId> = versions.into_iter().enumerate().map(save).collect();
    let origins = || {
        let found = blame(&ws, "a", None);
        let origin = |range: &backtrail::BlameRange| {
            let origin = range.origin.as_ref().unwrap();
            (origin.checkpoint.id, origin.approximate)
        };
        found.ranges.iter().map(origin).collect::<Vec<_>>()
    };
    assert_eq!(origins(), [(ids[0], false), (ids[1], false), (ids[2], false)]);
    ws.open().delete(&[ids[2]], false, ws.now()).unwrap();
    assert_eq!(origins(), [(ids[0], false), (ids[1], false), (ids[3], true)], "a checkpoint that left the file alone");
    ws.open().delete(&[ids[0]], false, ws.now()).unwrap();
    assert_eq!(origins(), [(ids[1], true), (ids[3], true)]);
}

#[test]
fn what_has_no_lines_is_refused() {
    let ws = TestWorkspace::new();
    ws.write("bin", b"\0\n");
    ws.write("dir/text", "1\n2\n");
    ws.write("empty", "");
    ws.symlink("dir/text", "link");
    ws.symlink("dir", "through");
    let saved = ws.save().id;
    ws.remove("empty");
    let code = |path: &str, at, lines: Option<std::ops::RangeInclusive<u64>>| {
        ws.open().blame(&ws.workspace_path(path), at, lines.as_ref()).map(|_| ()).map_err(|error| error.code())
    };
    for at in [None, Some(saved)] {
        for path in ["bin", "dir", "link", ""] {
            assert_eq!(code(path, at, None), Err(ErrorCode::Usage), "{path:?} at {at:?}");
        }
        for path in ["nowhere", "through/text", "dir/text/below"] {
            assert_eq!(code(path, at, None), Err(ErrorCode::UnknownPath), "{path:?} at {at:?}");
        }
        for lines in [0..=1, 3..=3, std::ops::RangeInclusive::new(2, 1)] {
            assert_eq!(code("dir/text", at, Some(lines)), Err(ErrorCode::Usage));
        }
        assert_eq!(code("dir/text", at, Some(2..=9)), Ok(()), "the last line may lie behind the end");
    }
    assert_eq!(code("empty", None, None), Err(ErrorCode::UnknownPath));
    assert!(blame(&ws, "empty", Some(saved)).ranges.is_empty());
}
