//! What the fuzzers found worth keeping goes through the same functions here, without a fuzzer: as it is, and changed at
//! random a few times each (many times with `BACKTRAIL_LONG=1`).

use std::{collections::BTreeSet, path::Path};

use backtrail::fuzzing::{self, IgnoreQuestion};
use backtrail_testkit::{CheckIgnore, Random, TestWorkspace, git_output_with};

/// The inputs that are kept for a fuzzer.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let inputs: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() > 20, "{}", directory.display());
    let times = if backtrail_testkit::is_long() { 1_000 } else { 20 };
    let mut random = Random::new(5);
    let changed: Vec<_> = (0..inputs.len() * times).map(|number| changed(&inputs, number, &mut random)).collect();
    println!("{} inputs of {name}, and {} made of them", inputs.len(), changed.len());
    [inputs, changed].concat()
}

/// An input with some bytes of it replaced, removed, said twice, or followed by what another one has.
fn changed(inputs: &[Vec<u8>], number: usize, random: &mut Random) -> Vec<u8> {
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
fn records_and_journals_are_read_as_they_were_written() {
    corpus("record").iter().for_each(|bytes| fuzzing::record(bytes));
    corpus("journal").iter().for_each(|bytes| fuzzing::journal(bytes));
}

#[test]
fn settings_are_understood_or_refused_with_a_line() {
    corpus("settings").iter().for_each(|bytes| fuzzing::settings(bytes));
}

#[test]
fn git_agrees_on_what_is_ignored() {
    let mut git = CheckIgnore::new();
    let questions: Vec<_> = corpus("ignore_rules").iter().filter_map(|bytes| IgnoreQuestion::parse(bytes)).collect();
    assert!(questions.len() > 20);
    for question in questions {
        assert_eq!(question.is_ignored(), git.is_ignored(&question), "here and in git: {question:?}");
    }
}

/// Every name that a tree may have here is one that git takes, with its protection for all systems switched on.
#[test]
fn git_takes_every_name_that_is_taken_here() {
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
    let taken = git_output_with(&ws.root(), &[&protected[..], &["update-index", "-z", "--index-info"]].concat(), lines);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    let listed = git_output_with(&ws.root(), &["ls-files", "-z"], Vec::new()).stdout;
    let listed: BTreeSet<_> =
        listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    let differing = names.symmetric_difference(&listed).map(|name| String::from_utf8_lossy(name));
    assert_eq!(differing.collect::<Vec<_>>(), [""; 0], "taken here or by git alone");
}
