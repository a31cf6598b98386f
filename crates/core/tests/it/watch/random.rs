//! Thousands of random changes: each save with the watcher holds what a full scan finds.

use std::time::Duration;

use backtrail::disk::delays;
use backtrail_testkit::{Random, TestWorkspace};

use super::{RunningWatcher, assert_save_is_exact, mutations::change, report};

/// Makes `changes` random changes in batches, with a save after each batch. Returns the number of saves that could rely
/// on the watcher.
fn run(seed: u64, changes: usize, restarts: bool) -> u64 {
    let mut random = Random::new(seed);
    let ws = TestWorkspace::in_memory();
    let mut watcher = RunningWatcher::start(&ws);
    let (mut made, mut saves, mut fallbacks) = (0, 0, 0);
    while made < changes {
        for _ in 0..=random.below(8) {
            change(&ws, &mut random);
            made += 1;
        }
        assert_save_is_exact(&ws, &format!("seed {seed}, after {made} changes"));
        saves += 1;
        if restarts && random.chance(2) {
            fallbacks += report(&ws).fallbacks.values().sum::<u64>();
            watcher.stop();
            for _ in 0..random.below(4) {
                change(&ws, &mut random);
            }
            watcher = RunningWatcher::start(&ws);
        }
    }
    fallbacks += report(&ws).fallbacks.values().sum::<u64>();
    ws.assert_store_is_sound();
    saves - fallbacks.min(saves)
}

fn share() -> usize {
    if std::env::var_os("BACKTRAIL_LONG").is_some() { 100_000 } else { 1_500 }
}

#[test]
fn saves_equal_full_scans_after_random_changes() {
    let relied = run(1, share(), true);
    assert!(relied > 0, "no save relied on the watcher");
    println!("{relied} saves relied on the watcher");
}

/// The delays apply to every watcher of this process.
#[test]
fn saves_equal_full_scans_while_the_watcher_is_delayed() {
    delays::set(Duration::from_micros(400));
    run(2, share() / 2, false);
    delays::set(Duration::ZERO);
}
