//! A fork that has begun: its directory has a mark, and its store says that it is not finished.

use std::path::Path;

use jiff::Timestamp;

use super::ForkRequest;
use crate::{
    disk::{self, Dir, private},
    error::{Result, While},
    events::Event,
    model::{CheckpointId, Kind, Scope},
    operations::{new_directory::free_name, workspaces::forget},
    store::{Direction, ExactText, ForkLink, ForkNote, ForkOrigin, Layout, Operation, Restored, Store, Writer},
    workspace::{Workspace, bindings::Stores, locate::Location},
};

/// The name of the file that marks a directory as an unfinished fork. If the workspace holds a file of this name, a
/// number is appended.
const MARK: &str = ".backtrail-fork";

/// A fork that is not finished.
pub(super) struct Begun {
    /// The fork as a workspace.
    pub(super) workspace: Workspace,
    /// Its directory.
    pub(super) target: Dir,
    /// Its store, locked.
    pub(super) writer: Writer,
    mark: Vec<u8>,
    origin: ForkOrigin,
}

impl Begun {
    /// Marks the directory, and creates its store with the objects of `sources`.
    pub(super) fn begin(
        original: &Workspace,
        directory: &Path,
        request: &ForkRequest,
        sources: &[&Writer],
    ) -> Result<Self> {
        if !private::exists(directory) {
            disk::make_directories(directory).or_fail("create", directory)?;
        }
        let root = private::canonical(directory).or_fail("find", directory)?;
        let target = Dir::open_resolved(&root).or_fail("open", &root)?;
        let mark = free_mark(original, request, sources)?;
        write_mark(&target, &mark, original.root()).or_fail("write into", &root)?;
        let stores = Stores::below(&request.stores);
        for store in stores.named_after(&root) {
            if ForkOrigin::read(&Layout::new(&store))?.is_some_and(|origin| !origin.finished) {
                forget(&store, None, original.patience())?;
            }
        }
        let location = Location::with_store(root.clone(), stores.new_name(&root));
        let workspace = Workspace::new(location, original.options().clone());
        let origin = ForkOrigin::begun(original.root(), original.store_directory());
        let lock = Store::lock(workspace.store_directory(), &root, original.patience())?;
        lock.prepare_fork(&origin, sources)?;
        let (writer, _) = lock.open_or_create(&workspace.found()?.identity, None)?;
        Ok(Self { workspace, target, writer, mark, origin })
    }

    /// Publishes the fork point in the store of the fork, and makes it the checkpoint that the fork stands on.
    pub(super) fn publish(&self, point: &CheckpointId, now: Timestamp) -> Result<()> {
        self.writer.publish_shared(point)?;
        // Without the fork point, the fork could not be adopted.
        self.writer.pin(point)?;
        let timeline = self.writer.timeline()?;
        if timeline.require(point)?.kind == Kind::Safety {
            self.writer.log(&[Operation::Restored(Restored {
                sequence: timeline.next_sequence(),
                target: *point,
                safety: None,
                scope: Scope::Whole,
                named: None,
                exact: None,
                reverted: Vec::new(),
                partial: false,
                adopted: None,
                also_from: Vec::new(),
                before: None,
                after: Some(*point),
                direction: Direction::Forward,
            })])?;
        }
        self.workspace.emit(&self.writer, Event::Initialized, now)
    }

    /// Removes the mark, notes the fork in the workspace's store, and finishes it.
    pub(super) fn finish(&self, original: &Writer, point: &CheckpointId, links: Vec<ForkLink>) -> Result<()> {
        let root = self.workspace.root();
        self.target.remove_own_file(&self.mark).or_fail("write into", root)?;
        self.target.sync().or_fail("sync", root)?;
        let store = ExactText::of_path(self.workspace.store_directory());
        original.note_fork(&ForkNote { store, checkpoint: *point })?;
        let finished = ForkOrigin { checkpoint: Some(*point), links, finished: true, ..self.origin.clone() };
        finished.write(self.writer.store().layout())
    }
}

/// Returns a name for the mark that no file of the fork will have.
fn free_mark(original: &Workspace, request: &ForkRequest, sources: &[&Writer]) -> Result<Vec<u8>> {
    let root = Dir::open_resolved(original.root()).or_fail("open", original.root())?;
    let listed = root.list().or_fail("read", original.root())?;
    let mut taken: Vec<_> = listed.into_iter().map(|listed| listed.name).collect();
    if let (Some(id), Some(source)) = (&request.from, sources.first()) {
        let store = source.store();
        let held = store.list(&store.reader(), &store.snapshot(id)?)?;
        taken.extend(held.into_iter().map(|entry| entry.name));
    }
    Ok(free_name(MARK, |name| taken.iter().any(|taken| taken == name)))
}

fn write_mark(target: &Dir, mark: &[u8], original: &Path) -> std::io::Result<()> {
    let original = original.display();
    let text = format!("A fork of {original} was not finished here. Remove this directory and fork again.\n");
    let mut file = target.create_own_file(mark)?;
    target.write_own(&mut file, text.as_bytes())?;
    target.sync_own(&file)?;
    target.sync()
}
