//! Checkpoints that retention never removes, and the data that a kept checkpoint needs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use backtrail::{
    BootClock, BootTime, Checkpoint, CheckpointId, ClockDoubt, Kind, ListFilter, Loss, NotApplied, Options,
    RestoreRequest, SaveRequest, Saved, Settings, Workspace,
};
use backtrail_testkit::{Random, TestWorkspace};
use jiff::Timestamp;

/// Takes an automatic checkpoint of a file with this content.
fn automatic(ws: &TestWorkspace, content: &str) -> Checkpoint {
    ws.write("file", content);
    ws.save_with(&SaveRequest { kind: Some(Kind::Automatic), ..SaveRequest::default() }).checkpoint
}

#[test]
fn the_current_checkpoint_and_the_target_of_undo_are_kept() {
    let ws = TestWorkspace::new();
    let [first, second, third] = ["1\n", "2\n", "3\n"].map(|content| automatic(&ws, content));
    ws.write("file", "unsaved\n");
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    let mut settings = Settings::default();
    (settings.retention.automatic, settings.retention.safety) = (1, 1);
    let workspace = ws.open_with(&ws.root(), settings);
    let pruned = workspace.prune(ws.now()).unwrap();
    assert_eq!(pruned.deleted, [second.id], "the newest is kept, and the oldest, which is `@`");
    let listed: Vec<_> = workspace.list(&ListFilter::default()).unwrap().iter().map(|found| found.id).collect();
    assert!(listed.contains(&first.id) && listed.contains(&third.id), "{listed:?}");
    assert_eq!(workspace.current().unwrap(), Some(first.id));
    workspace.undo(ws.now()).unwrap().expect("there is something to undo");
    assert_eq!(ws.read("file").unwrap(), b"unsaved\n");
    ws.assert_store_is_sound();
}

#[test]
fn all_data_of_a_kept_checkpoint_is_kept() {
    let ws = TestWorkspace::new();
    ws.write("shared/deep/file", "in each of them\n");
    ws.write_mode("secret", "with a mode of its own\n", 0o640);
    let save = |number: u8| {
        ws.write("own", format!("{number}\n"));
        let attachments = vec![("log".to_owned(), vec![number; 10_000])];
        let saved = ws.save_with(&SaveRequest { attachments, ..SaveRequest::default() });
        (saved.checkpoint.id, ws.manifest())
    };
    let made: Vec<_> = (0..4).map(save).collect();
    ws.open().delete(&[made[0].0, made[2].0], false, ws.now()).unwrap();
    ws.open().prune(ws.now()).unwrap();
    assert!(!ws.is_in_store(b"2\n"), "contents that only a deleted checkpoint had are gone");
    assert!(ws.open().verify().unwrap().damaged.is_empty());
    ws.assert_store_is_sound();
    for number in [1, 3] {
        let (id, tree) = &made[number];
        assert_eq!(ws.open().attachment(id, "log").unwrap(), vec![number as u8; 10_000]);
        ws.open().restore(&RestoreRequest::whole(*id), ws.now()).unwrap();
        assert_eq!(tree.differences(&ws.manifest()), Vec::<String>::new());
    }
}

#[test]
fn a_workspace_has_a_current_checkpoint_while_any_is_left() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let one = ws.save();
    ws.write("a", "2");
    let two = ws.save();
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    ws.open().delete(&[one.id], false, ws.now()).unwrap();
    assert_eq!(ws.open().current().unwrap(), Some(two.id));
    assert_eq!(ws.open().status(None).unwrap().changes.len(), 1, "the files are those of the deleted checkpoint");
}

/// A wall clock and a boot-time clock that a test sets.
#[derive(Clone)]
pub(crate) struct Clocks(Arc<Mutex<Times>>);

struct Times {
    wall: i64,
    since_boot: u64,
    boot: u32,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Times { wall: 1_800_000_000_000, since_boot: 50_000, boot: 0 })))
    }

    /// Advances both clocks.
    pub(crate) fn pass(&self, milliseconds: u64) {
        let mut times = self.0.lock().unwrap();
        times.wall += milliseconds as i64;
        times.since_boot += milliseconds;
    }

    /// Sets the wall clock ahead or back.
    pub(crate) fn jump(&self, milliseconds: i64) {
        self.0.lock().unwrap().wall += milliseconds;
    }

    /// Reboots the machine.
    pub(crate) fn restart(&self) {
        let mut times = self.0.lock().unwrap();
        (times.boot, times.since_boot) = (times.boot + 1, 0);
    }

    /// Advances both clocks by a second and returns the wall clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.pass(1_000);
        Timestamp::from_millisecond(self.0.lock().unwrap().wall).unwrap()
    }

    pub(crate) fn boot_clock(&self) -> BootClock {
        let times = Arc::clone(&self.0);
        BootClock::new(move || {
            let times = times.lock().unwrap();
            let since_boot = Duration::from_millis(times.since_boot);
            Some(BootTime { boot: format!("boot {}", times.boot), since_boot })
        })
    }

    pub(crate) fn open(&self, ws: &TestWorkspace, user: &Settings) -> Workspace {
        let settings = user.clone().with_workspace(&ws.root()).unwrap();
        ws.open_as(&ws.root(), Options { settings, boot_clock: self.boot_clock(), ..Options::default() })
    }
}

const DAY: u64 = 86_400_000;

fn step(workspace: &Workspace, ws: &TestWorkspace, content: impl AsRef<[u8]>, now: Timestamp) -> Saved {
    ws.write("file", content);
    workspace.save(&SaveRequest { kind: Some(Kind::Step), ..SaveRequest::default() }, now).unwrap()
}

fn listed(workspace: &Workspace) -> Vec<CheckpointId> {
    workspace.list(&ListFilter::default()).unwrap().iter().map(|found| found.id).collect()
}

/// Takes a safety checkpoint that holds the only copy of `content`.
fn safety_with_only_copy(
    ws: &TestWorkspace,
    workspace: &Workspace,
    target: CheckpointId,
    content: &str,
    now: Timestamp,
) -> CheckpointId {
    ws.write("work", content);
    workspace.restore(&RestoreRequest::whole(target), now).unwrap().safety.unwrap()
}

/// `backtrail.toml` may come from an agent. Regression: its limits erased the timeline with the next save.
#[test]
fn a_workspace_file_cannot_lower_any_limit() {
    let ws = TestWorkspace::new();
    let made: Vec<_> =
        (0..7).map(|number| step(&ws.open(), &ws, format!("{number}\n"), ws.now()).checkpoint.id).collect();
    let file = "[checkpoints]\nmax_checkpoints = 0\n[retention]\nautomatic = 0\nsession = 0\nturn = 0\nstep = 0\n\
        safety = 0\nunsaved = \"0s\"\nmax_age = \"0s\"\nmax_bytes = \"1B\"\n";
    ws.write("backtrail.toml", file);
    step(&ws.open(), &ws, "last\n", ws.now());
    let pruned = ws.open().prune(ws.now()).unwrap();
    assert_eq!(pruned.deleted, []);
    let left = listed(&ws.open());
    assert!(made.iter().all(|id| left.contains(id)), "{left:?}");
    let keys: Vec<_> = ws.open().settings().without_effect.iter().map(|found| found.key).collect();
    assert_eq!(keys.len(), 9, "{keys:?}");
}

#[test]
fn a_workspace_file_can_raise_limits_above_the_users() {
    let ws = TestWorkspace::new();
    ws.write_user_settings("[retention]\nstep = 2\nmax_age = \"100d\"\n");
    ws.write("backtrail.toml", "[retention]\nstep = 4\nunsaved = \"9d\"\nautomatic = 5\n");
    let settings = ws.open().settings().clone();
    assert_eq!((settings.retention.step, settings.retention.automatic), (4, 5));
    assert_eq!(settings.retention.unsaved, Duration::from_secs(9 * 86_400));
    assert_eq!(settings.retention.max_age, Some(Duration::from_secs(100 * 86_400)));
    assert_eq!(settings.without_effect, []);
    let given = settings.with_values(serde_json::json!({ "retention": { "step": 1 } })).unwrap();
    assert_eq!(given.retention.step, 1, "values from the caller count as the owner's");
}

/// Each failed `try` takes a safety checkpoint. Regression: the twenty-first removed the only copy of unsaved work.
#[test]
fn unsaved_work_survives_many_failed_tries() {
    let ws = TestWorkspace::new();
    ws.write("file", "saved\n");
    let first = ws.save();
    let safety = safety_with_only_copy(&ws, &ws.open(), first.id, "unsaved work\n", ws.now());
    for number in 0..25 {
        let way_back = automatic(&ws, "saved\n");
        ws.write("file", format!("what try number {number} wrote\n"));
        ws.open().restore(&RestoreRequest::whole(way_back.id), ws.now()).unwrap();
        ws.write("other", format!("{number}\n"));
        ws.save();
    }
    assert_eq!(ws.open().prune(ws.now()).unwrap().deleted, []);
    assert!(ws.is_in_store(b"unsaved work\n"));
    assert!(listed(&ws.open()).contains(&safety));
}

#[test]
fn a_safety_checkpoint_is_removed_if_kept_checkpoints_have_its_contents() {
    let ws = TestWorkspace::new();
    let workspace = || {
        let mut settings = Settings::default();
        settings.retention.safety = 0;
        ws.open_with(&ws.root(), settings)
    };
    ws.write("file", "saved\n");
    let first = ws.save();
    let one = safety_with_only_copy(&ws, &workspace(), first.id, "twice\n", ws.now());
    let two = safety_with_only_copy(&ws, &workspace(), first.id, "twice\n", ws.now());
    let elsewhere = safety_with_only_copy(&ws, &workspace(), first.id, "at another path\n", ws.now());
    ws.symlink("only here", "link");
    let link = workspace().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap().safety.unwrap();
    ws.write("renamed", "at another path\n");
    ws.mkdir("empty");
    let renamed = workspace().save(&SaveRequest::default(), ws.now()).unwrap().checkpoint.id;
    assert!(!listed(&workspace()).contains(&one), "the newer one has the same contents");
    workspace().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(workspace().prune(ws.now()).unwrap().deleted, [elsewhere], "the same bytes are saved at another path");
    let left = listed(&workspace());
    assert!([two, link, renamed].iter().all(|id| left.contains(id)), "{left:?}");
}

/// A checkpoint with the same contents may be removed later. Then the safety checkpoint has the only copy.
#[test]
fn a_safety_checkpoint_is_kept_once_no_other_checkpoint_has_its_contents() {
    let ws = TestWorkspace::new();
    let workspace = || {
        let mut settings = Settings::default();
        (settings.retention.safety, settings.retention.step) = (0, 0);
        ws.open_with(&ws.root(), settings)
    };
    ws.write("file", "first\n");
    let first = ws.save();
    ws.write("held", "held by a step\n");
    let held = step(&workspace(), &ws, "2\n", ws.now()).checkpoint.id;
    ws.write("file", "edited\n");
    let safety = workspace().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap().safety.unwrap();
    ws.write("file", "saved since\n");
    ws.write("edit", "edited\n");
    ws.save();
    safety_with_only_copy(&ws, &workspace(), first.id, "newer\n", ws.now());
    workspace().prune(ws.now()).unwrap();
    let left = listed(&workspace());
    assert!(!left.contains(&held) && left.contains(&safety), "{left:?}");
    assert!(ws.is_in_store(b"held by a step\n"));
}

#[test]
fn unsaved_work_is_removed_after_its_time_and_the_plan_names_it() {
    let (ws, clocks) = (TestWorkspace::new(), Clocks::new());
    let mut user = Settings::default();
    (user.retention.safety, user.retention.max_age, user.retention.max_bytes) = (0, Some(Duration::ZERO), Some(1));
    let workspace = || clocks.open(&ws, &user);
    ws.write("file", "saved\n");
    let first = workspace().save(&SaveRequest::default(), clocks.now()).unwrap().checkpoint;
    let safety = safety_with_only_copy(&ws, &workspace(), first.id, "unsaved\n", clocks.now());
    let newer = safety_with_only_copy(&ws, &workspace(), first.id, "newer\n", clocks.now());
    clocks.pass(7 * DAY - 20_000);
    let plan = workspace().plan_prune(clocks.now()).unwrap();
    assert!(plan.verdicts.iter().all(|verdict| verdict.keep) && plan.losses.is_empty(), "{plan:?}");
    assert_eq!(workspace().prune(clocks.now()).unwrap().deleted, []);
    clocks.pass(60_000);
    let plan = workspace().plan_prune(clocks.now()).unwrap();
    assert_eq!(plan.losses, [Loss { id: safety, paths: vec![ws.workspace_path("work")] }]);
    assert_eq!(workspace().losses_without(&[newer]).unwrap()[0].id, newer);
    assert_eq!(workspace().prune(clocks.now()).unwrap().deleted, [safety]);
    assert!(ws.is_in_store(b"newer\n") && !ws.is_in_store(b"unsaved\n"));
}

/// Regression: after the clock jumped ahead, every checkpoint was older than `max_age`, and the next save erased them.
#[test]
fn max_age_is_suspended_while_the_clock_is_wrong() {
    let (ws, clocks) = (TestWorkspace::new(), Clocks::new());
    let mut user = Settings::default();
    (user.retention.max_age, user.retention.safety) = (Some(Duration::from_secs(86_400)), 0);
    let workspace = || clocks.open(&ws, &user);
    let first = step(&workspace(), &ws, "1\n", clocks.now());
    let safety = safety_with_only_copy(&ws, &workspace(), first.checkpoint.id, "unsaved\n", clocks.now());
    safety_with_only_copy(&ws, &workspace(), first.checkpoint.id, "newer\n", clocks.now());
    let mut made = vec![first.checkpoint.id, safety];
    clocks.jump(30 * DAY as i64);
    let saved = step(&workspace(), &ws, "2\n", clocks.now());
    assert!(matches!(saved.not_applied[..], [NotApplied::MaxAge(ClockDoubt::Ahead { .. })]), "{:?}", saved.not_applied);
    made.push(saved.checkpoint.id);
    let pruned = workspace().prune(clocks.now()).unwrap();
    assert_eq!((pruned.deleted.len(), pruned.not_applied.len()), (0, 1), "{pruned:?}");
    clocks.jump(-30 * DAY as i64);
    let saved = step(&workspace(), &ws, "3\n", clocks.now());
    assert!(
        matches!(saved.not_applied[..], [NotApplied::MaxAge(ClockDoubt::Behind { .. })]),
        "{:?}",
        saved.not_applied
    );
    clocks.pass(2 * DAY);
    let saved = step(&workspace(), &ws, "4\n", clocks.now());
    let left = listed(&workspace());
    assert!(made.iter().all(|id| left.contains(id)), "{left:?}");
    // The clock has passed all checkpoints, and agrees with the time since the boot.
    clocks.pass(31 * DAY);
    let last = step(&workspace(), &ws, "5\n", clocks.now());
    assert_eq!(last.not_applied, []);
    assert!(!listed(&workspace()).contains(&saved.checkpoint.id), "max_age applies again");
    clocks.jump(30 * DAY as i64);
    clocks.restart();
    assert_eq!(step(&workspace(), &ws, "6\n", clocks.now()).not_applied, [], "a reboot ends the suspension");
}

/// Regression: a safety checkpoint that was taken while the clock was set back looked weeks old as soon as the clock was
/// right again, and went with the next save.
#[test]
fn a_clock_that_was_set_back_does_not_end_the_protection_of_unsaved_work() {
    let (ws, clocks) = (TestWorkspace::new(), Clocks::new());
    let mut user = Settings::default();
    user.retention.safety = 0;
    let workspace = || clocks.open(&ws, &user);
    let first = step(&workspace(), &ws, "1\n", clocks.now()).checkpoint.id;
    clocks.jump(-40 * DAY as i64);
    let target = step(&workspace(), &ws, "2\n", clocks.now()).checkpoint.id;
    let safety = safety_with_only_copy(&ws, &workspace(), target, "unsaved\n", clocks.now());
    safety_with_only_copy(&ws, &workspace(), target, "newer\n", clocks.now());
    // The only checkpoint whose time is right.
    workspace().delete(&[first], true, clocks.now()).unwrap();
    clocks.jump(40 * DAY as i64);
    step(&workspace(), &ws, "3\n", clocks.now());
    workspace().prune(clocks.now()).unwrap();
    assert!(listed(&workspace()).contains(&safety) && ws.is_in_store(b"unsaved\n"));
    clocks.pass(8 * DAY);
    step(&workspace(), &ws, "4\n", clocks.now());
    assert!(!listed(&workspace()).contains(&safety), "the protection ends after seven days");
}

/// Regression: if the manual checkpoints alone exceeded the limit, the following saves removed all other checkpoints.
#[test]
fn max_bytes_removes_nothing_if_it_cannot_be_reached() {
    let ws = TestWorkspace::new();
    let mut random = Random::new(1);
    ws.write("file", random.bytes(200_000));
    let manual = ws.save().id;
    let made: Vec<_> = (0..3).map(|_| step(&ws.open(), &ws, random.bytes(1_000), ws.now()).checkpoint.id).collect();
    let workspace = |max_bytes| {
        let mut settings = Settings::default();
        settings.retention.max_bytes = Some(max_bytes);
        ws.open_with(&ws.root(), settings)
    };
    let is_unreachable = |limits: &[NotApplied]| matches!(limits, [NotApplied::MaxBytes { max_bytes: 100_000, needed }] if *needed > 200_000);
    for number in 0..3 {
        let saved = step(&workspace(100_000), &ws, format!("{number}\n"), ws.now());
        assert!(is_unreachable(&saved.not_applied), "{:?}", saved.not_applied);
    }
    assert!(is_unreachable(&workspace(100_000).plan_prune(ws.now()).unwrap().not_applied));
    let pruned = workspace(100_000).prune(ws.now()).unwrap();
    assert!(pruned.deleted.is_empty() && is_unreachable(&pruned.not_applied), "{pruned:?}");
    let left = listed(&ws.open());
    assert!(made.iter().all(|id| left.contains(id)), "{left:?}");
    ws.open().delete(&[manual], false, ws.now()).unwrap();
    assert_eq!(step(&workspace(100_000), &ws, "fits\n", ws.now()).not_applied, []);
    assert_eq!(workspace(100_000).prune(ws.now()).unwrap().deleted, []);
}

#[test]
fn max_bytes_removes_the_oldest_checkpoints_and_no_more_than_necessary() {
    for is_pruned in [false, true] {
        let ws = TestWorkspace::new();
        let mut random = Random::new(2);
        let made: Vec<_> =
            (0..10).map(|_| step(&ws.open(), &ws, random.bytes(100_000), ws.now()).checkpoint.id).collect();
        let mut settings = Settings::default();
        settings.retention.max_bytes = Some(500_000);
        let workspace = ws.open_with(&ws.root(), settings);
        let plan = workspace.plan_prune(ws.now()).unwrap();
        let removed = plan.verdicts.iter().rev().filter(|verdict| !verdict.keep).map(|verdict| verdict.id);
        assert_eq!(removed.collect::<Vec<_>>(), made[..6], "the plan");
        if is_pruned {
            assert_eq!(workspace.prune(ws.now()).unwrap().deleted, made[..6]);
        } else {
            step(&workspace, &ws, "small\n", ws.now());
        }
        let left = listed(&workspace);
        assert!(made[6..].iter().all(|id| left.contains(id)) && !left.contains(&made[5]), "{left:?}");
        assert!(workspace.store_bytes().unwrap() <= 500_000);
        ws.assert_store_is_sound();
    }
}

#[test]
fn thread_checkpoints_stay_until_they_are_deleted_or_their_setting_takes_them() {
    let ws = TestWorkspace::new();
    let mut ids = Vec::new();
    for contents in ["1", "2", "3"] {
        ws.write("a", contents);
        let request = SaveRequest { kind: Some(Kind::Thread), ..SaveRequest::default() };
        ids.push(ws.open().save(&request, ws.now()).unwrap().checkpoint.id);
    }
    ws.write("a", "4");
    ws.save();
    let all = |ws: &TestWorkspace| -> Vec<_> {
        let kind = Some(Kind::Thread);
        ws.open()
            .list(&ListFilter { kind, ..ListFilter::default() })
            .unwrap()
            .into_iter()
            .map(|found| found.id)
            .collect()
    };
    let mut settings = Settings::default();
    (settings.retention.max_age, settings.retention.max_bytes) = (Some(Duration::ZERO), Some(1));
    ws.open_with(&ws.root(), settings.clone()).prune(ws.now()).unwrap();
    assert_eq!(all(&ws).len(), 3);
    settings.retention.thread = Some(2);
    ws.open_with(&ws.root(), settings).prune(ws.now()).unwrap();
    assert_eq!(all(&ws), [ids[2], ids[1]]);
    ws.open().delete(&[ids[1]], false, ws.now()).unwrap();
    assert_eq!(all(&ws), [ids[2]]);
}
