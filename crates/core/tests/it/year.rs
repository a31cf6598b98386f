//! A simulated year on a machine: saves, restores, deletes, prunes and pins in many workspaces, with a simulated clock.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use backtrail::{Checkpoint, CheckpointId, Kind, ListFilter, RestoreRequest, SaveRequest, Scope, Settings, Workspace};
use backtrail_testkit::{Random, TestWorkspace, git};
use jiff::Timestamp;

const WORKSPACES: usize = 5;
const YEAR_MILLISECONDS: i64 = 365 * 86_400_000;

/// One workspace of the machine, with the checkpoints that must not be removed from it.
struct Place {
    root: PathBuf,
    settings: Settings,
    /// Manual and feature checkpoints that were not deleted explicitly.
    promised: BTreeSet<CheckpointId>,
    pinned: BTreeSet<CheckpointId>,
}

struct Machine {
    ws: TestWorkspace,
    places: Vec<Place>,
    random: Random,
    clock: i64,
    tick: i64,
    saves: Vec<Duration>,
    lists: Vec<Duration>,
}

fn settings(number: usize) -> Settings {
    let mut settings = Settings::default();
    match number {
        0 => {}
        1 => settings.checkpoints.max_checkpoints = 30,
        2 => settings.retention.max_age = Some(Duration::from_secs(20 * 86_400)),
        3 => settings.retention.max_bytes = Some(400_000),
        _ => (settings.retention.step, settings.retention.safety, settings.retention.turn) = (10, 3, 7),
    }
    settings
}

impl Machine {
    fn new(seed: u64, operations: usize) -> Self {
        let ws = TestWorkspace::new();
        let place = |number: usize| {
            let root = ws.base().join(format!("ws{number}"));
            fs::create_dir(&root).unwrap();
            for file in 0..10 {
                fs::write(root.join(format!("f{file}")), format!("{number} {file}\n")).unwrap();
            }
            Place { root, settings: settings(number), promised: BTreeSet::new(), pinned: BTreeSet::new() }
        };
        let places = (0..WORKSPACES).map(place).collect();
        let tick = YEAR_MILLISECONDS / operations as i64;
        let random = Random::new(seed);
        Self { ws, places, random, clock: 1_800_000_000_000, tick, saves: Vec::new(), lists: Vec::new() }
    }

    fn now(&mut self) -> Timestamp {
        self.clock += 1 + self.random.below(2 * self.tick as usize) as i64;
        Timestamp::from_millisecond(self.clock).unwrap()
    }

    fn open(&self, at: usize) -> Workspace {
        self.ws.open_with(&self.places[at].root, self.places[at].settings.clone())
    }

    fn list(&mut self, at: usize) -> Vec<Checkpoint> {
        let started = Instant::now();
        let listed = self.open(at).list(&ListFilter::default()).unwrap();
        self.lists.push(started.elapsed());
        listed
    }

    fn pick(&mut self, at: usize) -> Option<Checkpoint> {
        let mut listed = self.list(at);
        if listed.is_empty() { None } else { Some(listed.swap_remove(self.random.below(listed.len()))) }
    }

    fn step(&mut self) {
        let at = self.random.below(self.places.len());
        let now = self.now();
        match self.random.below(100) {
            0..62 => self.save(at, now),
            62..74 => self.restore(at, now),
            74..81 => drop(self.open(at).undo(now).unwrap()),
            81..84 => drop(self.open(at).redo(now).unwrap()),
            84..90 => self.delete(at, now),
            90..96 => self.pin(at, now),
            96..98 => {
                self.open(at).prune(now).unwrap();
                self.check_bounds(at, now);
            }
            _ => self.delete_old(at, now),
        }
    }

    fn save(&mut self, at: usize, now: Timestamp) {
        for _ in 0..=self.random.below(2) {
            let file = self.places[at].root.join(format!("f{}", self.random.below(12)));
            let count = self.random.below(3_000);
            fs::write(file, self.random.bytes(count)).unwrap();
        }
        let kinds = [Kind::Step, Kind::Step, Kind::Step, Kind::Turn, Kind::Automatic, Kind::Session];
        let kind = match self.random.below(100) {
            0..3 => Kind::Manual,
            3 => Kind::Feature,
            _ => kinds[self.random.below(kinds.len())],
        };
        let workspace = self.open(at);
        let started = Instant::now();
        let saved = workspace.save(&SaveRequest { kind: Some(kind), ..Default::default() }, now).unwrap();
        self.saves.push(started.elapsed());
        if saved.created && matches!(kind, Kind::Manual | Kind::Feature) {
            self.places[at].promised.insert(saved.checkpoint.id);
        }
        if saved.created {
            self.check_bounds(at, now);
        }
    }

    fn restore(&mut self, at: usize, now: Timestamp) {
        let Some(target) = self.pick(at) else { return };
        let mut request = RestoreRequest::whole(target.id);
        if self.random.below(3) == 0 {
            let file = format!("f{}", self.random.below(12));
            request.scope = Scope::of_paths(vec![self.ws.workspace_path(&file)]);
        }
        match self.open(at).restore(&request, now) {
            // Neither the workspace nor the target has the path.
            Ok(_) | Err(backtrail::Error::UnknownPath { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn delete(&mut self, at: usize, now: Timestamp) {
        let Some(target) = self.pick(at) else { return };
        if target.kind == Kind::Feature || (target.kind == Kind::Manual && self.random.below(4) > 0) {
            return;
        }
        self.open(at).delete(&[target.id], false, now).unwrap();
        self.places[at].promised.remove(&target.id);
        self.places[at].pinned.remove(&target.id);
    }

    fn delete_old(&mut self, at: usize, now: Timestamp) {
        let workspace = self.open(at);
        let old = workspace.older_than(Duration::from_secs(200 * 86_400), Some(Kind::Turn), false, now).unwrap();
        workspace.delete(&old, false, now).unwrap();
    }

    fn pin(&mut self, at: usize, now: Timestamp) {
        let Some(target) = self.pick(at) else { return };
        let pinned = &mut self.places[at].pinned;
        let is_over = pinned.len() >= 5;
        if let Some(old) = pinned.iter().next().copied().filter(|_| is_over) {
            pinned.remove(&old);
            self.open(at).unpin(&old, now).unwrap();
        }
        self.places[at].pinned.insert(target.id);
        self.open(at).pin(&target.id, now).unwrap();
    }

    /// Checks, after a save or a prune, that the retention limits are met and no protected checkpoint is gone.
    fn check_bounds(&mut self, at: usize, now: Timestamp) {
        let listed = self.list(at);
        let place = &self.places[at];
        let ids: BTreeSet<CheckpointId> = listed.iter().map(|checkpoint| checkpoint.id).collect();
        let kept: BTreeSet<CheckpointId> = place.promised.union(&place.pinned).copied().collect();
        assert!(kept.is_subset(&ids), "gone although protected: {:?}", kept.difference(&ids).collect::<Vec<_>>());
        let current = self.open(at).current().unwrap();
        let latest_safety = listed.iter().find(|checkpoint| checkpoint.kind == Kind::Safety).map(|safety| safety.id);
        let limits = &place.settings.retention;
        let is_recent = |checkpoint: &Checkpoint| {
            let age = now.as_millisecond() - checkpoint.time.as_millisecond();
            checkpoint.kind == Kind::Safety && age <= limits.unsaved.as_millis() as i64
        };
        let is_free = |checkpoint: &&Checkpoint| {
            !kept.contains(&checkpoint.id)
                && Some(checkpoint.id) != current
                && Some(checkpoint.id) != latest_safety
                && !is_recent(checkpoint)
        };
        let free: Vec<&Checkpoint> = listed.iter().filter(is_free).collect();
        for (kind, limit) in [
            (Kind::Automatic, limits.automatic),
            (Kind::Session, limits.session),
            (Kind::Turn, limits.turn),
            (Kind::Step, limits.step),
            (Kind::Safety, limits.safety),
        ] {
            let count = free.iter().filter(|checkpoint| checkpoint.kind == kind).count() as u64;
            assert!(count <= limit, "workspace {at}: {count} of kind {kind}");
        }
        let together = free.iter().filter(|checkpoint| checkpoint.kind != Kind::Turn).count() as u64;
        assert!(together <= place.settings.checkpoints.max_checkpoints, "workspace {at}: {together}");
        if let Some(age) = limits.max_age {
            let oldest = now.as_millisecond() - age.as_millis() as i64;
            assert!(free.iter().all(|checkpoint| checkpoint.time.as_millisecond() >= oldest), "older than max_age");
        }
        let store = self.open(at).store_directory().to_owned();
        if let Some(most) = limits.max_bytes {
            let bytes = bytes_below(&store);
            // The stat cache, the timeline and the events are written after retention has measured the store.
            let is_applied = self.open(at).plan_prune(now).unwrap().not_applied.is_empty();
            assert!(free.is_empty() || !is_applied || bytes <= most + 100_000, "workspace {at}: {bytes} bytes");
        }
        check_files(&store, listed.len());
    }

    fn check_stores(&self) {
        (0..self.places.len()).for_each(|at| self.check_store(at));
    }

    fn check_store(&self, at: usize) {
        let workspace = self.open(at);
        let found = workspace.verify().unwrap();
        assert!(found.damaged.is_empty(), "workspace {at}: {:?}", found.damaged);
        let store = workspace.store_directory().to_str().unwrap();
        git(&self.places[at].root, &["--git-dir", store, "fsck", "--full", "--strict"]);
    }
}

/// Checks that the number of files and the lengths of logs are bounded.
fn check_files(store: &Path, checkpoints: usize) {
    let names = |path: &str| fs::read_dir(store.join(path)).map_or(0, |entries| entries.count());
    let lines = |path: &str| fs::read(store.join(path)).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count());
    assert!(names("objects/pack") <= 2 * 60, "{} files of packs", names("objects/pack"));
    assert!(names("refs/checkpoints") <= 110, "{} loose refs", names("refs/checkpoints"));
    assert!(lines("backtrail/timeline") <= 2 * checkpoints + 250, "{} lines of timeline", lines("backtrail/timeline"));
    assert!(lines("backtrail/ops") <= 2 * checkpoints + 2_000, "{} lines of ops", lines("backtrail/ops"));
    assert!(fs::metadata(store.join("backtrail/events.jsonl")).unwrap().len() < 1_200_000);
    assert_eq!(names("backtrail/stage"), 0, "a staging area is left");
    assert!(!store.join("backtrail/journal").exists());
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => bytes_below(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}

fn average(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / times.len().max(1) as u32
}

fn simulate(seed: u64, operations: usize) {
    let mut machine = Machine::new(seed, operations);
    for number in 0..operations {
        machine.step();
        if number % 2_500 == 2_499 {
            machine.check_stores();
            println!("{} operations", number + 1);
        }
    }
    machine.check_stores();
    for (what, times) in [("save", &machine.saves), ("list", &machine.lists)] {
        let part = (times.len() / 10).max(1);
        println!(
            "{what}: {:?} at the start, {:?} at the end",
            average(&times[..part]),
            average(&times[times.len() - part..])
        );
    }
}

/// Regression: every deletion and restore left a permanent line in the log, and each command read all of them.
#[test]
fn operations_that_nothing_refers_to_are_removed_from_the_log() {
    let mut machine = Machine::new(3, 1_000);
    let step = SaveRequest { kind: Some(Kind::Step), ..Default::default() };
    let at = WORKSPACES - 1;
    let root = machine.places[at].root.clone();
    let first = machine.open(at).save(&SaveRequest::default(), Timestamp::UNIX_EPOCH).unwrap().checkpoint.id;
    let ops = machine.open(at).store_directory().join("backtrail/ops");
    let mut longest = 0;
    for number in 0..150 {
        fs::write(root.join("f0"), format!("{number}")).unwrap();
        let now = machine.now();
        machine.open(at).save(&step, now).unwrap();
        if number % 10 == 9 {
            machine.open(at).restore(&RestoreRequest::whole(first), now).unwrap();
            machine.open(at).undo(now).unwrap().expect("a restore to take back");
        }
        longest = longest.max(fs::read(&ops).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count()));
    }
    let length = fs::read(&ops).unwrap().split(|byte| *byte == b'\n').count();
    assert!(longest > length, "the log never became shorter");
    let workspace = machine.open(at);
    let now = jiff::Zoned::now();
    assert_eq!(workspace.resolve("@~10", &now).unwrap(), first, "deleted checkpoints are skipped");
    let steps = ListFilter { kind: Some(Kind::Step), ..ListFilter::default() };
    assert_eq!(workspace.list(&steps).unwrap().len(), 10);
    let moment = machine.now();
    workspace.redo(moment).unwrap().expect("the undo can still be taken back");
    assert_eq!(workspace.current().unwrap(), Some(first));
    machine.check_store(at);
}

#[test]
fn retention_and_stores_stay_correct_for_some_weeks() {
    simulate(1, 400);
}

#[test]
fn retention_and_stores_stay_correct_for_a_year() {
    if backtrail_testkit::is_long() {
        simulate(2, 20_000);
    }
}
