//! Applies the sweep to git's own commands, for comparison.
//!
//! Counts the problems that a user would find afterwards: a tree that is neither old nor new, files that are missing or
//! torn, a lock that blocks the next command, concurrent commits that failed.

use std::process::{Command, ExitCode, Stdio};

use backtrail_testkit::{Found, Manifest};

use crate::{
    Arguments,
    fault::{self, Fault, Point},
    place::Place,
    scenario::{Scenario, scenario},
    strace,
};

const RESET: Scenario = scenario("git reset --hard", prepare, &["reset", "-q", "--hard", "HEAD~1"]);
const COMMIT: Scenario = scenario("git commit", prepare, &["commit", "-q", "-a", "-m", "swept"]);

/// Sweeps git instead of the program.
pub(crate) fn compare(_: &Arguments) -> ExitCode {
    let program = which_git();
    let place = Place::new(&program, 0);
    for scenario in [RESET, COMMIT] {
        kill_everywhere(&place, &scenario);
    }
    commit_concurrently(&place, 50);
    ExitCode::SUCCESS
}

fn which_git() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("git")).find(|path| path.is_file());
    found.unwrap_or_else(|| "git".into())
}

/// Prepares two commits with edits, deletions and new files between them.
fn prepare(place: &Place) {
    let git = |words: &[&str]| assert!(place.git(&place.path("ws"), words).status.success(), "git {words:?}");
    git(&["init", "-q"]);
    for number in 0..20 {
        place.write(&format!("d{}/edited{number}", number % 4), "one\n");
        place.write(&format!("deleted{number}"), "one\n");
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    for number in 0..20 {
        place.write(&format!("d{}/edited{number}", number % 4), "two, and longer\n");
        place.remove(&format!("deleted{number}"));
        place.write(&format!("added{number}"), "two\n");
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "two"]);
    place.write("d0/edited0", "unsaved\n");
}

fn kill_everywhere(place: &Place, scenario: &Scenario) {
    place.clear();
    (scenario.prepare)(place);
    place.remember();
    let old = place.manifest();
    let calls = strace::baseline(place, scenario);
    let new = place.manifest();
    let points: Vec<Point> = fault::points(&calls).into_iter().filter(|point| point.fault == Fault::Kill).collect();
    let (mut mixed, mut torn, mut locked, mut lost) = (0, 0, 0, 0);
    for point in &points {
        place.reset();
        strace::inject(place, scenario, point);
        let tree = place.manifest();
        mixed += usize::from(tree != old && tree != new);
        torn += usize::from(has_torn_file(&tree, &old, &new));
        lost += usize::from(!tree.holds(b"unsaved\n"));
        let next = place.git(&place.path("ws"), &["add", "-A"]);
        locked += usize::from(!next.status.success());
    }
    println!("{} killed at each of {} calls that change something:", scenario.name, points.len());
    println!("  {mixed} times the tree is neither old nor new");
    println!("  {torn} times a file is missing or torn");
    println!("  {locked} times a lock blocks the next command");
    println!("  {lost} times the unsaved edit is lost");
}

/// Returns whether a file has bytes of neither side, or is missing although both sides have it.
fn has_torn_file(tree: &Manifest, old: &Manifest, new: &Manifest) -> bool {
    let is_torn = |(path, found): (&Vec<u8>, &Found)| {
        matches!(found, Found::File(..)) && old.0.get(path) != Some(found) && new.0.get(path) != Some(found)
    };
    let is_missing = |path: &Vec<u8>| old.0.contains_key(path) && !tree.0.contains_key(path);
    tree.0.iter().any(is_torn) || new.0.keys().any(is_missing)
}

fn commit_concurrently(place: &Place, count: usize) {
    place.clear();
    prepare(place);
    let start = |number: usize| {
        place.write(&format!("by{number}"), "x\n");
        let mut command = Command::new("sh");
        place.set_environment(&mut command);
        command.args(["-c", &format!("git add -A && git commit -q -m {number}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..count).map(start).collect();
    let failed = children.into_iter().map(|mut child| child.wait().unwrap()).filter(|status| !status.success()).count();
    println!("{count} concurrent `git add -A && git commit`: {failed} failed");
}
