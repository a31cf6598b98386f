//! Random sequences of commands that test one promise: contents that a safety checkpoint holds survive for seven days
//! with any retention settings, unless the user deletes that checkpoint.
//!
//! The oracle shares no code with the engine: it reads refs, records and trees through the git program, and has its own
//! clock. `BACKTRAIL_LONG=1` runs many more steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use backtrail::{CheckpointId, Kind, RestoreRequest, SaveRequest, Scope, Settings, Workspace};
use backtrail_testkit::{Random, TestWorkspace, is_long};

use crate::retention::Clocks;

const DAY: u64 = 86_400_000;
const PROMISED: u64 = 7 * DAY;
const PATHS: [&str; 7] = ["a", "b", "d/x", "d/y", "d/e/z", "f/g", "h"];
const KINDS: [Kind; 5] = [Kind::Manual, Kind::Automatic, Kind::Step, Kind::Turn, Kind::Session];

/// A checkpoint as git reads it.
struct Seen {
    is_safety: bool,
    /// The true time at which the checkpoint appeared.
    since: u64,
    /// The ids of its blobs.
    contents: BTreeSet<String>,
}

struct Oracle {
    ws: TestWorkspace,
    clocks: Clocks,
    random: Random,
    user: Settings,
    /// The true time, which jumps of the wall clock do not change.
    time: u64,
    /// The difference between the wall clock and the true time.
    off: i64,
    seen: BTreeMap<String, Seen>,
    /// Contents of safety checkpoints that retention removed early, because another safety checkpoint had them, and the
    /// time until which they must exist.
    owed: BTreeMap<String, u64>,
    contents_written: u64,
    counts: Counts,
}

/// Counts which prove that the sequences reach the cases that matter.
#[derive(Default, Debug)]
struct Counts {
    steps: usize,
    /// Safety checkpoints that were removed within the promised time, because other checkpoints have their contents.
    removed_early: usize,
    removed_late: usize,
    /// The number of times that a safety checkpoint had the only copy of a content.
    only_copies: usize,
}

impl Oracle {
    fn new(seed: u64) -> Self {
        let mut oracle = Self {
            ws: TestWorkspace::in_memory(),
            clocks: Clocks::new(),
            random: Random::new(seed),
            user: Settings::default(),
            time: 0,
            off: 0,
            seen: BTreeMap::new(),
            owed: BTreeMap::new(),
            contents_written: 0,
            counts: Counts::default(),
        };
        oracle.write();
        oracle.save();
        oracle.check(&BTreeSet::new(), "the first save");
        oracle
    }

    fn open(&self) -> Workspace {
        self.clocks.open(&self.ws, &self.user)
    }

    fn now(&mut self) -> jiff::Timestamp {
        self.time += 1_000;
        self.clocks.now()
    }

    fn step(&mut self) {
        let choice = self.random.below(100);
        let mut deleted = BTreeSet::new();
        let what = match choice {
            0..=24 => self.edit(),
            25..=39 => self.save(),
            40..=54 => self.restore(),
            55..=62 => self.attempt(),
            63..=68 => self.undo_or_redo(),
            69..=73 => self.rewind(),
            74..=79 => self.prune(),
            80..=85 => self.change_user_settings(),
            86..=88 => self.change_workspace_settings(),
            89..=91 => self.pin(),
            92 => self.delete(&mut deleted),
            93..=97 => self.wait(),
            98 => self.jump(),
            _ => self.restart(),
        };
        self.counts.steps += 1;
        self.check(&deleted, &what);
    }

    fn edit(&mut self) -> String {
        for _ in 0..=self.random.below(2) {
            self.write();
        }
        "edit".into()
    }

    fn write(&mut self) {
        let path = self.random.pick(&PATHS);
        self.contents_written += 1;
        // Some contents repeat, at the same path or another one.
        let text = if self.random.chance(40) { self.random.below(6) as u64 } else { self.contents_written + 100 };
        if self.ws.exists(path) && (self.random.chance(15) || self.ws.path(path).is_symlink()) {
            self.ws.remove(path);
        } else if !self.ws.exists(path) && self.random.chance(15) {
            self.ws.symlink(format!("target {text}"), path);
        } else {
            let padding = if self.random.chance(20) { self.random.bytes(3_000) } else { Vec::new() };
            self.ws.write(path, [format!("content {text}\n").into_bytes(), padding].concat());
        }
    }

    fn save(&mut self) -> String {
        let kind = self.random.pick(&KINDS);
        let request = SaveRequest { kind: Some(kind), allow_empty: self.random.chance(10), ..SaveRequest::default() };
        let now = self.now();
        self.open().save(&request, now).unwrap();
        format!("save --kind {kind}")
    }

    fn pick_checkpoint(&mut self) -> CheckpointId {
        let ids: Vec<&String> = self.seen.keys().collect();
        ids[self.random.below(ids.len())].parse().unwrap()
    }

    fn restore(&mut self) -> String {
        let target = self.pick_checkpoint();
        let scope = match self.random.chance(25) {
            true => Scope::of_paths(vec![self.ws.workspace_path(self.random.pick(&["a", "d", "h"]))]),
            false => Scope::Whole,
        };
        let request = RestoreRequest { scope, skip_conflicts: true, ..RestoreRequest::whole(target) };
        let now = self.now();
        // A path that the target does not hold is an error, and changes nothing.
        drop(self.open().restore(&request, now));
        format!("restore {target}")
    }

    /// Performs the operations of a `try` that fails.
    fn attempt(&mut self) -> String {
        let request = SaveRequest { kind: Some(Kind::Automatic), ..SaveRequest::default() };
        let now = self.now();
        let way_back = self.open().save(&request, now).unwrap().checkpoint.id;
        self.check(&BTreeSet::new(), "the save of a try");
        self.write();
        let now = self.now();
        self.open().restore(&RestoreRequest::whole(way_back), now).unwrap();
        "try".into()
    }

    fn undo_or_redo(&mut self) -> String {
        let now = self.now();
        if self.random.chance(60) {
            self.open().undo(now).unwrap();
            "undo".into()
        } else {
            self.open().redo(now).unwrap();
            "redo".into()
        }
    }

    fn rewind(&mut self) -> String {
        let word = format!("@~{}", 1 + self.random.below(3));
        let now = self.now();
        let workspace = self.open();
        if let Ok(target) = workspace.resolve(&word, &now.to_zoned(jiff::tz::TimeZone::UTC)) {
            workspace.restore(&RestoreRequest::whole(target), now).unwrap();
        }
        format!("rewind to {word}")
    }

    fn prune(&mut self) -> String {
        let now = self.now();
        self.open().prune(now).unwrap();
        "prune".into()
    }

    fn change_user_settings(&mut self) -> String {
        let mut settings = Settings::default();
        let limits = &mut settings.retention;
        limits.safety = self.random.pick(&[0, 1, 3, 20]);
        limits.automatic = self.random.pick(&[0, 1, 5]);
        limits.step = self.random.pick(&[0, 2, 100]);
        limits.turn = self.random.pick(&[0, 2, 200]);
        limits.session = self.random.pick(&[0, 3]);
        let seconds = self.random.pick(&[None, None, Some(1), Some(3_600), Some(2 * 86_400)]);
        limits.max_age = seconds.map(Duration::from_secs);
        limits.max_bytes = self.random.pick(&[None, None, Some(1), Some(40_000), Some(80_000)]);
        settings.checkpoints.max_checkpoints = self.random.pick(&[0, 3, 200]);
        self.user = settings;
        "a change of the user's settings".into()
    }

    fn change_workspace_settings(&mut self) -> String {
        let all = "step = 0\nautomatic = 0\nsession = 0\nturn = 0\n";
        let text = self.random.pick(&[
            "[retention]\nsafety = 0\nunsaved = \"0s\"\nmax_age = \"0s\"\nmax_bytes = \"1B\"\n",
            "[checkpoints]\nmax_checkpoints = 0\n[retention]\nunsaved = \"8d\"\nsafety = 2\n",
            "",
        ]);
        let more = if text.contains("[retention]") && self.random.chance(50) { all } else { "" };
        self.ws.write("backtrail.toml", format!("{text}{more}"));
        "a change of backtrail.toml".into()
    }

    fn pin(&mut self) -> String {
        let (id, now) = (self.pick_checkpoint(), self.now());
        if self.random.chance(40) {
            self.open().pin(&id, now).unwrap();
            return format!("pin {id}");
        }
        self.open().unpin(&id, now).unwrap();
        format!("unpin {id}")
    }

    fn delete(&mut self, deleted: &mut BTreeSet<String>) -> String {
        let (id, now) = (self.pick_checkpoint(), self.now());
        if self.seen.len() > 3 {
            self.open().delete_for_good(&[id], true, now).unwrap();
            deleted.insert(id.to_string());
        }
        format!("delete {id}")
    }

    fn wait(&mut self) -> String {
        let milliseconds = self.random.number() % DAY;
        self.time += milliseconds;
        self.clocks.pass(milliseconds);
        "time passes".into()
    }

    /// Sets the wall clock wrong, or right again.
    fn jump(&mut self) -> String {
        let off = if self.off == 0 { self.random.pick(&[40, 400, -40]) * DAY as i64 } else { 0 };
        self.clocks.jump(off - self.off);
        self.off = off;
        format!("the clock is off by {} days", off / DAY as i64)
    }

    /// Reboots the machine, but only while its clock is right: after a reboot, a wrong clock can't be detected.
    fn restart(&mut self) -> String {
        if self.off == 0 {
            self.clocks.restart();
            let now = self.now();
            self.open().save(&SaveRequest { allow_empty: true, ..SaveRequest::default() }, now).unwrap();
        }
        "a restart".into()
    }

    /// Checks the checkpoints that exist now against those that existed before.
    fn check(&mut self, deleted: &BTreeSet<String>, what: &str) {
        let present = self.present();
        let held: BTreeSet<&String> = present.values().flat_map(|seen| &seen.contents).collect();
        for (id, seen) in self.seen.iter().filter(|(id, seen)| seen.is_safety && !deleted.contains(*id)) {
            let age = self.time - seen.since;
            let lost: Vec<&String> = seen.contents.iter().filter(|content| !held.contains(content)).collect();
            assert!(
                age > PROMISED || lost.is_empty(),
                "step {}: {what} lost {lost:?}, which {id} held for {} hours; {:?}",
                self.counts.steps,
                age / 3_600_000,
                self.user
            );
            if !present.contains_key(id) {
                *(if age > PROMISED { &mut self.counts.removed_late } else { &mut self.counts.removed_early }) += 1;
            }
        }
        let of_others: BTreeSet<&String> =
            present.values().filter(|seen| !seen.is_safety).flat_map(|seen| &seen.contents).collect();
        let removed = self.seen.iter().filter(|(id, seen)| seen.is_safety && !present.contains_key(*id));
        for (_, seen) in removed.filter(|(id, _)| !deleted.contains(*id)) {
            for content in &seen.contents {
                let until = self.owed.entry(content.clone()).or_default();
                *until = seen.since.max(until.saturating_sub(PROMISED)) + PROMISED;
            }
        }
        let deleted_contents: BTreeSet<&String> =
            deleted.iter().filter_map(|id| self.seen.get(id)).flat_map(|seen| &seen.contents).collect();
        let time = self.time;
        self.owed.retain(|content, until| {
            *until >= time && !of_others.contains(content) && !deleted_contents.contains(content)
        });
        for content in self.owed.keys() {
            assert!(held.contains(content), "step {}: {what} lost {content}, which was owed", self.counts.steps);
        }
        let has_only_copy = |seen: &&Seen| seen.is_safety && !seen.contents.iter().all(|own| of_others.contains(own));
        self.counts.only_copies += present.values().filter(has_only_copy).count();
        self.seen = present;
    }

    /// Returns all checkpoints as git reads them now.
    fn present(&mut self) -> BTreeMap<String, Seen> {
        let format = "--format=%(refname:lstrip=2)";
        let listing = self.ws.store_git(&["for-each-ref", format, "refs/checkpoints"]);
        let listing = String::from_utf8_lossy(&listing).into_owned();
        let ids = listing.lines().map(str::to_owned);
        let mut present = BTreeMap::new();
        for id in ids {
            let seen = self.seen.remove(&id).unwrap_or_else(|| self.read(&id));
            present.insert(id, seen);
        }
        // The comparison still needs the removed ones.
        let gone = std::mem::take(&mut self.seen);
        self.seen = present.iter().map(|(id, seen)| (id.clone(), seen.copy())).chain(gone).collect();
        present
    }

    fn read(&self, id: &str) -> Seen {
        let record = String::from_utf8_lossy(&self.ws.store_git(&["cat-file", "commit", id])).into_owned();
        let record = record.lines().rev().find_map(|line| line.strip_prefix("Backtrail-Record: ")).unwrap();
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        let tree = self.ws.tree_in_store(&id.parse().unwrap());
        let contents = tree.into_iter().map(|(_, _, blob)| blob).collect();
        Seen { is_safety: record["kind"] == "safety", since: self.time, contents }
    }
}

impl Seen {
    fn copy(&self) -> Self {
        Self { contents: self.contents.clone(), ..*self }
    }
}

fn run(seed: u64, steps: usize) -> Counts {
    let mut oracle = Oracle::new(seed);
    for number in 0..steps {
        oracle.step();
        if number % 400 == 399 {
            oracle.ws.assert_store_is_sound();
        }
    }
    oracle.ws.assert_store_is_sound();
    oracle.counts
}

#[test]
fn the_only_copy_of_unsaved_work_survives_any_sequence_of_commands() {
    let (seeds, steps) = if is_long() { (40, 2_500) } else { (4, 600) };
    let run_seed = |seed| std::thread::spawn(move || run(seed, steps));
    let mut removed = (0, 0);
    for pair in (0..seeds).collect::<Vec<u64>>().chunks(2) {
        let running: Vec<_> = pair.iter().copied().map(run_seed).collect();
        for (seed, running) in pair.iter().zip(running) {
            let counts = running.join().unwrap_or_else(|_| panic!("seed {seed}"));
            println!("seed {seed}: {counts:?}");
            assert!(counts.only_copies > 100, "seed {seed}: {counts:?}");
            removed = (removed.0 + counts.removed_early, removed.1 + counts.removed_late);
        }
    }
    assert!(removed.0 > 10 && removed.1 > 10, "retention removed too few safety checkpoints: {removed:?}");
}
