//! Checks the conditions for the first write: free space, permissions, and directories that can be made writable.

use std::collections::{BTreeSet, HashSet};

use super::RestorePlan;
use crate::{
    disk::{self, Dir, Openness},
    error::{Error, Result, While},
    model::{Mode, Side, WorkspacePath},
    store::{Step, Store},
    workspace::Workspace,
};

impl Workspace {
    /// Checks that the plan can be carried out, and adds the directories that have to be made writable for it.
    pub(super) fn check_plan(&self, store: &Store, plan: &mut RestorePlan) -> Result<()> {
        let closed = self.check_parents(&plan.steps)?;
        plan.steps.extend(closed);
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        self.check_room(store, plan)
    }

    /// Checks that every directory whose names change is writable. Returns steps for the directories whose permissions
    /// forbid that: they are made writable, and get their permissions back.
    fn check_parents(&self, steps: &[Step]) -> Result<Vec<Step>> {
        let mut seen: BTreeSet<WorkspacePath> = BTreeSet::new();
        let planned: HashSet<&WorkspacePath> = steps.iter().map(|step| &step.path).collect();
        let mut closed = Vec::new();
        for step in steps {
            let changes_names =
                step.takes_leaf() || step.puts_leaf() || step.takes_directory() || step.puts_directory();
            let Some(parent) = step.path.parent().filter(|_| changes_names) else { continue };
            if !seen.insert(parent.clone()) {
                continue;
            }
            let Some(directory) = self.open_existing(&parent)? else { continue };
            let openness = directory.openness();
            let openness = openness.or_fail("write into", self.root().join(parent.to_text().as_ref()))?;
            if openness == Openness::Closed && !planned.contains(&parent) {
                let mode = Mode::from_raw(directory.stamp().or_fail("read", self.root())?.mode);
                let side = Some(Side::Directory { mode });
                closed.push(Step { path: parent, old: side, new: side, area: 0, in_place: false });
            }
        }
        Ok(closed)
    }

    /// Returns the directory at a path. Returns `None` if there is none yet, or something else.
    pub(super) fn open_existing(&self, path: &WorkspacePath) -> Result<Option<Dir>> {
        let root = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        match root.open_below(path.as_bytes()) {
            Err(error) if is_absence(&error) => Ok(None),
            opened => opened.map(Some).or_fail("open", self.root().join(path.to_text().as_ref())),
        }
    }

    fn check_room(&self, store: &Store, plan: &RestorePlan) -> Result<()> {
        let reader = store.reader();
        let mut needed: u64 = 0;
        for step in &plan.steps {
            if step.puts_leaf()
                && let Some(content) = step.new.as_ref().and_then(Side::content)
            {
                needed += store.content_size(&reader, &content)?;
            }
        }
        let root = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let free = disk::free_bytes(&root).or_fail("read", self.root())?;
        if needed > free {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(Error::Io {
                action: "make room for the restored files in",
                path: self.root().to_owned(),
                source,
            });
        }
        Ok(())
    }
}

/// Returns whether the error means that there is nothing, or no directory, at a path.
pub(super) fn is_absence(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    error.raw_os_error().is_some_and(|code| absent.contains(&Errno::from_raw_os_error(code)))
}
