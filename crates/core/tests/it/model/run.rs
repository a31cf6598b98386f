//! One sequence of operations, on the disk and in the model.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{
    Checkpoint, CheckpointId, ErrorCode, Kind, ListFilter, Only, RestoreOutcome, RestoreRequest, SaveRequest, Workspace,
};
use backtrail_testkit::{Found, Manifest, TestWorkspace};
use proptest::prelude::*;

use super::{
    repositories::{self, Repositories},
    timeline::{Known, POLICY, Takeable, Timeline, WORKSPACE_SETTINGS},
    *,
};

/// A restore, an undo or a redo, decided.
pub(super) struct Decided {
    pub(super) planned: Planned,
    /// Where the workspace stands afterwards.
    pub(super) stands_on: Option<CheckpointId>,
    pub(super) what: Restoring,
    pub(super) words: String,
    pub(super) request: Option<RestoreRequest>,
}

pub(super) struct Run {
    pub(super) ws: TestWorkspace,
    pub(super) workspace: Workspace,
    /// As another process has it open, with what it remembers from before.
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
        run.save(&Wish::default()).unwrap();
        run
    }

    pub(super) fn step(&mut self, operation: &Op) -> Checked {
        match operation {
            Op::Save(wish) => self.save(wish),
            Op::Do(what) => self.restoring(what),
            Op::Forget(what) => self.forgetting(what),
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
            Op::Together(point) => self.together(*point),
            edit => {
                self.edit(edit);
                self.look_again();
                Ok(())
            }
        }
    }

    /// Takes the disk as it is: somebody edited it.
    pub(super) fn look_again(&mut self) {
        self.repositories = repositories::read(&self.ws);
        self.tree = self.on_disk();
    }

    fn on_disk(&self) -> Tree {
        let mut tree = self.ws.manifest().0;
        tree.extend(repositories::read(&self.ws).into_keys().map(|path| (path, Found::Special)));
        tree
    }

    /// Nothing is lost, and what is ignored is nowhere in the store.
    pub(super) fn end(mut self) -> Checked {
        self.save(&Wish::default())?;
        let stored = self.ws.blobs_in_store();
        for bytes in self.timeline.living().flat_map(Known::bytes) {
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(stored.contains(&bytes), "lost: {text:?}");
        }
        for bytes in &stored {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
            prop_assert!(!text.starts_with("ignored "), "an ignored file was captured: {text:?}");
        }
        for known in self.timeline.living() {
            for (name, bytes) in &known.attachments {
                let found =
                    self.workspace.attachment(&known.id, name).map_err(|error| failed("an attachment", error))?;
                prop_assert!(found == *bytes, "the attachment {name} of {} has changed", known.id);
            }
        }
        self.ws.assert_store_is_sound();
        Ok(())
    }

    fn request(&mut self, wish: &Wish) -> SaveRequest {
        let mut attachments = Vec::new();
        if let Some(more) = wish.conversation {
            // Now and then so much that it is kept in pieces.
            let line = format!("turn {} said\n", self.written);
            let times = if more == 0 { 70_000 } else { more };
            self.written += 1;
            self.conversation.extend_from_slice(line.repeat(times).as_bytes());
            attachments.push(("conversation".to_owned(), self.conversation.clone()));
            attachments.push(("features".to_owned(), self.fresh()));
        }
        SaveRequest { kind: Some(wish.kind), attachments, allow_empty: wish.allow_empty, ..SaveRequest::default() }
    }

    fn save(&mut self, wish: &Wish) -> Checked {
        let request = self.request(wish);
        let saved = self.workspace.save(&request, self.ws.now()).map_err(|error| failed("save", error))?;
        self.saved(saved.created, &saved.checkpoint, &request)
    }

    pub(super) fn saved(&mut self, created: bool, checkpoint: &Checkpoint, request: &SaveRequest) -> Checked {
        self.unchanged("a save")?;
        let tree = captured(&self.tree);
        let kind = request.kind.unwrap_or(Kind::Manual);
        let expected = request.allow_empty
            || !request.attachments.is_empty()
            || self.timeline.stands_on().is_none_or(|known| known.tree != tree || is_kept_longer(kind, known.kind));
        prop_assert_eq!(created, expected, "was a checkpoint made?");
        if created {
            self.know(checkpoint, tree, None, request.attachments.iter().cloned().collect());
            self.timeline.at = Some(checkpoint.id);
            let surplus = self.timeline.surplus();
            self.timeline.forget(&surplus);
        }
        self.check_timeline("a save")
    }

    /// Takes up a checkpoint that was published.
    pub(super) fn know(
        &mut self,
        found: &Checkpoint,
        tree: Tree,
        scope: Paths,
        attachments: BTreeMap<String, Vec<u8>>,
    ) -> &mut Known {
        self.timeline.known.push(Known {
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

    /// All checkpoints that are there, oldest first.
    pub(super) fn listed(&self) -> Checked<Vec<Checkpoint>> {
        let mut listed = self.workspace.list(&ListFilter::default()).map_err(|error| failed("list", error))?;
        listed.reverse();
        Ok(listed)
    }

    /// The checkpoints that are there are those that must be, as they must be, and the workspace stands where it must.
    pub(super) fn check_timeline(&self, what: &str) -> Checked {
        let listed = self.listed()?;
        let found: Vec<_> = listed.iter().map(|found| (found.id, found.kind, found.pinned)).collect();
        let living: Vec<_> = self.timeline.living().map(|known| (known.id, known.kind, known.is_pinned)).collect();
        prop_assert_eq!(found, living, "the timeline after {}", what);
        for (found, known) in listed.iter().zip(self.timeline.living()) {
            let sizes: Vec<_> = found.attachments.iter().map(|kept| (kept.name.clone(), kept.bytes)).collect();
            let wanted: Vec<_> =
                known.attachments.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
            prop_assert_eq!(sizes, wanted, "attachments after {}", what);
        }
        let current = self.workspace.current().map_err(|error| failed("where it stands", error))?;
        prop_assert_eq!(current, self.timeline.standing_id(), "where the workspace stands after {}", what);
        Ok(())
    }

    pub(super) fn unchanged(&self, what: &str) -> Checked {
        self.is_on_disk(&self.tree, what)
    }

    pub(super) fn is_on_disk(&self, tree: &Tree, what: &str) -> Checked {
        let differences = Manifest(tree.clone()).differences(&Manifest(self.on_disk()));
        prop_assert!(differences.is_empty(), "{what}: model against disk:\n  {}", differences.join("\n  "));
        let repositories = repositories::read(&self.ws);
        for (path, before) in &self.repositories {
            let shown = String::from_utf8_lossy(path);
            let differences = repositories.get(path).map(|after| before.differences(after));
            prop_assert_eq!(differences, Some(Vec::new()), "{}: the repository {}", what, shown);
        }
        Ok(())
    }

    /// What the operation shall do; none where there is nothing that it could work on.
    pub(super) fn decide(&self, what: &Restoring) -> Option<Decided> {
        let (tree, standing) = (&self.tree, self.timeline.standing_id());
        let decided = |planned: Planned, stands_on, words: String, request| {
            Some(Decided { planned, stands_on, what: what.clone(), words, request })
        };
        match what {
            Restoring::Whole(back) => {
                let known = self.timeline.nth_back(*back)?;
                let planned = plan(tree, &known.tree, &known.scope);
                // A safety checkpoint of some paths is restored within them: the workspace does not stand on it.
                let stands_on = if known.scope.is_none() { Some(known.id) } else { standing };
                decided(planned, stands_on, format!("restore {}", known.id), Some(RestoreRequest::whole(known.id)))
            }
            Restoring::Paths(back, paths) => {
                let known = self.timeline.nth_whole(*back)?;
                let names: Vec<&str> = paths.iter().map(|path| PATHS[*path]).collect();
                let scope = normal(names.iter().map(|name| name.as_bytes().to_vec()).collect());
                let request = RestoreRequest { scope: to_scope(&scope), ..RestoreRequest::whole(known.id) };
                let words = format!("restore {} {}", known.id, names.join(" "));
                decided(plan(tree, &known.tree, &scope), standing, words, Some(request))
            }
            Restoring::State(back) => {
                let known = self.timeline.nth_whole(*back)?;
                let request = RestoreRequest { only: Only::State, ..RestoreRequest::whole(known.id) };
                let planned = plan(tree, &known.tree, &state_scope());
                decided(planned, standing, format!("state {}", known.id), Some(request))
            }
            Restoring::Undo | Restoring::Redo => {
                let (stack, words) = match what {
                    Restoring::Undo => (&self.timeline.undo, "undo"),
                    _ => (&self.timeline.redo, "redo"),
                };
                let last = stack.last().filter(|last| self.timeline.is_reachable(last))?;
                let planned = match last.safety {
                    Some(safety) => plan_within(tree, &self.timeline.get(safety).tree, &last.scope, &last.named),
                    None => plan(tree, &Tree::new(), &Some(Vec::new())),
                };
                decided(planned, last.stood_on, words.into(), None)
            }
        }
    }

    /// Is a path named that is in neither of both?
    pub(super) fn names_nothing(&self, decided: &Decided) -> bool {
        let (Some(request), Restoring::Paths(..)) = (&decided.request, &decided.what) else { return false };
        let known = self.timeline.get(request.target);
        let paths = request.scope.paths().unwrap_or_default();
        paths.iter().any(|path| !self.tree.contains_key(path.as_bytes()) && !known.tree.contains_key(path.as_bytes()))
    }

    pub(super) fn restoring(&mut self, what: &Restoring) -> Checked {
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
        let outcome = outcome.map_err(|error| failed(&format!("{what:?}"), error))?;
        let Some(outcome) = outcome else { return Err(TestCaseError::fail(format!("{what:?} found nothing to do"))) };
        self.check_outcome(&decided, &outcome)?;
        if let Some(safety) = outcome.safety {
            self.know_safety(safety, &decided)?;
        }
        self.done(decided, outcome.safety);
        self.check_timeline(&format!("{what:?}"))
    }

    pub(super) fn know_safety(&mut self, id: CheckpointId, decided: &Decided) -> Checked {
        let found = self.workspace.get(&id).map_err(|error| failed("the safety checkpoint", error))?;
        prop_assert_eq!(found.kind, Kind::Safety);
        self.know(&found, captured(&self.tree), decided.planned.scope.clone(), BTreeMap::new());
        Ok(())
    }

    fn check_outcome(&self, decided: &Decided, outcome: &RestoreOutcome) -> Checked {
        let what = &decided.what;
        let conflicts: BTreeSet<_> = outcome.conflicts.iter().map(|found| found.path.as_bytes().to_vec()).collect();
        self.is_on_disk(&decided.planned.tree, &format!("{what:?}"))?;
        prop_assert_eq!(conflicts, decided.planned.conflicts.clone(), "conflicts of {:?}", what);
        prop_assert!(outcome.applied);
        let changed = decided.planned.tree != self.tree;
        prop_assert_eq!(outcome.safety.is_some(), changed, "a safety checkpoint of {:?}", what);
        prop_assert_eq!(outcome.changes.is_empty(), !changed, "changes of {:?}", what);
        Ok(())
    }

    /// Notes that an operation was done; its safety checkpoint is known already.
    pub(super) fn done(&mut self, decided: Decided, safety: Option<CheckpointId>) {
        let Decided { planned, stands_on, what, .. } = decided;
        let standing = self.timeline.standing_id();
        let changed = planned.tree != self.tree;
        let takeable = Takeable { safety, scope: planned.scope, named: planned.named, stood_on: standing };
        let timeline = &mut self.timeline;
        match what {
            Restoring::Undo => {
                timeline.undo.pop();
                timeline.redo.push(takeable);
            }
            Restoring::Redo => {
                timeline.redo.pop();
                timeline.undo.push(takeable);
            }
            _ if changed || stands_on != standing => {
                timeline.undo.push(takeable);
                timeline.redo.clear();
            }
            _ => {}
        }
        timeline.at = stands_on;
        self.tree = planned.tree;
    }

    fn forgetting(&mut self, what: &Forgetting) -> Checked {
        let now = self.ws.now();
        match what {
            Forgetting::Delete(back) => {
                let Some(known) = self.timeline.nth_back(*back).cloned() else { return Ok(()) };
                let mut deleted = self.workspace.delete(&[known.id], false, now);
                if known.kind == Kind::Feature {
                    let code = deleted.map_err(|error| error.code());
                    prop_assert!(matches!(code, Err(ErrorCode::FeatureCheckpoint)), "a feature: {code:?}");
                    self.check_timeline("a delete without force")?;
                    deleted = self.workspace.delete(&[known.id], true, now);
                }
                prop_assert_eq!(deleted.map_err(|error| failed("delete", error))?, [known.id]);
                self.timeline.forget(&BTreeSet::from([known.id]));
            }
            Forgetting::Prune => {
                let surplus = self.timeline.surplus();
                let pruned = self.workspace.prune(now).map_err(|error| failed("prune", error))?;
                prop_assert_eq!(
                    pruned.deleted.into_iter().collect::<BTreeSet<_>>(),
                    surplus.clone(),
                    "what prune took"
                );
                self.timeline.forget(&surplus);
                self.check_freed()?;
            }
            Forgetting::Pin(back) | Forgetting::Unpin(back) => {
                let Some(id) = self.timeline.nth_back(*back).map(|known| known.id) else { return Ok(()) };
                let is_pin = matches!(what, Forgetting::Pin(_));
                let done = if is_pin { self.workspace.pin(&id, now) } else { self.workspace.unpin(&id, now) };
                prop_assert_eq!(done.map_err(|error| failed("pin", error))?.pinned, is_pin);
                self.timeline.get_mut(id).is_pinned = is_pin;
            }
        }
        self.unchanged(&format!("{what:?}"))?;
        self.check_timeline(&format!("{what:?}"))
    }

    /// After a prune the store holds nothing that no checkpoint needs.
    fn check_freed(&self) -> Checked {
        let ids = |arguments: &[&str]| -> BTreeSet<String> {
            String::from_utf8(self.ws.store_git(arguments)).unwrap().lines().map(str::to_owned).collect()
        };
        let all = ids(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        let needed = ids(&["rev-list", "--objects", "--no-object-names", "--all"]);
        let left: Vec<_> = all.difference(&needed).collect();
        prop_assert!(left.is_empty(), "prune left objects that nothing needs: {left:?}");
        Ok(())
    }

    pub(super) fn fresh(&mut self) -> Vec<u8> {
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
            Op::State(path) => {
                let bytes = self.fresh();
                self.put(STATE[*path], &bytes);
            }
            Op::DeleteState(path) => self.clear(STATE[*path]),
            Op::Repository(path) => {
                let name = REPOSITORIES[*path];
                if !is_directory(self.tree.get(name.as_bytes())) {
                    self.make_way(name);
                    self.ws.mkdir(name);
                }
                repositories::make(&self.ws, name);
            }
            _ => unreachable!("no edit"),
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

/// Is one kind kept longer than another? An unchanged tree is saved again only for one that is.
fn is_kept_longer(kind: Kind, than: Kind) -> bool {
    const LONGEST_LAST: [Kind; 7] =
        [Kind::Session, Kind::Automatic, Kind::Safety, Kind::Step, Kind::Turn, Kind::Manual, Kind::Feature];
    let rank = |kind: Kind| LONGEST_LAST.iter().position(|other| *other == kind);
    rank(kind) > rank(than)
}
