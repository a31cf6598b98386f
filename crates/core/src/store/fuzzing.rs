//! Properties of the store's formats that the fuzzers check: bytes from a disk are rejected or parsed, and a parsed
//! value is the same after it is written and read again.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
};

use bstr::{BString, ByteSlice};
use gix_hash::ObjectId;

use super::{
    checksummed_lines,
    journal::{self, Area, FoundJournal},
    objects::{ObjectKind, hash_object, object_id},
    record::Record,
    snapshot::{self, Modes, Snapshot, StoredNode, TreeSink},
};
use crate::model::{Checkpoint, CheckpointId, DirectoryIds, ModeDefaults, TreeId, WorkspacePath};

/// Checks the message of a commit, or a record alone. Returns the checkpoints that were parsed.
pub(crate) fn record(bytes: &[u8]) -> Vec<Checkpoint> {
    let mut checkpoints = Vec::new();
    let alone = [b"message\n\nBacktrail-Record: ", bytes].concat();
    for message in [bytes, &alone] {
        let Some(record) = Record::from_commit_message(message) else { continue };
        for path in record.included.iter().chain(&record.state_files).chain(record.scope.paths().unwrap_or_default()) {
            assert_inside(path);
        }
        let written = record.to_commit_message().unwrap_or_else(|error| panic!("not written: {error}"));
        assert!(!written.contains('\0'), "git ends a message at a NUL");
        let again = Record::from_commit_message(written.as_bytes());
        assert_eq!(again.as_ref(), Some(&record), "a record is read as it was written");
        checkpoints.push(record.into_checkpoint(CheckpointId([7; 20]), false, Vec::new(), Vec::new()));
    }
    checkpoints
}

/// Checks a journal, with its checksum or without.
pub(crate) fn journal(bytes: &[u8]) {
    let sealed = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\n')).map(checksummed_lines::seal);
    for bytes in [Some(bytes), sealed.as_deref().map(str::as_bytes)].into_iter().flatten() {
        for area in journal::parse_areas(bytes) {
            assert_own(&area);
        }
        let FoundJournal::Journal(found) = journal::parse(bytes) else { continue };
        found.journal().areas.iter().for_each(assert_own);
        for step in &found.journal().steps {
            assert_inside(&step.path);
            assert!(!step.path.is_root(), "a restore does not replace the workspace");
            assert!(step.path.parts().all(is_plain_name), "{:?} is written by no restore", step.path);
            assert_eq!(step.reversed().reversed(), *step);
        }
        let written = journal::to_bytes(found.journal()).unwrap_or_else(|error| panic!("not written: {error}"));
        match journal::parse(&written) {
            FoundJournal::Journal(again) => assert_eq!(again, found, "a journal is read as it was written"),
            other => panic!("what was written can't be read: {other:?}"),
        }
    }
}

/// Checks the bytes of a tree, preceded by the list of its exceptional modes and a byte 0xff. Returns the names of its
/// entries.
pub(crate) fn tree(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (listed, bytes) = bytes.split_once_str(b"\xff").unwrap_or((b"", bytes));
    let Some(modes) = Modes::of_list(listed) else { return Vec::new() };
    let Ok(id) = hash_object(ObjectKind::Tree, bytes) else { return Vec::new() };
    let stored = stored(id);
    let Ok(entries) = snapshot::parse(&stored, bytes, &modes) else { return Vec::new() };
    for pair in entries.windows(2) {
        assert!(pair[0].name < pair[1].name, "names are in order, and each is there once");
    }
    for entry in &entries {
        assert!(is_plain_name(&entry.name), "{:?} leads somewhere else", entry.name);
        if let StoredNode::File { mode, .. } | StoredNode::Directory { mode, .. } = entry.node {
            assert!(mode.0 <= 0o7777, "{mode:?} has more than permission bits");
        }
    }
    write_and_read(&entries.iter().map(|entry| (entry.name.clone(), entry.node)).collect::<Vec<_>>());
    entries.into_iter().map(|entry| entry.name.into()).collect()
}

fn stored(tree: ObjectId) -> Snapshot {
    let ids = DirectoryIds { tree: TreeId(super::objects::bytes_of(&tree)), modes: None };
    Snapshot::whole(ids, ModeDefaults::default())
}

/// Checks that nodes are the same after they are written and read again. The modes below them are left out: a test has
/// nowhere to keep them.
fn write_and_read(nodes: &[(BString, StoredNode)]) {
    let kept = KeptTrees::default();
    let ids = snapshot::write_nodes(nodes, &ModeDefaults::default(), &kept);
    let ids = ids.unwrap_or_else(|error| panic!("not written: {error}"));
    let objects = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    let snapshot = Snapshot::whole(ids, ModeDefaults::default());
    let list = objects.values().filter(|(kind, _)| *kind == ObjectKind::Blob).map(|(_, bytes)| bytes).next();
    let modes = Modes::of_list(list.map_or(&[][..], Vec::as_slice)).unwrap_or_else(|| panic!("unreadable modes"));
    let bytes = &objects[&object_id(ids.tree.as_bytes())].1;
    let again = snapshot::parse(&snapshot, bytes, &modes).unwrap_or_else(|error| panic!("not read: {error}"));
    let again: Vec<_> = again.into_iter().map(|entry| (entry.name, entry.node)).collect();
    assert_eq!(again, nodes, "a tree is read as it was written");
}

#[derive(Default)]
struct KeptTrees(Mutex<HashMap<ObjectId, (ObjectKind, Vec<u8>)>>);

impl TreeSink for KeptTrees {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> io::Result<ObjectId> {
        let id = hash_object(kind, bytes)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (kind, bytes.to_vec()));
        Ok(id)
    }
}

fn assert_own(area: &Area) {
    let name = match area {
        Area::Store { name } => name,
        Area::Workspace { parent, name } => {
            assert_inside(parent);
            assert!(name.starts_with(".backtrail-"), "{name:?} is no name of ours");
            name
        }
    };
    assert!(
        !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != "..",
        "{name:?} leads away"
    );
}

fn assert_inside(path: &WorkspacePath) {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let is_inside = path.is_root() || names.clone().all(|name| !name.is_empty() && name != b"." && name != b"..");
    assert!(is_inside && !path.as_bytes().contains(&0), "{path:?} leads out of the workspace");
}

/// Returns whether a name has no separator and is not `.git` to any file system. Written independently of
/// `is_safe_name`, by the rules of the file systems.
fn is_plain_name(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    // First the characters that HFS ignores, then the endings that NTFS cuts off.
    let seen: String = name.to_str_lossy().chars().filter(|c| !is_invisible(*c)).collect::<String>().to_lowercase();
    let is_git = |part: &str| {
        let kept = part.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        [".git", "git~1"].contains(&kept)
    };
    let first_is_git = seen == ".git" || name.to_str_lossy().to_lowercase().split('\\').next().is_some_and(is_git);
    !name.is_empty()
        && ![&b"."[..], b".."].contains(&name)
        && !name.contains(&b'/')
        && !name.contains(&0)
        && !first_is_git
}

fn is_invisible(c: char) -> bool {
    ['\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{feff}'].contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{206a}'..='\u{206f}').contains(&c)
}
