//! Checks a store: every object that a checkpoint needs, every ref, every record, every pack.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    Store, StoredNode,
    checksummed_lines::Lines,
    objects::{ObjectKind, ObjectProblem, ObjectReader, object_id},
    refs,
    snapshot::{MAX_DEPTH, too_deep},
};
use crate::{
    disk::private,
    model::{CheckpointId, ModesId, TreeId},
    threads,
};

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) checkpoints: usize,
    /// Checkpoints or files, each with what is wrong with it.
    pub(crate) damaged: Vec<(String, String)>,
}

/// Checks everything.
pub(crate) fn verify(store: &Store) -> io::Result<Findings> {
    let mut found = Findings::default();
    let timeline = store.whole_timeline().map_err(|error| io::Error::other(error.to_string()))?;
    found.checkpoints = timeline.entries().len() + timeline.unreadable.len();
    let mut check = Check::of(store);
    for id in timeline.entries().iter().map(|entry| &entry.id).chain(&timeline.unreadable) {
        if let Err(problem) = check.checkpoint(store, object_id(id.as_bytes())) {
            found.damaged.push((id.to_string(), problem.to_string()));
        }
    }
    for id in &timeline.binned {
        if let Err(problem) = check.checkpoint(store, object_id(id.as_bytes())) {
            found.damaged.push((id.to_string(), format!("{problem}; it is deleted, and `prune` removes it")));
        }
    }
    // A writer may have published some of them after the refs were read and before the timeline file was read.
    let refs_by_now = if timeline.lost.is_empty() { refs::Refs::default() } else { refs::Refs::read(store.layout())? };
    for id in timeline.lost.iter().filter(|id| !refs_by_now.checkpoints.contains(id)) {
        // A checkpoint whose objects are gone was deleted without a line in the log.
        if check.checkpoint(store, object_id(id.as_bytes())).is_ok() {
            found.damaged.push((id.to_string(), "its ref is missing; the next save restores it".into()));
        }
    }
    for id in refs::damaged_loose(store.layout())? {
        found.damaged.push((id.to_string(), "its ref does not name it".into()));
    }
    if !private::exists(&store.layout().format()) {
        found.damaged.push(("format".into(), "it is missing; the next save creates it again".into()));
    }
    check_log(store, &mut found)?;
    check_journal(store, &mut found)?;
    check_packs(store, &mut found)?;
    Ok(found)
}

/// Returns whether all objects that a checkpoint needs exist undamaged.
pub(super) fn is_whole(store: &Store, id: &CheckpointId) -> bool {
    let mut check = Check::of(store);
    check.checkpoint(store, object_id(id.as_bytes())).is_ok()
}

/// Reports a journal that can't be read. A readable journal is no damage: it says that a restore will be finished.
fn check_journal(store: &Store, found: &mut Findings) -> io::Result<()> {
    if let super::FoundJournal::Damaged(why) = super::journal::read(store.layout())? {
        found.damaged.push(("journal".into(), format!("the journal of an interrupted restore can't be read: {why}")));
    }
    if private::exists(&store.layout().damaged_journal()) {
        found.damaged.push(("journal.damaged".into(), "a restore was interrupted, and its journal is damaged".into()));
    }
    Ok(())
}

fn check_log(store: &Store, found: &mut Findings) -> io::Result<()> {
    let path = store.layout().operations();
    let bytes = private::read(&path)?.unwrap_or_default();
    // A crash leaves a last line without its end. No completed operation is missing then.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let damaged = Lines::of(&bytes[..whole]).damaged;
    if damaged > 0 {
        found.damaged.push(("ops".into(), format!("damaged lines in the log of operations: {damaged}")));
    }
    Ok(())
}

/// Checks all packs and indices. Damage in a pack that no checkpoint needs would still confuse plain git.
fn check_packs(store: &Store, found: &mut Findings) -> io::Result<()> {
    let directory = store.layout().packs();
    for name in private::names(&directory)? {
        let path = directory.join(&name);
        let text = name.to_string_lossy().into_owned();
        let is_checked = path.extension().is_some_and(|extension| extension == "idx" || extension == "pack");
        if is_checked && let Err(problem) = check_trailer(&path)? {
            found.damaged.push((text, problem));
        }
    }
    Ok(())
}

/// Checks the hash at the end of a pack or an index. It covers everything before it.
pub(super) fn check_trailer(path: &std::path::Path) -> io::Result<Result<(), String>> {
    const HASH_BYTES: u64 = 20;
    let file = match std::fs::File::open(path) {
        // A writer merged and removed it since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(())),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    let Some(body) = length.checked_sub(HASH_BYTES) else { return Ok(Err("it is truncated".into())) };
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    super::packs::pack::hash_range(&file, 0..body, &mut hasher)?;
    let mut trailer = [0; HASH_BYTES as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut trailer, body)?;
    let is_sound = super::objects::finish_hash(hasher)?.as_slice() == trailer;
    Ok(if is_sound { Ok(()) } else { Err("its checksum does not match".into()) })
}

struct Check {
    reader: ObjectReader,
    blobs: HashMap<ObjectId, Result<(), ObjectProblem>>,
    /// The number of levels of each tree, itself included.
    heights: HashMap<ObjectId, Result<u16, ObjectProblem>>,
    listed: HashSet<(TreeId, Option<ModesId>)>,
}

impl Check {
    fn of(store: &Store) -> Self {
        Self { reader: store.reader(), blobs: HashMap::new(), heights: HashMap::new(), listed: HashSet::new() }
    }

    fn checkpoint(&mut self, store: &Store, id: ObjectId) -> Result<(), ObjectProblem> {
        let checkpoint = CheckpointId(super::objects::bytes_of(&id));
        let (tree, state, _) = store.read_checkpoint_commit(&checkpoint)?;
        self.tree(tree, 0)?;
        if let Some(state) = state {
            let (tree, _) = super::store::read_commit(&self.reader, &state)?;
            self.tree(tree, 0)?;
        }
        // The names and modes must be valid, too.
        let snapshot = store.snapshot(&checkpoint).map_err(|error| ObjectProblem::Damaged(id, error.to_string()))?;
        self.names(&snapshot)
    }

    fn names(&mut self, snapshot: &super::Snapshot) -> Result<(), ObjectProblem> {
        if !self.listed.insert((snapshot.ids.tree, snapshot.ids.modes)) {
            return Ok(());
        }
        for entry in super::snapshot::list(&self.reader, snapshot)? {
            if let StoredNode::Directory { snapshot, .. } = entry.node {
                threads::with_room(usize::from(snapshot.depth), || self.names(&snapshot))?;
            }
        }
        Ok(())
    }

    /// Checks a tree that is `depth` levels below the root. Returns its number of levels, itself included.
    fn tree(&mut self, id: ObjectId, depth: u16) -> Result<u16, ObjectProblem> {
        if !self.heights.contains_key(&id) {
            if depth > MAX_DEPTH {
                return Err(too_deep(id));
            }
            let height = threads::with_room(usize::from(depth), || self.tree_anew(id, depth));
            self.heights.insert(id, height);
        }
        let height = self.heights[&id].clone()?;
        if depth + height > MAX_DEPTH + 1 { Err(too_deep(id)) } else { Ok(height) }
    }

    fn tree_anew(&mut self, id: ObjectId, depth: u16) -> Result<u16, ObjectProblem> {
        let bytes = self.reader.read(&id, ObjectKind::Tree)?;
        let mut below = 0;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| ObjectProblem::Damaged(id, error.to_string()))?;
            match entry.mode.kind() {
                EntryKind::Tree => below = below.max(self.tree(entry.oid.to_owned(), depth + 1)?),
                EntryKind::Commit => return Err(ObjectProblem::Damaged(id, "it contains a commit entry".into())),
                _ => self.blob(entry.oid.to_owned())?,
            }
        }
        Ok(below + 1)
    }

    fn blob(&mut self, id: ObjectId) -> Result<(), ObjectProblem> {
        if let Some(known) = self.blobs.get(&id) {
            return known.clone();
        }
        let result = self.reader.copy_blob(&id, &mut |_| Ok(())).map(|_| ());
        self.blobs.insert(id, result.clone());
        result
    }
}
