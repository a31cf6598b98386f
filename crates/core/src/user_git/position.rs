//! The position of the user repository, and the changes that move it elsewhere: HEAD, one branch, the index.
//!
//! A move is only planned here. `obstacles` checks what forbids it, and `restore/git.rs` carries it out if the user
//! asked for it.

use std::path::PathBuf;

use gix_hash::ObjectId;
use gix_index::entry::{Flags, Mode, Stage};

use super::{objects::UserObjects, repository::UserRepository};
use crate::{
    disk,
    error::{Error, Result, While},
    model::GitState,
};

/// The maximum number of commits to search for an ancestor. A commit that is not among them is assumed to be
/// unreachable.
const MAX_COMMITS: usize = 10_000;

/// The exact position of a repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Position {
    /// The full name of the branch in HEAD, with `refs/heads/`. `None` if HEAD was detached.
    pub(crate) branch: Option<String>,
    /// The commit that was checked out.
    pub(crate) commit: Option<String>,
    /// The branch that the move changed, and its previous commit. The commit is `None` if the branch did not exist.
    pub(crate) moved: Option<(String, Option<String>)>,
}

/// A change of one file of the repository: its old and new contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitEdit {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<Vec<u8>>,
    pub(crate) new: Option<Vec<u8>>,
}

/// A move of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitMove {
    pub(crate) edits: Vec<GitEdit>,
    /// The current position.
    pub(crate) before: Position,
    /// The current bytes of the index.
    pub(crate) index: Option<Vec<u8>>,
    /// The position after the move.
    pub(crate) after: GitState,
    /// The reflogs that get a new line, each with the commits before and after.
    pub(crate) logs: Vec<(PathBuf, String, String)>,
}

/// The destination of a move.
pub(crate) enum Destination<'a> {
    /// The position that a checkpoint recorded, with a fresh index.
    Recorded(&'a GitState),
    /// The position before an earlier move, with the index of that time.
    Back(&'a Position, Option<Vec<u8>>),
}

pub(super) fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::GitState { reason: reason.into() })
}

impl UserRepository {
    /// Plans a move to the destination. Returns `None` if the repository is already there.
    pub(crate) fn plan_move(&self, to: &Destination<'_>) -> Result<Option<GitMove>> {
        self.refuse_what_is_under_way()?;
        self.refuse_others_repository()?;
        let Some((branch, commit)) = self.head() else { return refuse("HEAD can't be read") };
        let branch = branch.map(|name| format!("refs/heads/{name}"));
        let wanted = self.wanted(to)?;
        for name in wanted.branch.iter().chain(wanted.moved.iter().map(|(name, _)| name)) {
            self.refuse_branch_elsewhere(name)?;
        }
        let moved = wanted.moved.as_ref().map(|(name, _)| (name.clone(), self.resolve(name)));
        let before = Position { branch, commit, moved };
        let index = self.git_dir.join("index");
        let index = disk::read_regular(&index).or_fail("read", index)?;

        let mut edits = Vec::new();
        if let (Some((name, now)), Some((_, then))) = (&before.moved, &wanted.moved)
            && now != then
        {
            self.keep_commit(now.as_deref(), wanted.commit.as_deref(), &mut edits)?;
            self.edit_ref(name, then.as_deref(), &mut edits)?;
        }
        if before.branch != wanted.branch || (wanted.branch.is_none() && before.commit != wanted.commit) {
            if before.branch.is_none() {
                self.keep_commit(before.commit.as_deref(), wanted.commit.as_deref(), &mut edits)?;
            }
            self.edit_head(&wanted, &mut edits)?;
        }
        if let Some(commit) = &wanted.commit {
            self.release_commit(commit, &mut edits)?;
        }
        self.edit_index(to, &wanted, index.clone(), &mut edits)?;
        edits.retain(|edit| edit.old != edit.new);
        if edits.is_empty() {
            return Ok(None);
        }
        let logs = self.logs(&before, &wanted);
        let files = edits.iter().map(|edit| &edit.path).chain(logs.iter().map(|(path, ..)| path));
        files.chain([&self.git_dir.join("HEAD")]).try_for_each(|path| self.refuse_linked(path))?;
        self.refuse_locks(&before, &edits)?;
        let after = GitState {
            commit: wanted.commit.clone(),
            branch: wanted.branch.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
            ..GitState::default()
        };
        Ok(Some(GitMove { edits, before, index, after, logs }))
    }

    fn wanted(&self, to: &Destination<'_>) -> Result<Position> {
        match to {
            Destination::Back(position, _) => Ok((*position).clone()),
            Destination::Recorded(state) => {
                let Some(commit) = state.commit.clone() else {
                    return refuse("the checkpoint was taken before the repository's first commit");
                };
                let branch = state.branch.as_ref().map(|name| format!("refs/heads/{name}"));
                let moved = branch.clone().map(|name| (name, Some(commit.clone())));
                Ok(Position { branch, commit: Some(commit), moved })
            }
        }
    }

    fn edit_ref(&self, name: &str, commit: Option<&str>, edits: &mut Vec<GitEdit>) -> Result<()> {
        if commit.is_none() && self.resolve_packed(name).is_some() {
            return refuse(format!("{name} is packed now; delete it with git first"));
        }
        let path = self.common_dir.join(name);
        if commit.is_some() {
            self.refuse_name_in_the_way(name)?;
            if disk::is_directory(&path) {
                // The directory is empty. It is removed when the file is written.
                edits.push(GitEdit { path, old: None, new: commit.map(line) });
                return Ok(());
            }
        }
        edits.push(edit_of(path, commit.map(line))?);
        Ok(())
    }

    fn edit_head(&self, wanted: &Position, edits: &mut Vec<GitEdit>) -> Result<()> {
        let text = match (&wanted.branch, &wanted.commit) {
            (Some(name), _) => line(&format!("ref: {name}")),
            (None, Some(commit)) => line(commit),
            (None, None) => return refuse("the checkpoint names neither a branch nor a commit"),
        };
        edits.push(edit_of(self.git_dir.join("HEAD"), Some(text))?);
        Ok(())
    }

    /// Creates a ref for a commit that no other ref would reach after the move.
    fn keep_commit(&self, left: Option<&str>, wanted: Option<&str>, edits: &mut Vec<GitEdit>) -> Result<()> {
        let (Some(left), Some(wanted)) = (left, wanted) else { return Ok(()) };
        if !self.is_ancestor(left, wanted)? {
            edits.push(edit_of(self.kept_ref(left), Some(line(left)))?);
        }
        Ok(())
    }

    /// Removes the ref that was created for a commit, once the commit is checked out again.
    fn release_commit(&self, commit: &str, edits: &mut Vec<GitEdit>) -> Result<()> {
        let path = self.kept_ref(commit);
        if !edits.is_empty() && disk::private::exists(&path) {
            edits.push(edit_of(path, None)?);
        }
        Ok(())
    }

    fn kept_ref(&self, commit: &str) -> PathBuf {
        self.common_dir.join("refs/backtrail").join(commit)
    }

    fn edit_index(
        &self,
        to: &Destination<'_>,
        wanted: &Position,
        present: Option<Vec<u8>>,
        edits: &mut Vec<GitEdit>,
    ) -> Result<()> {
        let new = match to {
            Destination::Back(_, index) => index.clone(),
            Destination::Recorded(_) => {
                let Some(commit) = &wanted.commit else { return Ok(()) };
                self.index_of_commit(commit)?
            }
        };
        if let Some(new) = new {
            edits.push(GitEdit { path: self.git_dir.join("index"), old: present, new: Some(new) });
        }
        Ok(())
    }

    /// Returns the index that `git reset --mixed` to this commit produces. Returns `None` if the present index has the
    /// same entries.
    fn index_of_commit(&self, commit: &str) -> Result<Option<Vec<u8>>> {
        let problem = |what: String| Error::GitState { reason: what };
        let objects = self.objects()?;
        let tree = self.tree_of(&objects, commit)?;
        let mut state = gix_index::State::from_tree(&tree, &objects, Default::default())
            .map_err(|error| problem(format!("the tree of commit {commit} can't be read: {error}")))?;
        let present = self.parsed_index();
        if let Some(present) = &present {
            if present.is_sparse() {
                return refuse("the repository has a sparse index; expand it with: git sparse-checkout disable");
            }
            if says_the_same(present, &state) {
                return Ok(None);
            }
            take_over(&mut state, present);
        }
        let mut bytes = Vec::new();
        let file = gix_index::File::from_state(state, self.index_path());
        let options = gix_index::write::Options::default();
        file.write_to(&mut bytes, options).map_err(|error| problem(format!("the index can't be written: {error}")))?;
        Ok(Some(bytes))
    }

    pub(super) fn tree_of(&self, objects: &UserObjects, commit: &str) -> Result<ObjectId> {
        let gone = || Error::GitState { reason: format!("commit {commit} is no longer in the repository") };
        let id = ObjectId::from_hex(commit.as_bytes()).map_err(|_| gone())?;
        let mut bytes = Vec::new();
        let found = gix_object::Find::try_find(objects, &id, &mut bytes).ok().flatten().ok_or_else(gone)?;
        let commit = gix_object::CommitRef::from_bytes(found.data, gix_hash::Kind::Sha1).map_err(|_| gone())?;
        Ok(commit.tree())
    }

    /// Returns whether `older` is reachable from `newer`.
    fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool> {
        let objects = self.objects()?;
        let (Ok(older), Ok(newer)) = (ObjectId::from_hex(older.as_bytes()), ObjectId::from_hex(newer.as_bytes()))
        else {
            return Ok(false);
        };
        let (mut seen, mut next, mut bytes) = (std::collections::HashSet::new(), vec![newer], Vec::new());
        while let Some(id) = next.pop() {
            if id == older {
                return Ok(true);
            }
            if seen.len() == MAX_COMMITS || !seen.insert(id) {
                continue;
            }
            let Some(found) = gix_object::Find::try_find(&objects, &id, &mut bytes).ok().flatten() else { continue };
            if let Ok(commit) = gix_object::CommitRef::from_bytes(found.data, gix_hash::Kind::Sha1) {
                next.extend(commit.parents());
            }
        }
        Ok(false)
    }

    /// Returns the reflogs that git would add a line to.
    fn logs(&self, before: &Position, wanted: &Position) -> Vec<(PathBuf, String, String)> {
        let null = || ObjectId::null(gix_hash::Kind::Sha1).to_string();
        let or_null = |commit: &Option<String>| commit.clone().unwrap_or_else(null);
        let mut logs = vec![(self.git_dir.join("logs/HEAD"), or_null(&before.commit), or_null(&wanted.commit))];
        if let (Some((name, now)), Some((_, then))) = (&before.moved, &wanted.moved) {
            logs.push((self.common_dir.join("logs").join(name), or_null(now), or_null(then)));
        }
        logs.retain(|(_, old, new)| old != new);
        logs
    }
}

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

/// Creates an edit from the current contents. An unreadable file is an error and does not count as missing: the move
/// would be left half done.
fn edit_of(path: PathBuf, new: Option<Vec<u8>>) -> Result<GitEdit> {
    let old = disk::read_regular(&path).or_fail("read", &path)?;
    Ok(GitEdit { path, old, new })
}

/// Returns whether both indexes have the same paths with the same contents. An index with conflicts differs, since the
/// wanted one has none.
fn says_the_same(present: &gix_index::State, wanted: &gix_index::State) -> bool {
    let of = |state: &gix_index::State| -> Vec<(Vec<u8>, ObjectId, Mode, Stage, bool)> {
        let entries = state.entries().iter();
        let describe = |entry: &gix_index::Entry| {
            let is_intended = entry.flags.contains(Flags::INTENT_TO_ADD);
            (entry.path(state).to_vec(), entry.id, entry.mode, entry.stage(), is_intended)
        };
        entries.map(describe).collect()
    };
    of(present) == of(wanted)
}

/// Copies the stat data and flags of entries that are equal in both indexes, so that git need not read these files
/// again.
fn take_over(state: &mut gix_index::State, present: &gix_index::State) {
    let known: Vec<Option<gix_index::Entry>> = state
        .entries()
        .iter()
        .map(|entry| {
            let found = present.entry_by_path(entry.path(state))?;
            (found.id == entry.id && found.mode == entry.mode).then(|| found.clone())
        })
        .collect();
    let kept = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
    for (entry, known) in state.entries_mut().iter_mut().zip(known) {
        if let Some(known) = known {
            entry.stat = known.stat;
            entry.flags |= known.flags & (kept | Flags::EXTENDED);
        }
    }
}
