//! Runs the stored inputs of the fuzzers without a fuzzer: unchanged, and in a few random variants each (in many with
//! `BACKTRAIL_LONG=1`).

use std::{collections::BTreeSet, path::Path};

use backtrail::fuzzing::{self, IgnoreQuestion};
use backtrail_testkit::{CheckIgnore, Random, TestWorkspace, git_output_with};

/// Returns the stored inputs of a fuzzer, with random variants of them.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let inputs: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() > 20, "{}", directory.display());
    let times = if backtrail_testkit::is_long() { 1_000 } else { 20 };
    let mut random = Random::new(5);
    let variants: Vec<_> = (0..inputs.len() * times).map(|number| variant(&inputs, number, &mut random)).collect();
    println!("{} inputs of {name}, and {} variants", inputs.len(), variants.len());
    [inputs, variants].concat()
}

/// Returns an input with some bytes removed, duplicated, or replaced by random bytes or by a piece of another input.
fn variant(inputs: &[Vec<u8>], number: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = inputs[number % inputs.len()].clone();
    for _ in 0..1 + random.below(3) {
        let start = random.below(bytes.len() + 1);
        let end = (start + random.below(8)).min(bytes.len());
        let other = &inputs[random.below(inputs.len())];
        let from = random.below(other.len() + 1);
        let piece = match random.below(5) {
            0 => Vec::new(),
            1 => random.bytes(end - start),
            2 => [&bytes[start..end], &bytes[start..end]].concat(),
            3 => vec![random.pick(b"*?[]!/\\\".0 -\n\r#{}~")],
            _ => other[from..(from + random.below(24)).min(other.len())].to_vec(),
        };
        bytes.splice(start..end, piece);
    }
    bytes
}

#[test]
fn records_and_journals_are_read_back_unchanged() {
    corpus("record").iter().for_each(|bytes| fuzzing::record(bytes));
    corpus("journal").iter().for_each(|bytes| fuzzing::journal(bytes));
}

#[test]
fn settings_are_accepted_or_refused_with_a_line_number() {
    corpus("settings").iter().for_each(|bytes| fuzzing::settings(bytes));
}

#[test]
fn git_ignores_the_same_paths() {
    let mut git = CheckIgnore::new();
    let questions: Vec<_> = corpus("ignore_rules").iter().filter_map(|bytes| IgnoreQuestion::parse(bytes)).collect();
    assert!(questions.len() > 20);
    for question in questions {
        assert_eq!(question.is_ignored(), git.is_ignored(&question), "Backtrail and git disagree: {question:?}");
    }
}

/// Git accepts every name that Backtrail allows in a tree, even with git's protection for all systems switched on.
#[test]
fn git_accepts_every_name_that_backtrail_accepts() {
    let names: BTreeSet<_> = corpus("tree").iter().flat_map(|bytes| fuzzing::tree(bytes)).collect();
    assert!(names.len() > 10, "{names:?}");
    let ws = TestWorkspace::in_memory();
    ws.git_init();
    let mut lines = Vec::new();
    for name in &names {
        lines.extend_from_slice(format!("100644 {}\t", "12".repeat(20)).as_bytes());
        lines.extend_from_slice(name);
        lines.push(0);
    }
    let protected = ["-c", "core.protectNTFS=true", "-c", "core.protectHFS=true"];
    let added = git_output_with(&ws.root(), &[&protected[..], &["update-index", "-z", "--index-info"]].concat(), lines);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let listed = git_output_with(&ws.root(), &["ls-files", "-z"], Vec::new()).stdout;
    let listed: BTreeSet<_> =
        listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    let differing = names.symmetric_difference(&listed).map(|name| String::from_utf8_lossy(name));
    assert_eq!(differing.collect::<Vec<_>>(), [""; 0], "names that only Backtrail or only git accepts");
}
