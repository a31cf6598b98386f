//! The conditions that must hold after a fault, at whatever point it struck.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use backtrail_testkit::{Found, Manifest};

use crate::{
    fault::{Fault, Point},
    place::Place,
    scenario::Scenario,
    strace::Done,
};

/// The allowed results of a scenario, known from runs without a fault.
pub(crate) struct Expected {
    /// Every byte before the operation. The next command is known to work in this state.
    start: Manifest,
    /// The allowed trees, each with the id that a save gives it. The tree after the operation is the last one.
    trees: Vec<(Manifest, String)>,
    /// Refs that must exist in any case.
    refs_kept: BTreeSet<String>,
    /// The number of refs after the operation.
    refs_after: usize,
    /// The user's bytes and a path of each, by the id that git gives them.
    contents: BTreeMap<String, (Vec<u8>, String)>,
    git_directories: Vec<Manifest>,
    /// The position of the user's repository for each of the trees. Empty if the operation must not move it.
    git_states: Vec<Vec<String>>,
    /// The files that the operation creates beside the workspace.
    elsewhere: Manifest,
}

/// Determines the allowed results of a scenario that is prepared in this place.
pub(crate) fn expect(place: &Place, scenario: &Scenario) -> Expected {
    place.reset();
    let (start, before) = (place.everything(), place.manifest());
    let refs_before = refs(place);
    let git_directories = place.git_directories();
    let mut trees = Vec::new();
    let mut git_states = Vec::new();
    if scenario.moves_git {
        git_states.push(place.git_state());
    }
    if scenario.is_interrupted {
        for way in [&["recover", "--abort"][..], &["recover"]] {
            place.reset();
            place.ok(way);
            trees.push((place.manifest(), saved_tree(place).unwrap()));
        }
    } else {
        place.reset();
        trees.push((before.clone(), saved_tree(place).unwrap()));
    }
    let problems = store_problems(place, &place.store().unwrap());
    assert!(problems.is_empty(), "{} without any fault: {problems:?}", scenario.name);
    if let Some(change) = scenario.done_by_command {
        place.reset();
        change(place);
        trees.push((place.manifest(), saved_tree(place).unwrap()));
    }
    let contents = contents_of(std::iter::once(&before).chain(trees.iter().map(|(tree, _)| tree).take(1)));
    place.reset();
    let done = place.run_scenario(scenario);
    assert!(done.status.code() == Some(scenario.exit), "{}: {}", scenario.name, String::from_utf8_lossy(&done.stderr));
    let refs_after = refs(place);
    let (after, elsewhere) = (place.manifest(), Manifest::of(&place.path("elsewhere")));
    if scenario.moves_git {
        git_states.push(place.git_state());
    }
    trees.push((after, saved_tree(place).unwrap()));
    Expected {
        start,
        trees,
        refs_kept: refs_before.intersection(&refs_after).cloned().collect(),
        refs_after: refs_after.len(),
        contents,
        git_directories,
        git_states,
        elsewhere,
    }
}

fn contents_of<'a>(trees: impl Iterator<Item = &'a Manifest>) -> BTreeMap<String, (Vec<u8>, String)> {
    let mut found = BTreeMap::new();
    for (path, node) in trees.flat_map(|tree| tree.0.iter()) {
        if let Found::File(_, bytes) = node {
            let path = String::from_utf8_lossy(path).into_owned();
            if !path.contains(".backtrail-") {
                found.insert(backtrail_testkit::blob_id(bytes), (bytes.clone(), path));
            }
        }
    }
    found
}

/// Takes a checkpoint and returns the id of its tree.
fn saved_tree(place: &Place) -> Result<String, String> {
    let output = place.run(&["save", "--json", "-m", "after"]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("the next command fails: {}", stderr.trim()));
    }
    let id = stdout.split("\"id\":").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap_or_default();
    let store = place.store().ok_or("there is no store after a save")?;
    let tree = place.git(&store, &["rev-parse", &format!("{id}^{{tree}}")]);
    Ok(String::from_utf8_lossy(&tree.stdout).trim().to_owned())
}

fn refs(place: &Place) -> BTreeSet<String> {
    let Some(store) = place.store().filter(|store| store.join("backtrail/format").exists()) else {
        return BTreeSet::new();
    };
    let output = place.git(&store, &["for-each-ref", "--format=%(refname)", "refs/checkpoints"]);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The result of a point.
pub(crate) struct Verdict {
    /// The problems that were found. Empty if all is well.
    pub(crate) problems: Vec<String>,
    /// Set if the program failed, or was killed, before it had changed a byte.
    pub(crate) is_untouched: bool,
}

/// Checks everything after a fault.
pub(crate) fn after(place: &Place, scenario: &Scenario, expected: &Expected, point: &Point, done: &Done) -> Verdict {
    let mut problems = check_exit(place, scenario, expected, point, done);
    // From identical bytes the next command does the same as without a fault, and that was checked before the first
    // fault.
    let is_untouched = done.code != Some(scenario.exit) && place.everything() == expected.start;
    if !is_untouched {
        problems.extend(check_next_command(place, scenario, expected, done));
    }
    Verdict { problems, is_untouched }
}

/// Checks that the exit status fits the state on disk.
fn check_exit(place: &Place, scenario: &Scenario, expected: &Expected, point: &Point, done: &Done) -> Vec<String> {
    let mut problems = Vec::new();
    // A lie about more bytes than the buffer has, because the file is shorter in this run. No real system does that.
    if matches!(point.fault, Fault::Lie(_)) && done.stderr.contains("out of range for slice of length") {
        return problems;
    }
    let mut problem = |text: String| problems.push(text);
    if done.stderr.contains("panicked") {
        problem(format!("it panicked: {}", done.stderr.trim()));
    }
    let (new, _) = expected.trees.last().unwrap();
    let elsewhere = || Manifest::of(&place.path("elsewhere"));
    // A failed command that could not be rolled back ends with its own status, and the failed rollback is reported.
    let is_failed_rollback_reported = done.stderr.contains("not rolled back: ");
    match done.code {
        None => {}
        Some(code) if code == scenario.exit && !is_failed_rollback_reported => {
            let differences = new.differences(&place.manifest());
            if !differences.is_empty() && !is_reported(scenario, expected, &place.manifest(), done) {
                problem(format!("it reported success, but the tree is wrong: {}", differences.join("; ")));
            }
            // If the fault struck the command that is tried, there was nothing to roll back.
            let is_without_change = done.stderr.contains("no file had to change");
            if refs(place).len() < expected.refs_after && !is_without_change {
                problem("it reported success, but there is no checkpoint".into());
            }
            if elsewhere() != expected.elsewhere {
                problem(format!("it wrote the wrong files: {:?}", expected.elsewhere.differences(&elsewhere())));
            }
        }
        // If the message itself could not be written, there is only the exit status.
        Some(_) if done.stderr.trim().is_empty() && !["write", "writev"].contains(&point.call.as_str()) => {
            problem("it failed without a message".into());
        }
        Some(_) => {}
    }
    problems
}

/// Checks that the next command works and that nothing is lost.
fn check_next_command(place: &Place, scenario: &Scenario, expected: &Expected, done: &Done) -> Vec<String> {
    let mut problems = Vec::new();
    let mut problem = |text: String| problems.push(text);
    let tree_id = match saved_tree(place) {
        Ok(id) => id,
        Err(why) => {
            problem(why);
            return problems;
        }
    };
    let tree = place.manifest();
    let which = expected.trees.iter().position(|(allowed, _)| *allowed == tree);
    if let (Some(which), true) = (which, scenario.moves_git) {
        let (wanted, found) = (&expected.git_states[which], place.git_state());
        if *wanted != found {
            problem(format!("the repository does not match the files: {found:?} instead of {wanted:?}"));
        }
    }
    match expected.trees.iter().find(|(allowed, _)| *allowed == tree) {
        Some((_, id)) if *id == tree_id => {}
        Some((_, id)) => problem(format!("the next checkpoint is {tree_id} instead of {id}")),
        None if is_reported(scenario, expected, &tree, done) => {}
        None => {
            let differences = expected.trees.iter().map(|(allowed, _)| allowed.differences(&tree).join("; "));
            problem(format!("neither old nor new: {}", differences.collect::<Vec<_>>().join("\n      or: ")));
        }
    }
    let gone: Vec<_> = expected.refs_kept.difference(&refs(place)).cloned().collect();
    if !gone.is_empty() {
        problem(format!("checkpoints are gone: {gone:?}"));
    }
    let store = place.store().unwrap();
    problems.extend(store_problems(place, &store));
    problems.extend(lost(place, &store, &tree, expected));
    problems.extend(leftovers(&store));
    problems.extend(leftovers(&place.path("ws")));
    if !scenario.moves_git && place.git_directories() != expected.git_directories {
        problems.push("a .git directory was changed".into());
    }
    if !Manifest::of(&place.path("outside")).0.is_empty() {
        problems.push("something was written outside".into());
    }
    if scenario.command[0] == "export" {
        let again = place.run_scenario(scenario);
        // An export that was complete and failed at the very end does not have to run again.
        let elsewhere = Manifest::of(&place.path("elsewhere"));
        if elsewhere != expected.elsewhere {
            let message = String::from_utf8_lossy(&again.stderr).trim().to_owned();
            problems.push(format!("the next export: {message} {:?}", expected.elsewhere.differences(&elsewhere)));
        }
    }
    problems
}

/// Returns whether the program reported that a path can't be read and stays, and every path is either as before or as
/// it should be.
fn is_reported(scenario: &Scenario, expected: &Expected, tree: &Manifest, done: &Done) -> bool {
    let is_in = |allowed: &Manifest, path: &Vec<u8>| allowed.0.get(path) == tree.0.get(path);
    let is_in_any = |path: &Vec<u8>| expected.trees.iter().any(|(allowed, _)| is_in(allowed, path));
    let all = expected.trees.iter().map(|(allowed, _)| allowed).chain([tree]);
    let paths: BTreeSet<_> = all.flat_map(|tree| tree.0.keys()).collect();
    // If files could not be read before a command was tried, new files of that command may stay.
    if done.stderr.contains("what could not be read before is as the command left it") {
        return paths.into_iter().all(is_in_any);
    }
    let new = &expected.trees.last().unwrap().0;
    let is_named = |path: &[u8]| done.stderr.contains(&*String::from_utf8_lossy(top(path)));
    let is_known = |path: &Vec<u8>| is_in(new, path) || (is_in_any(path) && is_named(path));
    done.code == Some(scenario.exit) && done.stderr.contains("can't be read") && paths.into_iter().all(is_known)
}

fn top(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Returns the problems that git and the program itself find in the store.
fn store_problems(place: &Place, store: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let checked = place.git(store, &["fsck", "--full", "--strict", "--no-progress"]);
    let text = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
    let bad = ["error", "fatal", "missing", "broken"];
    if !checked.status.success() || text.lines().any(|line| bad.iter().any(|start| line.starts_with(start))) {
        problems.push(format!("git fsck: {}", text.trim()));
    }
    let verified = place.run(&["verify"]);
    if !verified.status.success() {
        let text = String::from_utf8_lossy(&verified.stdout) + String::from_utf8_lossy(&verified.stderr);
        problems.push(format!("verify: {}", text.trim()));
    }
    problems
}

/// Returns the user's bytes that are neither in the workspace nor in the store.
fn lost(place: &Place, store: &Path, tree: &Manifest, expected: &Expected) -> Vec<String> {
    let absent: Vec<_> = expected.contents.iter().filter(|(_, (bytes, _))| !tree.holds(bytes)).collect();
    if absent.is_empty() {
        return Vec::new();
    }
    let listing = place.git(store, &["rev-list", "--objects", "--no-object-names", "--all"]);
    let held: BTreeSet<String> = String::from_utf8_lossy(&listing.stdout).lines().map(str::to_owned).collect();
    let lost = absent.iter().filter(|(id, _)| !held.contains(*id));
    lost.map(|(_, (_, path))| format!("the bytes of {path} are lost")).collect()
}

/// Returns temporary files, staging areas and journals that were not removed, and pins of checkpoints that are gone.
fn leftovers(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_directory = path.is_dir() && !path.is_symlink();
        let is_staged = directory.ends_with("backtrail/stage");
        let is_journal = directory.ends_with("backtrail") && ["journal", "staging"].contains(&name.as_str());
        // A pack without an index is never read.
        let is_half_a_pack = name.ends_with(".pack") && !path.with_extension("idx").exists();
        let is_pin = directory.ends_with("refs/pinned");
        let is_stray = is_pin && !directory.with_file_name("checkpoints").join(&name).exists();
        if name.starts_with(".backtrail-") || is_staged || is_journal || is_half_a_pack || is_stray {
            found.push(format!("left behind: {}", path.display()));
        }
        if is_directory {
            found.extend(leftovers(&path));
        }
    }
    found
}
