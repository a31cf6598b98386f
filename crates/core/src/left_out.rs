//! What a checkpoint left out, judged by its own rules and by the list that it kept, not by today's; and what one taken
//! now would leave out, with the rule that does so.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use crate::{
    disk::{Dir, FileType},
    error::{Result, While},
    files::{IgnoreRules, RuleSource, Verdict, is_of_git},
    model::{CheckpointId, Node, Reason, Scope, Skipped, WorkspacePath},
    store::{ObjectReader, Snapshot, Store, StoredEntry, StoredNode},
    workspace::Workspace,
};

/// The rule that leaves a path out of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoringRule {
    /// What it applies to: the path itself, or a directory above it.
    pub path: WorkspacePath,
    /// The pattern.
    pub pattern: String,
    /// Where it stands, in words.
    pub source: String,
}

impl Workspace {
    /// What a checkpoint taken now would leave out, whole directories as one.
    pub fn left_out(&self) -> Result<Vec<Skipped>> {
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

    /// The ignore rule that leaves a path out as things are now; none where no rule does.
    pub fn ignored_by(&self, path: &WorkspacePath) -> Result<Option<IgnoringRule>> {
        let surroundings = self.surroundings();
        let mut rules = IgnoreRules::new(&surroundings.outside, &self.settings().scan);
        let mut directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let mut here = WorkspacePath::root();
        for part in path.parts() {
            let mut bytes = Vec::new();
            // What can't be read has no rules, to a scan as well.
            let read = directory.open_file(b".gitignore").and_then(|mut file| file.read_to_end(&mut bytes));
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
        RuleSource::Settings => "[scan] exclude of the settings".into(),
        RuleSource::Inside(file) => String::from_utf8_lossy(file).into_owned(),
        RuleSource::Above => "a .gitignore above the workspace".into(),
        RuleSource::InfoExclude => ".git/info/exclude".into(),
        RuleSource::GlobalExcludes => "git's global excludes file".into(),
    }
}

/// Tells what a checkpoint left out.
pub(crate) struct LeftOut<'s> {
    store: &'s Store,
    reader: ObjectReader,
    snapshot: Snapshot,
    listed: Scope,
    /// Directories of repositories, whatever they are called: what git makes there later is git's own as well.
    git_directories: HashSet<WorkspacePath>,
    /// Named to it in spite of the rules: absent means that they were not there.
    named: Vec<WorkspacePath>,
    outside: IgnoreRules,
    rules: HashMap<WorkspacePath, IgnoreRules>,
}

impl<'s> LeftOut<'s> {
    pub(crate) fn of(store: &'s Store, id: &CheckpointId) -> Result<Self> {
        let reader = store.reader();
        let state = store.state(id)?;
        let skipped = state.skipped(&reader).map_err(|problem| store.damaged(problem))?;
        let (outside, settings) = state.rules(&reader).map_err(|problem| store.damaged(problem))?;
        let timeline = store.timeline()?;
        let record = timeline.get(id).and_then(|entry| entry.record());
        let named = record.iter().flat_map(|record| record.included.iter().chain(&record.state_files)).cloned();
        Ok(Self {
            named: named.collect(),
            snapshot: store.snapshot(id)?,
            git_directories: skipped.iter().filter_map(git_directory_told_by).collect(),
            listed: Scope::of_paths(skipped.into_iter().map(|skipped| skipped.path).collect()),
            outside: IgnoreRules::new(&outside, &settings),
            rules: HashMap::new(),
            reader,
            store,
        })
    }

    /// Did it leave this path out, or would it have?
    pub(crate) fn covers(&mut self, path: &WorkspacePath, is_directory: bool) -> Result<bool> {
        if self.listed.contains(path) || self.is_of_git(path, is_directory) {
            return Ok(true);
        }
        if self.named.iter().any(|named| path.is_within(named)) {
            return Ok(false);
        }
        let mut here = WorkspacePath::root();
        let mut parts = path.parts().peekable();
        while let Some(part) = parts.next() {
            let rules = self.rules_in(&here)?;
            here = here.join(part);
            let is_last = parts.peek().is_none();
            let is_directory = !is_last || is_directory;
            if rules.judge(here.as_bytes(), is_directory) != Verdict::Captured
                && !rules.is_included(here.as_bytes(), is_directory)
            {
                return Ok(!(is_last && !is_directory && rules.is_precious(here.as_bytes())));
            }
        }
        Ok(false)
    }

    fn is_of_git(&self, path: &WorkspacePath, is_directory: bool) -> bool {
        if self.git_directories.is_empty() {
            return false;
        }
        // Whatever else it is, it may have been a link.
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
        match crate::cat::find_stored(self.store, self.snapshot, &directory.join(b".gitignore"))? {
            Some(StoredNode::File { content, .. }) => self.store.content(&self.reader, &content).map(Some),
            _ => Ok(None),
        }
    }
}

/// The directory of a repository, where this was left out as what is checked out of it.
fn git_directory_told_by(skipped: &Skipped) -> Option<WorkspacePath> {
    let tells = skipped.reason == Reason::Git && skipped.path.name() == b"HEAD";
    tells.then(|| skipped.path.parent()).flatten()
}

/// Which of these, left out by now, a checkpoint holds.
pub(crate) fn of_these_held(store: &Store, id: &CheckpointId, skipped: &[Skipped]) -> Result<Vec<Skipped>> {
    if skipped.is_empty() {
        return Ok(Vec::new());
    }
    let held = HeldPaths::of(store, store.snapshot(id)?);
    Ok(skipped.iter().filter(|skipped| held.contains(skipped.path.as_bytes())).cloned().collect())
}

/// Which paths a snapshot holds, looked up on demand.
pub(crate) struct HeldPaths<'s> {
    store: &'s Store,
    snapshot: Snapshot,
    listed: std::sync::Mutex<HashMap<Vec<u8>, Option<Vec<StoredEntry>>>>,
}

impl<'s> HeldPaths<'s> {
    pub(crate) fn of(store: &'s Store, snapshot: Snapshot) -> Self {
        Self { store, snapshot, listed: std::sync::Mutex::default() }
    }

    /// Does it hold this path, as a file, a link or a directory? An unreadable part counts as not held here; the plan
    /// names it as damage.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        self.find(path, |_| ()).is_some()
    }

    /// How large is the file that it holds at this path?
    pub(crate) fn size(&self, path: &[u8]) -> Option<u64> {
        let content = self.find(path, |node| match node {
            StoredNode::File { content, .. } => Some(*content),
            _ => None,
        })??;
        self.store.content_size(&self.store.reader(), &content).ok()
    }

    fn find<T>(&self, path: &[u8], look: impl Fn(&StoredNode) -> T) -> Option<T> {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], path),
        };
        let mut listed = self.listed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entries = listed.entry(parent.to_vec()).or_insert_with(|| self.list(parent));
        entries.as_ref()?.iter().find(|entry| entry.name == name).map(|entry| look(&entry.node))
    }

    fn list(&self, directory: &[u8]) -> Option<Vec<StoredEntry>> {
        let path = WorkspacePath::new(directory).ok()?;
        match crate::cat::find_stored(self.store, self.snapshot, &path).ok()?? {
            StoredNode::Directory { snapshot, .. } => self.store.list(&self.store.reader(), &snapshot).ok(),
            _ => None,
        }
    }
}
