//! One sequence of operations, on the disk and in the model.

use std::collections::BTreeSet;

use backtrail::{CheckpointId, ErrorCode, Recovery, RestoreOutcome, RestoreRequest, SaveRequest, Workspace};
use backtrail_testkit::{Found, Manifest, TestWorkspace};
use proptest::prelude::*;

use super::*;

/// A checkpoint as the model knows it.
#[derive(Debug, Clone)]
struct Known {
    /// None where a process that died took it.
    id: Option<CheckpointId>,
    tree: Tree,
    scope: Paths,
    is_safety: bool,
}

/// A restore that can be taken back.
#[derive(Debug, Clone)]
struct Takeable {
    /// What was there before, where it changed something.
    safety: Option<usize>,
    scope: Paths,
    stood_on: Option<CheckpointId>,
}

/// A restore, an undo or a redo, decided.
struct Decided {
    planned: Planned,
    /// Where the workspace stands afterwards.
    stands_on: Option<CheckpointId>,
    what: Restoring,
    words: String,
    request: Option<RestoreRequest>,
}

pub(super) struct Run {
    ws: TestWorkspace,
    workspace: Workspace,
    tree: Tree,
    known: Vec<Known>,
    undo: Vec<Takeable>,
    redo: Vec<Takeable>,
    stands_on: Option<CheckpointId>,
    written: usize,
    /// What was saved, and what a restore took out of the workspace: the store must have it for ever.
    owed: BTreeSet<Vec<u8>>,
}

impl Run {
    pub(super) fn new() -> Self {
        let ws = TestWorkspace::new();
        ws.write(".gitignore", "*.ign\n.env\n");
        ws.write("a", "the first\n");
        ws.write("d/x", "in a directory\n");
        let mut run = Self {
            workspace: ws.open(),
            tree: ws.manifest().0,
            ws,
            known: Vec::new(),
            undo: Vec::new(),
            redo: Vec::new(),
            stands_on: None,
            written: 0,
            owed: BTreeSet::new(),
        };
        run.save().unwrap();
        run
    }

    pub(super) fn step(&mut self, operation: &Op) -> Checked {
        match operation {
            Op::Save => self.save(),
            Op::Do(what) => self.restoring(what),
            Op::Reopen => {
                self.workspace = self.ws.open();
                Ok(())
            }
            Op::Crash(what, point, next) => self.crash(what, *point, next),
            edit => {
                self.edit(edit);
                self.tree = self.ws.manifest().0;
                Ok(())
            }
        }
    }

    /// Nothing is lost, and what is ignored is nowhere in the store.
    pub(super) fn end(mut self) -> Checked {
        self.save()?;
        let stored = self.ws.blobs_in_store();
        for bytes in &self.owed {
            let text = String::from_utf8_lossy(bytes);
            prop_assert!(stored.contains(bytes), "lost: {text:?}");
        }
        for bytes in &stored {
            let text = String::from_utf8_lossy(bytes);
            prop_assert!(!text.starts_with("ignored "), "an ignored file was captured: {text:?}");
        }
        self.ws.assert_store_is_sound();
        Ok(())
    }

    fn save(&mut self) -> Checked {
        let saved = self.workspace.save(&SaveRequest::default(), self.ws.now());
        let saved = saved.map_err(|error| TestCaseError::fail(format!("save: {error}")))?;
        self.saved(saved.created, saved.checkpoint.id)
    }

    fn saved(&mut self, created: bool, id: CheckpointId) -> Checked {
        self.unchanged("a save")?;
        let tree = captured(&self.tree);
        self.owed.extend(leaves(&tree));
        let standing = self.known.iter().find(|known| known.id.is_some() && known.id == self.stands_on);
        let expected = standing.is_none_or(|known| known.is_safety || known.tree != tree);
        prop_assert_eq!(created, expected, "was a checkpoint made?");
        if created {
            self.known.push(Known { id: Some(id), tree, scope: None, is_safety: false });
            self.stands_on = Some(id);
        }
        self.check_standing()
    }

    fn check_standing(&self) -> Checked {
        let current = self.workspace.current().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(current, self.stands_on, "the checkpoint that the workspace stands on");
        Ok(())
    }

    fn unchanged(&self, what: &str) -> Checked {
        self.is_on_disk(&self.tree, what)
    }

    fn is_on_disk(&self, tree: &Tree, what: &str) -> Checked {
        let differences = Manifest(tree.clone()).differences(&self.ws.manifest());
        prop_assert!(differences.is_empty(), "{what}: model against disk:\n  {}", differences.join("\n  "));
        Ok(())
    }

    /// What the operation shall do; none where there is nothing that it could work on.
    fn decide(&self, what: &Restoring) -> Option<Decided> {
        let newest_first = || self.known.iter().rev().filter(|known| known.id.is_some());
        let words = |id: Option<CheckpointId>, paths: &[&str]| format!("restore {} {}", id.unwrap(), paths.join(" "));
        match what {
            Restoring::Whole(back) => {
                let known = newest_first().nth(*back)?;
                let planned = plan(&self.tree, &known.tree, &known.scope);
                // A safety checkpoint of some paths is restored within them: the workspace does not stand on it.
                let stands_on = if known.scope.is_none() { known.id } else { self.stands_on };
                let request = Some(RestoreRequest::whole(known.id?));
                Some(Decided {
                    planned,
                    stands_on,
                    what: what.clone(),
                    words: words(known.id, &[]).trim().into(),
                    request,
                })
            }
            Restoring::Paths(back, paths) => {
                let known = newest_first().filter(|known| known.scope.is_none()).nth(*back)?;
                let names: Vec<&str> = paths.iter().map(|path| PATHS[*path]).collect();
                let scope = normal(names.iter().map(|name| name.as_bytes().to_vec()).collect());
                let request = RestoreRequest { scope: to_scope(&scope), ..RestoreRequest::whole(known.id?) };
                let planned = plan(&self.tree, &known.tree, &scope);
                let words = words(known.id, &names);
                Some(Decided { planned, stands_on: self.stands_on, what: what.clone(), words, request: Some(request) })
            }
            Restoring::Undo | Restoring::Redo => {
                let (stack, words) =
                    if matches!(what, Restoring::Undo) { (&self.undo, "undo") } else { (&self.redo, "redo") };
                let last = stack.last()?;
                let planned = match last.safety {
                    Some(safety) => plan(&self.tree, &self.known[safety].tree, &last.scope),
                    None => plan(&self.tree, &Tree::new(), &Some(Vec::new())),
                };
                Some(Decided {
                    planned,
                    stands_on: last.stood_on,
                    what: what.clone(),
                    words: words.into(),
                    request: None,
                })
            }
        }
    }

    /// Is a path named that is in neither of both?
    fn names_nothing(&self, decided: &Decided) -> bool {
        let (Some(request), Restoring::Paths(..)) = (&decided.request, &decided.what) else { return false };
        let known = self.known.iter().find(|known| known.id == Some(request.target)).unwrap();
        let paths = request.scope.paths().unwrap_or_default();
        paths.iter().any(|path| !self.tree.contains_key(path.as_bytes()) && !known.tree.contains_key(path.as_bytes()))
    }

    fn has_room(&self) -> bool {
        self.known.iter().filter(|known| known.is_safety).count() < KEPT_SAFETIES
    }

    fn restoring(&mut self, what: &Restoring) -> Checked {
        if !self.has_room() {
            return Ok(());
        }
        let now = self.ws.now();
        let Some(decided) = self.decide(what) else {
            let nothing = match what {
                Restoring::Undo => self.workspace.undo(now),
                Restoring::Redo => self.workspace.redo(now),
                _ => return Ok(()),
            };
            prop_assert!(matches!(nothing, Ok(None)), "nothing to take back: {nothing:?}");
            return self.unchanged("nothing to take back");
        };
        let outcome = match &decided.request {
            Some(request) => self.workspace.restore(request, now).map(Some),
            None if matches!(what, Restoring::Undo) => self.workspace.undo(now),
            None => self.workspace.redo(now),
        };
        if self.names_nothing(&decided) {
            let code = outcome.map_err(|error| error.code());
            prop_assert!(matches!(code, Err(ErrorCode::UnknownPath)), "an unknown path: {code:?}");
            return self.unchanged("an unknown path");
        }
        if decided.request.is_some() && !decided.planned.conflicts.is_empty() {
            let code = outcome.map_err(|error| error.code());
            prop_assert!(matches!(code, Err(ErrorCode::Conflict)), "a conflict: {code:?}");
            return self.unchanged("a conflict");
        }
        let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{what:?}: {error}")))?;
        let Some(outcome) = outcome else { return Err(TestCaseError::fail(format!("{what:?} found nothing to do"))) };
        self.check_outcome(&decided, &outcome)?;
        self.done(decided, outcome.safety);
        self.check_standing()
    }

    fn check_outcome(&self, decided: &Decided, outcome: &RestoreOutcome) -> Checked {
        let what = &decided.what;
        let conflicts: BTreeSet<_> = outcome.conflicts.iter().map(|found| found.path.as_bytes().to_vec()).collect();
        self.is_on_disk(&decided.planned.tree, &format!("{what:?}"))?;
        prop_assert_eq!(conflicts, decided.planned.conflicts.clone(), "conflicts of {:?}", what);
        prop_assert!(outcome.applied);
        prop_assert_eq!(
            outcome.safety.is_some(),
            decided.planned.tree != self.tree,
            "a safety checkpoint of {:?}",
            what
        );
        prop_assert_eq!(outcome.changes.is_empty(), decided.planned.tree == self.tree, "changes of {:?}", what);
        Ok(())
    }

    /// Notes that an operation was done.
    fn done(&mut self, decided: Decided, safety: Option<CheckpointId>) {
        let Decided { planned, stands_on, what, .. } = decided;
        let changed = planned.tree != self.tree;
        let stays = leaves(&planned.tree);
        self.owed.extend(leaves(&captured(&self.tree)).into_iter().filter(|bytes| !stays.contains(bytes)));
        let safety = changed.then(|| {
            let (tree, scope) = (captured(&self.tree), planned.scope.clone());
            self.known.push(Known { id: safety, tree, scope, is_safety: true });
            self.known.len() - 1
        });
        let takeable = Takeable { safety, scope: planned.scope, stood_on: self.stands_on };
        match what {
            Restoring::Undo => {
                self.undo.pop();
                self.redo.push(takeable);
            }
            Restoring::Redo => {
                self.redo.pop();
                self.undo.push(takeable);
            }
            _ if changed || stands_on != self.stands_on => {
                self.undo.push(takeable);
                self.redo.clear();
            }
            _ => {}
        }
        self.stands_on = stands_on;
        self.tree = planned.tree;
    }

    /// Kills the operation at a point, and lets the next command pick up the pieces.
    fn crash(&mut self, what: &Restoring, point: usize, next: &AfterCrash) -> Checked {
        let Some(decided) = self.decide(what) else { return Ok(()) };
        let is_refused = decided.request.is_some() && !decided.planned.conflicts.is_empty();
        if !self.has_room() || is_refused || self.names_nothing(&decided) || decided.planned.tree == self.tree {
            return self.restoring(what);
        }
        let ended = DRIVER.run(&self.ws.base(), &decided.words, point, Fault::Kill);
        prop_assert_ne!(ended, Ended::Failed, "{:?} in a child", what);
        let is_under_way = self.ws.store().join("backtrail/journal").exists();
        let is_new = || self.is_on_disk(&decided.planned.tree, "").is_ok();
        if !is_under_way && !is_new() {
            self.unchanged(&format!("{what:?} killed at {point}, before it began"))?;
            prop_assert_ne!(ended, Ended::Done);
        }
        let goes_forward = is_under_way || is_new();
        let now = self.ws.now();
        match next {
            AfterCrash::Abort => {
                let recovered = self.workspace.recover(true, now);
                let recovered = recovered.map_err(|error| TestCaseError::fail(format!("abort: {error}")))?;
                prop_assert_eq!(recovered != Recovery::Nothing, is_under_way, "{:?}", recovered);
                // One that was done but for the end of its journal may be finished instead, if it says so.
                if recovered == Recovery::Finished || (goes_forward && !is_under_way) {
                    self.done(decided, None);
                }
                self.unchanged("after recover --abort")?;
                self.check_standing()
            }
            AfterCrash::Recover => {
                let recovered = self.workspace.recover(false, now);
                let recovered = recovered.map_err(|error| TestCaseError::fail(format!("recover: {error}")))?;
                prop_assert_eq!(recovered, if is_under_way { Recovery::Finished } else { Recovery::Nothing });
                if goes_forward {
                    self.done(decided, None);
                }
                self.unchanged("after recover")?;
                self.check_standing()
            }
            AfterCrash::Save => {
                let saved = self.workspace.save(&SaveRequest::default(), now);
                let saved = saved.map_err(|error| TestCaseError::fail(format!("save: {error}")))?;
                if goes_forward {
                    self.done(decided, None);
                }
                self.saved(saved.created, saved.checkpoint.id)
            }
            AfterCrash::Write(path) => {
                let written = self.edit_after_crash(PATHS[*path]);
                let recovered = self.workspace.recover(false, now);
                recovered.map_err(|error| TestCaseError::fail(format!("recover after a write: {error}")))?;
                if goes_forward {
                    self.done(decided, None);
                }
                self.check_after_write(PATHS[*path], written)?;
                self.check_standing()
            }
        }
    }

    /// Writes where a file can be written now; gives the bytes.
    fn edit_after_crash(&mut self, name: &str) -> Option<Vec<u8>> {
        let path = self.ws.path(name);
        let parent_is_there = path.parent().is_some_and(|parent| parent.is_dir() && !parent.is_symlink());
        if !parent_is_there || path.is_symlink() || path.is_dir() {
            return None;
        }
        let bytes = self.fresh();
        std::fs::write(path, &bytes).unwrap();
        Some(bytes)
    }

    /// All is as the model says, but for the path that somebody wrote to, and what is above and below it.
    fn check_after_write(&mut self, name: &str, written: Option<Vec<u8>>) -> Checked {
        let disk = self.ws.manifest();
        let is_related = |path: &[u8]| is_within(path, name.as_bytes()) || is_within(name.as_bytes(), path);
        let paths: BTreeSet<_> = self.tree.keys().chain(disk.0.keys()).collect();
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
        if let Some(bytes) = written {
            let is_stored = self.ws.blobs_in_store().contains(&bytes);
            prop_assert!(disk.holds(&bytes) || is_stored, "what was written to {name} after the crash is lost");
            self.owed.extend(is_stored.then_some(bytes));
        }
        self.tree = disk.0;
        Ok(())
    }

    fn fresh(&mut self) -> Vec<u8> {
        self.written += 1;
        format!("version {}\n", self.written).into_bytes()
    }

    fn edit(&mut self, operation: &Op) {
        match operation {
            Op::Write(path) => {
                let bytes = self.fresh();
                self.put(PATHS[*path], &bytes);
            }
            Op::WriteAgain(path) => {
                let bytes: &[u8] = if path % 2 == 0 { b"" } else { b"often the same\n" };
                self.put(PATHS[*path], bytes);
            }
            Op::Append(path) => {
                let more = self.fresh();
                if let Some(Found::File(_, bytes)) = self.tree.get(PATHS[*path].as_bytes()) {
                    let longer = [&bytes[..], &more].concat();
                    std::fs::write(self.ws.path(PATHS[*path]), longer).unwrap();
                }
            }
            Op::Delete(path) => self.clear(PATHS[*path]),
            Op::Chmod(path, mode) => match self.tree.get(PATHS[*path].as_bytes()) {
                Some(Found::File(..)) => self.ws.chmod(PATHS[*path], FILE_MODES[*mode]),
                Some(Found::Directory(_)) => self.ws.chmod(PATHS[*path], DIRECTORY_MODES[*mode % 3]),
                _ => {}
            },
            Op::Link(path, target) => {
                self.make_way(PATHS[*path]);
                self.ws.symlink(PATHS[*target], PATHS[*path]);
            }
            Op::Rename(from, to) => self.rename(PATHS[*from], PATHS[*to]),
            Op::MakeDirectory(path) => {
                self.make_way(PATHS[*path]);
                self.ws.mkdir(PATHS[*path]);
            }
            Op::Ignored(path) => {
                self.written += 1;
                self.put(IGNORED[*path], format!("ignored {}\n", self.written).as_bytes());
            }
            Op::DeleteIgnored(path) => self.clear(IGNORED[*path]),
            Op::Precious(path) => {
                let bytes = self.fresh();
                self.put(PRECIOUS[*path], &bytes);
            }
            Op::DeletePrecious(path) => self.clear(PRECIOUS[*path]),
            Op::Save | Op::Do(_) | Op::Reopen | Op::Crash(..) => unreachable!("no edit"),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        // Written in place where a file is there already, as an editor may do it.
        if !self.ws.path(name).is_file() || self.ws.path(name).is_symlink() {
            self.make_way(name);
        }
        self.ws.write(name, bytes);
    }

    /// Removes what is at a path, and what stands above it where a directory is needed.
    fn make_way(&self, name: &str) {
        for (slash, _) in name.match_indices('/') {
            let above = self.ws.path(&name[..slash]);
            if above.is_symlink() || above.is_file() {
                std::fs::remove_file(above).unwrap();
            }
        }
        self.clear(name);
    }

    fn clear(&self, name: &str) {
        let mut above = name.match_indices('/').map(|(slash, _)| self.ws.path(&name[..slash]));
        if above.all(|above| !above.is_symlink()) && self.ws.exists(name) {
            self.ws.remove(name);
        }
    }

    fn rename(&self, from: &str, to: &str) {
        let is_below = is_within(to.as_bytes(), from.as_bytes()) || is_within(from.as_bytes(), to.as_bytes());
        if is_below || !self.tree.contains_key(from.as_bytes()) {
            return;
        }
        self.make_way(to);
        if self.ws.exists(from) {
            self.ws.rename(from, to);
        }
    }
}
