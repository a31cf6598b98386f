//! Operations that are killed in the middle, and concurrent processes.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{CheckpointId, Kind, Recovery, SaveRequest, Way};
use backtrail_testkit::crash::{Ended, Fault};
use proptest::prelude::*;

use super::{
    run::{ExpectedRestore, Run, failed},
    *,
};

impl Run {
    /// Kills a restore at a point, then runs the next command, which recovers.
    pub(super) fn crash(&mut self, what: &RestoreOp, point: usize, next: &AfterCrash) -> Checked {
        let Some(expected) = self.expect_restore(what) else { return Ok(()) };
        let is_refused = expected.request.is_some() && !expected.planned.conflicts.is_empty();
        if is_refused || self.names_unknown_path(&expected) || expected.planned.tree == self.tree {
            return self.run_restore(what);
        }
        let ended = DRIVER.run(&self.ws.base(), &expected.command, point, Fault::Kill);
        prop_assert_ne!(ended, Ended::Failed, "{:?} in a child", what);
        let is_under_way = self.ws.store().join("backtrail/journal").exists();
        let is_new = self.check_on_disk(&expected.planned.tree, "").is_ok();
        let goes_forward = is_under_way || is_new;
        if !goes_forward {
            self.check_unchanged(&format!("{what:?} killed at {point}, before it began"))?;
            prop_assert_ne!(ended, Ended::Done);
        }
        let safety = self.record_published_safety(&expected)?;
        prop_assert!(safety.is_some() || !goes_forward, "{what:?} began without a safety checkpoint");
        self.next_command(next, Crashed { expected, safety, is_under_way, goes_forward })
    }

    /// Records the safety checkpoint that the process published before it was killed. Returns its id.
    fn record_published_safety(&mut self, expected: &ExpectedRestore) -> Checked<Option<CheckpointId>> {
        let news = self.new_checkpoints()?;
        prop_assert!(news.len() <= 1, "{news:?} are new after a restore that was killed");
        let Some(id) = news.first().copied() else { return Ok(None) };
        self.record_safety(id, expected)?;
        Ok(Some(id))
    }

    /// Returns the checkpoints that the model does not know yet, in order.
    fn new_checkpoints(&self) -> Checked<Vec<CheckpointId>> {
        let is_new = |id: &CheckpointId| !self.timeline.known.iter().any(|known| known.id == *id);
        Ok(self.listed()?.into_iter().map(|found| found.id).filter(is_new).collect())
    }

    fn next_command(&mut self, next: &AfterCrash, crashed: Crashed) -> Checked {
        let Crashed { expected, safety, is_under_way, goes_forward } = crashed;
        let now = self.ws.now();
        match next {
            AfterCrash::Abort => {
                let recovered = self.workspace.recover(Way::Back, now).map_err(|error| failed("abort", error))?.outcome;
                prop_assert_eq!(recovered != Recovery::Nothing, is_under_way, "{:?}", recovered);
                // A restore that only had to remove its journal may be finished instead, if the outcome says so.
                if recovered == Recovery::Finished || (goes_forward && !is_under_way) {
                    self.record_done(expected, safety);
                }
                self.check_unchanged("after recover --abort")?;
                self.check_timeline("recover --abort")
            }
            AfterCrash::Recover => {
                let recovered =
                    self.workspace.recover(Way::Forward, now).map_err(|error| failed("recover", error))?.outcome;
                prop_assert_eq!(recovered, if is_under_way { Recovery::Finished } else { Recovery::Nothing });
                if goes_forward {
                    self.record_done(expected, safety);
                }
                self.check_unchanged("after recover")?;
                self.check_timeline("recover")
            }
            AfterCrash::Save => {
                let request = SaveRequest::default();
                let saved = self.workspace.save(&request, now).map_err(|error| failed("save", error))?;
                if goes_forward {
                    self.record_done(expected, safety);
                }
                self.check_saved(saved.created, &saved.checkpoint, &request)
            }
            AfterCrash::Write(path) => {
                let written = self.edit_after_crash(PATHS[*path]);
                let recovered = self.workspace.recover(Way::Forward, now);
                recovered.map_err(|error| failed("recover after a write", error))?;
                if goes_forward {
                    self.record_done(expected, safety);
                }
                self.check_after_write(PATHS[*path], written, safety)?;
                self.check_timeline("a write and a recovery")
            }
        }
    }

    /// Writes to a file if the path allows it. Returns the bytes.
    fn edit_after_crash(&mut self, name: &str) -> Option<Vec<u8>> {
        let path = self.ws.path(name);
        let parent_is_there = path.parent().is_some_and(|parent| parent.is_dir() && !parent.is_symlink());
        if !parent_is_there || path.is_symlink() || path.is_dir() {
            return None;
        }
        let bytes = self.fresh_bytes();
        std::fs::write(path, &bytes).unwrap();
        Some(bytes)
    }

    /// Compares the disk with the model, except for the written path and the paths above and below it.
    fn check_after_write(&mut self, name: &str, written: Option<Vec<u8>>, safety: Option<CheckpointId>) -> Checked {
        let disk = self.ws.manifest();
        let is_related = |path: &[u8]| is_within(path, name.as_bytes()) || is_within(name.as_bytes(), path);
        let wanted = self.tree.iter().filter(|(path, _)| !path.ends_with(b"/.git"));
        let paths: BTreeSet<_> = wanted.map(|(path, _)| path).chain(disk.0.keys()).collect();
        for path in paths {
            let is_same = self.tree.get(path) == disk.0.get(path);
            let may_differ = written.is_some() && is_related(path);
            let shown = String::from_utf8_lossy(path);
            prop_assert!(
                is_same || may_differ,
                "after a write to {name} and a recovery, {shown}: {:?} on disk, not {:?}",
                disk.0.get(path),
                self.tree.get(path)
            );
        }
        if let Some(bytes) = &written {
            let is_stored = self.ws.blobs_in_store().contains(bytes);
            prop_assert!(disk.holds(bytes) || is_stored, "the bytes written to {name} after the crash are lost");
        }
        for id in self.new_checkpoints()? {
            // The bytes that the restore replaced are in a checkpoint of their own, after the safety checkpoint.
            let found = self.workspace.get(&id).map_err(|error| failed("a checkpoint of kept bytes", error))?;
            prop_assert_eq!(found.parent, safety, "the parent of a checkpoint of kept bytes");
            let bytes = written.clone().unwrap_or_default();
            let tree = Tree::from([(name.as_bytes().to_vec(), backtrail_testkit::Found::File(0, bytes))]);
            let known = self.record_checkpoint(&found, tree, None, BTreeMap::new());
            (known.is_opaque, known.parent) = (true, found.parent);
        }
        self.reread_disk();
        Ok(())
    }

    /// Kills an operation other than a restore.
    pub(super) fn crash_other(&mut self, what: &OtherOp, point: usize) -> Checked {
        let target = |back: usize| self.timeline.nth_back(back).map(|known| known.id);
        let (command, mut may_go) = match what {
            OtherOp::Save => ("save".to_owned(), BTreeSet::new()),
            OtherOp::Prune => ("prune".to_owned(), self.timeline.surplus()),
            OtherOp::Delete(back) => match target(*back) {
                Some(id) => (format!("delete {id}"), BTreeSet::from([id])),
                None => return Ok(()),
            },
            OtherOp::Pin(back) => match target(*back) {
                Some(id) => (format!("pin {id}"), BTreeSet::new()),
                None => return Ok(()),
            },
        };
        let ended = DRIVER.run(&self.ws.base(), &command, point, Fault::Kill);
        prop_assert_ne!(ended, Ended::Failed, "{:?} in a child", what);
        self.check_unchanged(&format!("{what:?} killed at {point}"))?;
        let news = self.new_checkpoints()?;
        prop_assert!(news.len() <= usize::from(matches!(what, OtherOp::Save)), "{what:?}: {news:?} are new");
        for id in news {
            let found = self.workspace.get(&id).map_err(|error| failed("what was saved", error))?;
            self.record_checkpoint(&found, captured(&self.tree), None, BTreeMap::new());
            self.timeline.at = Some(id);
            may_go.extend(self.timeline.surplus());
        }
        let listed = self.listed()?;
        let gone: BTreeSet<_> = self.timeline.existing().map(|known| known.id).collect();
        let gone: BTreeSet<_> = gone.into_iter().filter(|id| !listed.iter().any(|found| found.id == *id)).collect();
        prop_assert!(
            gone.is_subset(&may_go),
            "{what:?} killed at {point}: {gone:?} are gone, but only {may_go:?} may be"
        );
        prop_assert!(ended != Ended::Done || gone == may_go, "{what:?} was done, but not all of {may_go:?} are gone");
        self.timeline.forget(&gone);
        if let OtherOp::Pin(back) = what
            && let Some(id) = self.timeline.nth_back(*back).map(|known| known.id)
        {
            let is_pinned = listed.iter().any(|found| found.id == id && found.pinned);
            prop_assert!(is_pinned || ended != Ended::Done, "the pin is missing");
            self.timeline.get_mut(id).is_pinned |= is_pinned;
        }
        self.check_timeline(&format!("{what:?} killed at {point}"))
    }

    /// Two handles and a child process save at the same time. The child may be killed in between.
    pub(super) fn save_concurrently(&mut self, point: usize) -> Checked {
        const BY_CHILD: usize = 3;
        let base = self.ws.base();
        let (here, there) = (&self.workspace, &self.other);
        let times = [self.ws.now(), self.ws.now()];
        let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
        let (ended, saved) = std::thread::scope(|scope| {
            let child = scope.spawn(|| DRIVER.run(&base, &format!("saves {BY_CHILD}"), point, Fault::Kill));
            let second = scope.spawn(|| there.save(&request, times[1]));
            let first = here.save(&request, times[0]);
            (child.join().unwrap(), [first, second.join().unwrap()])
        });
        prop_assert_ne!(ended, Ended::Failed, "saves in a child");
        self.check_unchanged("concurrent saves")?;
        let mut own = BTreeSet::new();
        for saved in saved {
            let saved = saved.map_err(|error| failed("a concurrent save", error))?;
            prop_assert!(saved.created);
            own.insert(saved.checkpoint.id);
        }
        let news = self.new_checkpoints()?;
        prop_assert!(own.iter().all(|id| news.contains(id)), "a checkpoint that was reported is lost");
        let by_child = news.len() - own.len();
        prop_assert!(by_child <= BY_CHILD && (ended != Ended::Done || by_child == BY_CHILD), "{by_child} by the child");
        let tree = captured(&self.tree);
        for id in news {
            let found = self.workspace.get(&id).map_err(|error| failed("what was saved", error))?;
            prop_assert_eq!(found.kind, Kind::Manual);
            prop_assert_eq!(found.parent, self.timeline.standing_id(), "the parent is the previous checkpoint");
            self.record_checkpoint(&found, tree.clone(), None, BTreeMap::new());
            self.timeline.at = Some(id);
            // The policy runs after each save. The save below updates the model for all of them.
        }
        let saved = self.workspace.save(&request, self.ws.now()).map_err(|error| failed("the save after", error))?;
        self.check_saved(saved.created, &saved.checkpoint, &request)
    }
}

/// A restore that was killed.
struct Crashed {
    expected: ExpectedRestore,
    safety: Option<CheckpointId>,
    is_under_way: bool,
    goes_forward: bool,
}
