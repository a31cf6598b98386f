//! Finds the paths that a checkpoint skipped, judged by its own rules and its own list rather than today's. Also finds
//! the paths that a checkpoint taken now would skip, with the rule that skips them.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use crate::{
    disk::{Dir, FileType},
    error::{Result, While},
    model::{CheckpointId, MAX_RULE_BYTES, Node, Reason, Scope, Skipped, WorkspacePath},
    scan::{IgnoreRules, RuleSource, RuleVerdict, is_of_git, is_rule_file},
    spans::{Outcome, operation, read_span},
    store::{ObjectReader, Snapshot, Store, StoredNode},
    workspace::Workspace,
};

/// The rule that makes checkpoints skip a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoringRule {
    /// The path that the rule applies to: the path itself, or a directory above it.
    pub path: WorkspacePath,
    /// The pattern.
    pub pattern: String,
    /// The place of the rule, in words.
    pub source: String,
}

impl Workspace {
    /// Returns the paths that a checkpoint taken now would skip. A skipped directory is one path.
    pub fn left_out(&self) -> Result<Vec<Skipped>> {
        let span = read_span!(self.store_directory(), "left_out", paths);
        let paths = operation(&span, || self.find_left_out())?;
        Outcome::on(&span).count("paths", paths.len());
        Ok(paths)
    }

    fn find_left_out(&self) -> Result<Vec<Skipped>> {
        let store = self.store()?;
        let present = self.scan_for_reading(store.as_ref(), &Scope::Whole)?;
        let mut found = Vec::new();
        present.root.walk(&mut |path, node| {
            if let Node::Skipped(reason, _) = node
                && *reason != Reason::Git
            {
                found.push(Skipped { path: path.clone(), reason: *reason });
            }
        });
        Ok(found)
    }

    /// Returns the ignore rule that skips a path now, or `None` if no rule does.
    pub fn ignored_by(&self, path: &WorkspacePath) -> Result<Option<IgnoringRule>> {
        let surroundings = self.surroundings();
        let mut rules = IgnoreRules::new(&surroundings.outside, &self.settings().scan);
        let mut directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let mut here = WorkspacePath::root();
        for part in path.parts() {
            let mut bytes = Vec::new();
            // A file that can't be read has no rules. A scan treats it the same way.
            let read = directory
                .open_file(b".gitignore")
                .and_then(|file| file.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes));
            if read.is_ok() {
                rules = rules.below(here.as_bytes(), &bytes);
            }
            here = here.join(part);
            let below = directory.open_dir(part).ok();
            if let Some((pattern, source)) = rules.ignored_by(here.as_bytes(), below.is_some()) {
                return Ok(Some(IgnoringRule { path: here, pattern, source: said(&source) }));
            }
            match below {
                Some(below) => directory = below,
                None => break,
            }
        }
        Ok(None)
    }
}

fn said(source: &RuleSource) -> String {
    match source {
        RuleSource::Settings => "[scan] exclude in the settings".into(),
        RuleSource::Inside(file) => String::from_utf8_lossy(file).into_owned(),
        RuleSource::Above => "a .gitignore above the workspace".into(),
        RuleSource::InfoExclude => ".git/info/exclude".into(),
        RuleSource::GlobalExcludes => "git's global excludes file".into(),
    }
}

/// Tells which paths a checkpoint skipped.
pub(crate) struct SkippedByCheckpoint<'s> {
    store: &'s Store,
    reader: ObjectReader,
    snapshot: Snapshot,
    listed: Scope,
    /// Paths that it changed against the one before it. A path in this list that it does not hold was deleted, not
    /// skipped.
    changed: Vec<WorkspacePath>,
    /// Git directories, whatever their names are. Files that git creates there later are git's own as well.
    git_directories: HashSet<WorkspacePath>,
    /// Paths that it was told to capture in spite of the rules. If one is absent, it did not exist then.
    named: Vec<WorkspacePath>,
    outside: IgnoreRules,
    rules: HashMap<WorkspacePath, IgnoreRules>,
}

impl<'s> SkippedByCheckpoint<'s> {
    pub(crate) fn of(store: &'s Store, id: &CheckpointId) -> Result<Self> {
        let reader = store.reader();
        let state = store.state(id)?;
        let skipped = state.skipped(&reader).map_err(|problem| store.damaged(problem))?;
        let (outside, settings) = state.rules(&reader).map_err(|problem| store.damaged(problem))?;
        let timeline = store.timeline()?;
        let record = timeline.get(id).and_then(|entry| entry.record());
        let changed = record.as_ref().map(|record| record.changed.clone()).unwrap_or_default();
        let changed = changed.or_in_state(state.changed(&reader).map_err(|problem| store.damaged(problem))?);
        let named = record.iter().flat_map(|record| record.included.iter().chain(&record.state_files)).cloned();
        Ok(Self {
            named: named.collect(),
            changed,
            snapshot: store.snapshot(id)?,
            git_directories: skipped.iter().filter_map(git_directory_told_by).collect(),
            listed: Scope::of_paths(skipped.into_iter().map(|skipped| skipped.path).collect()),
            outside: IgnoreRules::new(&outside, &settings),
            rules: HashMap::new(),
            reader,
            store,
        })
    }

    /// Returns whether it skipped this path, or would have. Returns `false` for a directory in which it deleted
    /// something: the entries of the directory are judged one by one.
    pub(crate) fn covers(&mut self, path: &WorkspacePath, is_directory: bool) -> Result<bool> {
        if self.listed.contains(path) || self.is_of_git(path, is_directory) {
            return Ok(true);
        }
        if self.named.iter().any(|named| path.is_within(named)) || self.deleted(path, is_directory) {
            return Ok(false);
        }
        let mut here = WorkspacePath::root();
        let mut parts = path.parts().peekable();
        while let Some(part) = parts.next() {
            let rules = self.rules_in(&here)?;
            here = here.join(part);
            let is_last = parts.peek().is_none();
            let is_directory = !is_last || is_directory;
            if is_last && is_rule_file(here.as_bytes(), is_directory) {
                return Ok(false);
            }
            if rules.judge(here.as_bytes(), is_directory) != RuleVerdict::Captured
                && !rules.is_included(here.as_bytes(), is_directory)
            {
                return Ok(!(is_last && !is_directory && rules.is_precious(here.as_bytes())));
            }
        }
        Ok(false)
    }

    fn deleted(&self, path: &WorkspacePath, is_directory: bool) -> bool {
        let is_it = |changed: &WorkspacePath| if is_directory { changed.is_within(path) } else { changed == path };
        self.changed.iter().any(is_it)
    }

    fn is_of_git(&self, path: &WorkspacePath, is_directory: bool) -> bool {
        if self.git_directories.is_empty() {
            return false;
        }
        // A path that is not a directory may have been a symlink.
        let file_type = if is_directory { FileType::Directory } else { FileType::Symlink };
        let is_gits = |here: &WorkspacePath, file_type| {
            here.parent().is_some_and(|parent| self.git_directories.contains(&parent))
                && is_of_git(here.name(), file_type)
        };
        is_gits(path, file_type) || path.ancestors().any(|above| is_gits(&above, FileType::Directory))
    }

    fn rules_in(&mut self, directory: &WorkspacePath) -> Result<IgnoreRules> {
        if let Some(known) = self.rules.get(directory) {
            return Ok(known.clone());
        }
        let above = match directory.parent() {
            Some(parent) => self.rules_in(&parent)?,
            None => self.outside.clone(),
        };
        let rules = match self.ignore_file_in(directory)? {
            Some(bytes) => above.below(directory.as_bytes(), &bytes),
            None => above,
        };
        self.rules.insert(directory.clone(), rules.clone());
        Ok(rules)
    }

    fn ignore_file_in(&self, directory: &WorkspacePath) -> Result<Option<Vec<u8>>> {
        match self.store.find(self.snapshot, &directory.join(b".gitignore"))? {
            Some(StoredNode::File { content, .. }) => self.store.content(&self.reader, &content).map(Some),
            _ => Ok(None),
        }
    }
}

/// Returns the git directory that a skipped path reveals: the directory of a `HEAD` that was skipped as git's own.
fn git_directory_told_by(skipped: &Skipped) -> Option<WorkspacePath> {
    let tells = skipped.reason == Reason::Git && skipped.path.name() == b"HEAD";
    tells.then(|| skipped.path.parent()).flatten()
}
