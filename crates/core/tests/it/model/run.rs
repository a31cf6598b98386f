//! Runs one sequence of operations on disk and in the model.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{
    Checkpoint, CheckpointId, ErrorCode, Kind, ListFilter, Only, RestoreOutcome, RestoreRequest, SaveRequest, Workspace,
};
use backtrail_testkit::{Found, Manifest, TestWorkspace};
use proptest::prelude::*;

use super::{
    repositories::{self, Repositories},
    timeline::{KnownCheckpoint, POLICY, Reversible, Timeline, WORKSPACE_SETTINGS},
    *,
};

/// A restore, an undo or a redo, with its expected result.
pub(super) struct ExpectedRestore {
    pub(super) planned: Planned,
    /// The checkpoint that the workspace stands on afterwards.
    pub(super) stands_on: Option<CheckpointId>,
    pub(super) what: RestoreOp,
    /// The operation for the child process of the driver.
    pub(super) command: String,
    pub(super) request: Option<RestoreRequest>,
}

pub(super) struct Run {
    pub(super) ws: TestWorkspace,
    pub(super) workspace: Workspace,
    /// A second handle, like that of another process, with its own cached state.
    pub(super) other: Workspace,
    pub(super) tree: Tree,
    pub(super) repositories: Repositories,
    pub(super) timeline: Timeline,
    written: usize,
    /// The agent's conversation so far.
    conversation: Vec<u8>,
}

pub(super) fn failed(what: &str, error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(format!("{what}: {error}"))
}

impl Run {
    pub(super) fn new() -> Self {
        let ws = TestWorkspace::in_memory();
        ws.write(".gitignore", "*.ign\n.env\n");
        ws.write_user_settings(POLICY);
        ws.write("backtrail.toml", WORKSPACE_SETTINGS);
        ws.write("a", "the first\n");
        ws.write("d/x", "in a directory\n");
        let mut run = Self {
            workspace: ws.open(),
            other: ws.open(),
            tree: ws.manifest().0,
            ws,
            repositories: Repositories::new(),
            timeline: Timeline::default(),
            written: 0,
            conversation: Vec::new(),
        };
        run.save(&SaveOptions::default()).unwrap();
        run
    }

    pub(super) fn step(&mut self, operation: &Op) -> Checked {
        match operation {
            Op::Save(options) => self.save(options),
            Op::Restore(what) => self.run_restore(what),
            Op::Checkpoints(what) => self.run_checkpoint_op(what),
            Op::Reopen => {
                self.workspace = self.ws.open();
                Ok(())
            }
            Op::Switch => {
                std::mem::swap(&mut self.workspace, &mut self.other);
                Ok(())
            }
            Op::Crash(what, point, next) => self.crash(what, *point, next),
            Op::CrashOther(what, point) => self.crash_other(what, *point),
            Op::ConcurrentSaves(point) => self.save_concurrently(*point),
            edit => {
                self.edit(edit);
                self.reread_disk();
                Ok(())
            }
        }
    }

    /// Reads the disk into the model after an edit.
    pub(super) fn reread_disk(&mut self) {
        self.repositories = repositories::read(&self.ws);
        self.tree = self.on_disk();
    }

    fn on_disk(&self) -> Tree {
        let mut tree = self.ws.manifest().0;
        tree.extend(repositories::read(&self.ws).into_keys().map(|path| (path, Found::Special)));
        tree
    }

    /// Checks that nothing is lost and that no ignored file is in the store.
    pub(super) fn check_end(mut self) -> Checked {
        self.save(&SaveOptions::default())?;
        let stored = self.ws.blobs_in_store();
        for bytes in self.timeline.existing().flat_map(KnownCheckpoint::bytes) {
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(stored.contains(&bytes), "lost: {text:?}");
        }
        for bytes in &stored {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
            prop_assert!(!text.starts_with("ignored "), "an ignored file was captured: {text:?}");
        }
        for known in self.timeline.existing() {
            for (name, bytes) in &known.attachments {
                let found =
                    self.workspace.attachment(&known.id, name).map_err(|error| failed("an attachment", error))?;
                prop_assert!(found == *bytes, "the attachment {name} of {} has changed", known.id);
            }
        }
        self.ws.assert_store_is_sound();
        Ok(())
    }

    fn request(&mut self, options: &SaveOptions) -> SaveRequest {
        let mut attachments = Vec::new();
        if let Some(more) = options.conversation {
            // Zero stands for so many lines that the attachment is stored in pieces.
            let line = format!("turn {} said\n", self.written);
            let times = if more == 0 { 70_000 } else { more };
            self.written += 1;
            self.conversation.extend_from_slice(line.repeat(times).as_bytes());
            attachments.push(("conversation".to_owned(), self.conversation.clone()));
            attachments.push(("features".to_owned(), self.fresh_bytes()));
        }
        SaveRequest {
            kind: Some(options.kind),
            attachments,
            allow_empty: options.allow_empty,
            ..SaveRequest::default()
        }
    }

    fn save(&mut self, options: &SaveOptions) -> Checked {
        let request = self.request(options);
        let saved = self.workspace.save(&request, self.ws.now()).map_err(|error| failed("save", error))?;
        self.check_saved(saved.created, &saved.checkpoint, &request)
    }

    pub(super) fn check_saved(&mut self, created: bool, checkpoint: &Checkpoint, request: &SaveRequest) -> Checked {
        self.check_unchanged("a save")?;
        let tree = captured(&self.tree);
        let kind = request.kind.unwrap_or(Kind::Manual);
        let expected = request.allow_empty
            || !request.attachments.is_empty()
            || self.timeline.stands_on().is_none_or(|known| known.tree != tree || is_kept_longer(kind, known.kind));
        prop_assert_eq!(created, expected, "whether a checkpoint was created");
        if created {
            self.record_checkpoint(checkpoint, tree, None, request.attachments.iter().cloned().collect());
            self.timeline.at = Some(checkpoint.id);
            let surplus = self.timeline.surplus();
            self.timeline.forget(&surplus);
        }
        self.check_timeline("a save")
    }

    /// Adds a published checkpoint to the model.
    pub(super) fn record_checkpoint(
        &mut self,
        found: &Checkpoint,
        tree: Tree,
        scope: Paths,
        attachments: BTreeMap<String, Vec<u8>>,
    ) -> &mut KnownCheckpoint {
        self.timeline.known.push(KnownCheckpoint {
            id: found.id,
            kind: found.kind,
            tree,
            scope,
            parent: self.timeline.standing_id(),
            attachments,
            is_pinned: false,
            is_gone: false,
            is_opaque: false,
        });
        self.timeline.known.last_mut().unwrap()
    }

    /// Returns all checkpoints of the store, oldest first.
    pub(super) fn listed(&self) -> Checked<Vec<Checkpoint>> {
        let mut listed = self.workspace.list(&ListFilter::default()).map_err(|error| failed("list", error))?;
        listed.reverse();
        Ok(listed)
    }

    /// Compares the checkpoints of the store, and the one that the workspace stands on, with the model.
    pub(super) fn check_timeline(&self, what: &str) -> Checked {
        let listed = self.listed()?;
        let found: Vec<_> = listed.iter().map(|found| (found.id, found.kind, found.pinned)).collect();
        let existing: Vec<_> = self.timeline.existing().map(|known| (known.id, known.kind, known.is_pinned)).collect();
        prop_assert_eq!(found, existing, "the timeline after {}", what);
        for (found, known) in listed.iter().zip(self.timeline.existing()) {
            let sizes: Vec<_> = found.attachments.iter().map(|kept| (kept.name.clone(), kept.bytes)).collect();
            let wanted: Vec<_> =
                known.attachments.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
            prop_assert_eq!(sizes, wanted, "attachments after {}", what);
        }
        let current = self.workspace.current().map_err(|error| failed("current", error))?;
        prop_assert_eq!(current, self.timeline.standing_id(), "the current checkpoint after {}", what);
        Ok(())
    }

    pub(super) fn check_unchanged(&self, what: &str) -> Checked {
        self.check_on_disk(&self.tree, what)
    }

    pub(super) fn check_on_disk(&self, tree: &Tree, what: &str) -> Checked {
        let differences = Manifest(tree.clone()).differences(&Manifest(self.on_disk()));
        prop_assert!(
            differences.is_empty(),
            "{what}: the disk differs from the model:\n  {}",
            differences.join("\n  ")
        );
        let repositories = repositories::read(&self.ws);
        for (path, before) in &self.repositories {
            let shown = String::from_utf8_lossy(path);
            let differences = repositories.get(path).map(|after| before.differences(after));
            prop_assert_eq!(differences, Some(Vec::new()), "{}: the repository {}", what, shown);
        }
        Ok(())
    }

    /// Returns the expected result of the operation, or `None` if there is nothing that it could work on.
    pub(super) fn expect_restore(&self, what: &RestoreOp) -> Option<ExpectedRestore> {
        let (tree, standing) = (&self.tree, self.timeline.standing_id());
        let expected = |planned: Planned, stands_on, command: String, request| {
            Some(ExpectedRestore { planned, stands_on, what: what.clone(), command, request })
        };
        match what {
            RestoreOp::Whole(back) => {
                let known = self.timeline.nth_back(*back)?;
                let planned = plan(tree, &known.tree, &known.scope);
                // A safety checkpoint with a scope is restored within it. The workspace does not stand on it then.
                let stands_on = if known.scope.is_none() { Some(known.id) } else { standing };
                expected(planned, stands_on, format!("restore {}", known.id), Some(RestoreRequest::whole(known.id)))
            }
            RestoreOp::Paths(back, paths) => {
                let known = self.timeline.nth_whole(*back)?;
                let names: Vec<&str> = paths.iter().map(|path| PATHS[*path]).collect();
                let scope = normalize(names.iter().map(|name| name.as_bytes().to_vec()).collect());
                let request = RestoreRequest { scope: to_scope(&scope), ..RestoreRequest::whole(known.id) };
                let command = format!("restore {} {}", known.id, names.join(" "));
                expected(plan(tree, &known.tree, &scope), standing, command, Some(request))
            }
            RestoreOp::State(back) => {
                let known = self.timeline.nth_whole(*back)?;
                let request = RestoreRequest { only: Only::State, ..RestoreRequest::whole(known.id) };
                let planned = plan(tree, &known.tree, &state_scope());
                expected(planned, standing, format!("state {}", known.id), Some(request))
            }
            RestoreOp::Undo | RestoreOp::Redo => {
                let (stack, command) = match what {
                    RestoreOp::Undo => (&self.timeline.undo, "undo"),
                    _ => (&self.timeline.redo, "redo"),
                };
                let last = stack.last().filter(|last| self.timeline.is_reachable(last))?;
                let planned = match last.safety {
                    Some(safety) => plan_within(tree, &self.timeline.get(safety).tree, &last.scope, &last.named),
                    None => plan(tree, &Tree::new(), &Some(Vec::new())),
                };
                expected(planned, last.stood_on, command.into(), None)
            }
        }
    }

    /// Returns whether the request has a path that is neither on disk nor in the target.
    pub(super) fn names_unknown_path(&self, expected: &ExpectedRestore) -> bool {
        let (Some(request), RestoreOp::Paths(..)) = (&expected.request, &expected.what) else { return false };
        let known = self.timeline.get(request.target);
        let paths = request.scope.paths().unwrap_or_default();
        paths.iter().any(|path| !self.tree.contains_key(path.as_bytes()) && !known.tree.contains_key(path.as_bytes()))
    }

    pub(super) fn run_restore(&mut self, what: &RestoreOp) -> Checked {
        let now = self.ws.now();
        let Some(expected) = self.expect_restore(what) else {
            let nothing = match what {
                RestoreOp::Undo => self.workspace.undo(now),
                RestoreOp::Redo => self.workspace.redo(now),
                _ => return Ok(()),
            };
            prop_assert!(matches!(nothing, Ok(None)), "there is nothing to take back: {nothing:?}");
            return self.check_unchanged("nothing to take back");
        };
        let outcome = match &expected.request {
            Some(request) => self.workspace.restore(request, now).map(Some),
            None if matches!(what, RestoreOp::Undo) => self.workspace.undo(now),
            None => self.workspace.redo(now),
        };
        if self.names_unknown_path(&expected) {
            let code = outcome.map_err(|error| error.code());
            prop_assert!(matches!(code, Err(ErrorCode::UnknownPath)), "an unknown path: {code:?}");
            return self.check_unchanged("an unknown path");
        }
        if expected.request.is_some() && !expected.planned.conflicts.is_empty() {
            let code = outcome.map_err(|error| error.code());
            prop_assert!(matches!(code, Err(ErrorCode::Conflict)), "a conflict: {code:?}");
            return self.check_unchanged("a conflict");
        }
        let outcome = outcome.map_err(|error| failed(&format!("{what:?}"), error))?;
        let Some(outcome) = outcome else { return Err(TestCaseError::fail(format!("{what:?} did nothing"))) };
        self.check_outcome(&expected, &outcome)?;
        if let Some(safety) = outcome.safety {
            self.record_safety(safety, &expected)?;
        }
        self.record_done(expected, outcome.safety);
        self.check_timeline(&format!("{what:?}"))
    }

    pub(super) fn record_safety(&mut self, id: CheckpointId, expected: &ExpectedRestore) -> Checked {
        let found = self.workspace.get(&id).map_err(|error| failed("the safety checkpoint", error))?;
        prop_assert_eq!(found.kind, Kind::Safety);
        self.record_checkpoint(&found, captured(&self.tree), expected.planned.scope.clone(), BTreeMap::new());
        Ok(())
    }

    fn check_outcome(&self, expected: &ExpectedRestore, outcome: &RestoreOutcome) -> Checked {
        let what = &expected.what;
        let conflicts: BTreeSet<_> = outcome.conflicts.iter().map(|found| found.path.as_bytes().to_vec()).collect();
        self.check_on_disk(&expected.planned.tree, &format!("{what:?}"))?;
        prop_assert_eq!(conflicts, expected.planned.conflicts.clone(), "conflicts of {:?}", what);
        prop_assert!(outcome.applied);
        let changed = expected.planned.tree != self.tree;
        prop_assert_eq!(outcome.safety.is_some(), changed, "a safety checkpoint of {:?}", what);
        prop_assert_eq!(outcome.changes.is_empty(), !changed, "changes of {:?}", what);
        Ok(())
    }

    /// Records in the model that an operation was done. Its safety checkpoint is recorded already.
    pub(super) fn record_done(&mut self, expected: ExpectedRestore, safety: Option<CheckpointId>) {
        let ExpectedRestore { planned, stands_on, what, .. } = expected;
        let standing = self.timeline.standing_id();
        let changed = planned.tree != self.tree;
        let reversible = Reversible { safety, scope: planned.scope, named: planned.named, stood_on: standing };
        let timeline = &mut self.timeline;
        match what {
            RestoreOp::Undo => {
                timeline.undo.pop();
                timeline.redo.push(reversible);
            }
            RestoreOp::Redo => {
                timeline.redo.pop();
                timeline.undo.push(reversible);
            }
            _ if changed || stands_on != standing => {
                timeline.undo.push(reversible);
                timeline.redo.clear();
            }
            _ => {}
        }
        timeline.at = stands_on;
        self.tree = planned.tree;
    }

    fn run_checkpoint_op(&mut self, what: &CheckpointOp) -> Checked {
        let now = self.ws.now();
        match what {
            CheckpointOp::Delete(back) => {
                let Some(known) = self.timeline.nth_back(*back).cloned() else { return Ok(()) };
                let mut deleted = self.workspace.delete_for_good(&[known.id], false, now);
                if known.kind == Kind::Feature {
                    let code = deleted.map_err(|error| error.code());
                    prop_assert!(matches!(code, Err(ErrorCode::FeatureCheckpoint)), "a feature: {code:?}");
                    self.check_timeline("a delete without force")?;
                    deleted = self.workspace.delete_for_good(&[known.id], true, now);
                }
                prop_assert_eq!(deleted.map_err(|error| failed("delete", error))?, [known.id]);
                self.timeline.forget(&BTreeSet::from([known.id]));
            }
            CheckpointOp::Prune => {
                let surplus = self.timeline.surplus();
                let pruned = self.workspace.prune(now).map_err(|error| failed("prune", error))?;
                prop_assert_eq!(
                    pruned.deleted.into_iter().collect::<BTreeSet<_>>(),
                    surplus.clone(),
                    "the checkpoints that prune deleted"
                );
                self.timeline.forget(&surplus);
                self.check_nothing_unneeded()?;
            }
            CheckpointOp::Pin(back) | CheckpointOp::Unpin(back) => {
                let Some(id) = self.timeline.nth_back(*back).map(|known| known.id) else { return Ok(()) };
                let is_pin = matches!(what, CheckpointOp::Pin(_));
                let done = if is_pin { self.workspace.pin(&id, now) } else { self.workspace.unpin(&id, now) };
                prop_assert_eq!(done.map_err(|error| failed("pin", error))?.pinned, is_pin);
                self.timeline.get_mut(id).is_pinned = is_pin;
            }
        }
        self.check_unchanged(&format!("{what:?}"))?;
        self.check_timeline(&format!("{what:?}"))
    }

    /// Checks that the store holds only objects that a checkpoint needs, as it must after a prune.
    fn check_nothing_unneeded(&self) -> Checked {
        let ids = |arguments: &[&str]| -> BTreeSet<String> {
            String::from_utf8(self.ws.store_git(arguments)).unwrap().lines().map(str::to_owned).collect()
        };
        let all = ids(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        let needed = ids(&["rev-list", "--objects", "--no-object-names", "--all"]);
        let left: Vec<_> = all.difference(&needed).collect();
        prop_assert!(left.is_empty(), "prune left objects that nothing needs: {left:?}");
        Ok(())
    }

    pub(super) fn fresh_bytes(&mut self) -> Vec<u8> {
        self.written += 1;
        format!("version {}\n", self.written).into_bytes()
    }

    fn edit(&mut self, operation: &Op) {
        match operation {
            Op::Write(path) => {
                let bytes = self.fresh_bytes();
                self.put(PATHS[*path], &bytes);
            }
            Op::WriteAgain(path) => {
                let bytes: &[u8] = if path % 2 == 0 { b"" } else { b"often the same\n" };
                self.put(PATHS[*path], bytes);
            }
            Op::Append(path) => {
                let more = self.fresh_bytes();
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
                self.clear_path(PATHS[*path]);
                self.ws.symlink(PATHS[*target], PATHS[*path]);
            }
            Op::Rename(from, to) => self.rename(PATHS[*from], PATHS[*to]),
            Op::MakeDirectory(path) => {
                self.clear_path(PATHS[*path]);
                self.ws.mkdir(PATHS[*path]);
            }
            Op::Ignored(path) => {
                self.written += 1;
                self.put(IGNORED[*path], format!("ignored {}\n", self.written).as_bytes());
            }
            Op::DeleteIgnored(path) => self.clear(IGNORED[*path]),
            Op::Precious(path) => {
                let bytes = self.fresh_bytes();
                self.put(PRECIOUS[*path], &bytes);
            }
            Op::DeletePrecious(path) => self.clear(PRECIOUS[*path]),
            Op::State(path) => {
                let bytes = self.fresh_bytes();
                self.put(STATE[*path], &bytes);
            }
            Op::DeleteState(path) => self.clear(STATE[*path]),
            Op::Repository(path) => {
                let name = REPOSITORIES[*path];
                if !is_directory(self.tree.get(name.as_bytes())) {
                    self.clear_path(name);
                    self.ws.mkdir(name);
                }
                repositories::make(&self.ws, name);
            }
            _ => unreachable!("no edit"),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        // An existing file is written in place, as some editors do.
        if !self.ws.path(name).is_file() || self.ws.path(name).is_symlink() {
            self.clear_path(name);
        }
        self.ws.write(name, bytes);
    }

    /// Removes the entry at a path, and files and links above it that a directory has to replace.
    fn clear_path(&self, name: &str) {
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
        self.clear_path(to);
        if self.ws.exists(from) {
            self.ws.rename(from, to);
        }
    }
}

/// Returns whether one kind is kept longer than another. An unchanged tree is saved again only for such a kind.
fn is_kept_longer(kind: Kind, than: Kind) -> bool {
    const LONGEST_LAST: [Kind; 8] = [
        Kind::Session,
        Kind::Automatic,
        Kind::Safety,
        Kind::Step,
        Kind::Turn,
        Kind::Thread,
        Kind::Manual,
        Kind::Feature,
    ];
    let rank = |kind: Kind| LONGEST_LAST.iter().position(|other| *other == kind);
    rank(kind) > rank(than)
}
