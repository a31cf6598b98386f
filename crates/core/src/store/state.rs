//! The state of a checkpoint: what it keeps beside its files. This is attachments, exceptional permission bits, and
//! skipped paths with the rules that skipped them. The state is a commit of its own and the checkpoint's only git
//! parent. Equal states have the same id.

use std::io;

use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    ExactText,
    attachments::{self, NewAttachment, Pieces},
    objects::{ObjectKind, ObjectProblem, ObjectReader, object_id},
    packs::pack::PackWriter,
    snapshot::{TreeLine, put_tree},
};
use crate::{
    model::{Dropped, ModesId, OutsideRules, Skipped, WorkspacePath},
    settings::ScanSettings,
};

/// The state of one checkpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// The skipped paths, with the reasons.
    pub(crate) skipped: Vec<Skipped>,
    /// The ignore rules from outside the tree.
    pub(crate) outside: OutsideRules,
    /// The settings for scanning.
    pub(crate) settings: ScanSettings,
    /// The changed paths, if they are too many for the record.
    pub(crate) changed: Vec<WorkspacePath>,
    /// The dirty files of the user's repository, if they are too many for the record.
    pub(crate) dirty: Vec<WorkspacePath>,
    /// Paths that this checkpoint or earlier ones dropped and that were not captured again since.
    pub(crate) dropped: Vec<Dropped>,
    /// Attachments that the caller gave.
    pub(crate) attachments: Vec<NewAttachment>,
    /// Files that a restore needs to move the user's repository, and to move it back.
    pub(crate) git: Vec<NewGitFile>,
}

/// A file of the user's repository to keep, or data about the repository.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewGitFile {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct RulesFile {
    info_exclude: ExactText,
    global_excludes: ExactText,
    prefix: ExactText,
    above: Vec<(ExactText, ExactText)>,
    scan: ScanSettings,
}

impl State {
    /// Writes the state. Returns `None` if there is nothing to keep.
    pub(super) fn write(&self, modes: Option<ModesId>, sink: &PackWriter) -> io::Result<Option<ObjectId>> {
        let mut lines = Vec::new();
        if !self.attachments.is_empty() {
            lines.push(TreeLine::new(EntryKind::Tree, b"attachments", attachments::write(&self.attachments, sink)?));
        }
        if !self.changed.is_empty() {
            let blob = put_json_lines(&self.changed, sink)?;
            lines.push(TreeLine::new(EntryKind::Blob, b"changed", blob));
        }
        if !self.dirty.is_empty() {
            lines.push(TreeLine::new(EntryKind::Blob, b"dirty", put_json_lines(&self.dirty, sink)?));
        }
        if !self.dropped.is_empty() {
            lines.push(TreeLine::new(EntryKind::Blob, b"dropped", put_json_lines(&self.dropped, sink)?));
        }
        if !self.git.is_empty() {
            let mut files = Vec::new();
            for file in &self.git {
                let blob = sink.put_object(ObjectKind::Blob, &file.bytes)?;
                files.push(TreeLine::new(EntryKind::Blob, file.name.as_bytes(), blob));
            }
            lines.push(TreeLine::new(EntryKind::Tree, b"git", put_tree(files, sink)?));
        }
        if let Some(modes) = modes {
            lines.push(TreeLine::new(EntryKind::Tree, b"modes", object_id(modes.as_bytes())));
        }
        if self.outside != OutsideRules::default() || self.settings != ScanSettings::default() {
            let text = serde_json::to_vec(&self.rules_file())?;
            lines.push(TreeLine::new(EntryKind::Blob, b"rules", sink.put_object(ObjectKind::Blob, &text)?));
        }
        if !self.skipped.is_empty() {
            let blob = put_json_lines(&self.skipped, sink)?;
            lines.push(TreeLine::new(EntryKind::Blob, b"skipped", blob));
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let tree = put_tree(lines, sink)?;
        // No time and no author of its own: equal states are the same commit.
        let commit = super::store::encode_commit(&tree, None, 0, "Backtrail state\n");
        sink.put_object(ObjectKind::Commit, &commit).map(Some)
    }

    fn rules_file(&self) -> RulesFile {
        RulesFile {
            info_exclude: ExactText::of(&self.outside.info_exclude),
            global_excludes: ExactText::of(&self.outside.global_excludes),
            prefix: ExactText::of(&self.outside.prefix),
            above: self.outside.above.iter().map(|(at, rules)| (ExactText::of(at), ExactText::of(rules))).collect(),
            scan: self.settings.clone(),
        }
    }
}

fn put_json_lines<T: serde::Serialize>(items: &[T], sink: &PackWriter) -> io::Result<ObjectId> {
    let mut text = Vec::new();
    for item in items {
        serde_json::to_writer(&mut text, item)?;
        text.push(b'\n');
    }
    sink.put_object(ObjectKind::Blob, &text)
}

/// A stored state. Its parts are read on request.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    attachments: Option<ObjectId>,
    changed: Option<ObjectId>,
    dirty: Option<ObjectId>,
    dropped: Option<ObjectId>,
    git: Option<ObjectId>,
    rules: Option<ObjectId>,
    skipped: Option<ObjectId>,
    pub(crate) modes: Option<ModesId>,
}

impl StoredState {
    pub(super) fn open(reader: &ObjectReader, commit: ObjectId) -> Result<Self, ObjectProblem> {
        let (tree, _) = super::store::read_commit(reader, &commit)?;
        let bytes = reader.read(&tree, ObjectKind::Tree)?;
        let mut state = Self::default();
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| ObjectProblem::Damaged(tree, error.to_string()))?;
            let id = entry.oid.to_owned();
            match entry.filename.as_ref() as &[u8] {
                b"attachments" => state.attachments = Some(id),
                b"changed" => state.changed = Some(id),
                b"dirty" => state.dirty = Some(id),
                b"dropped" => state.dropped = Some(id),
                b"git" => state.git = Some(id),
                b"rules" => state.rules = Some(id),
                b"skipped" => state.skipped = Some(id),
                b"modes" => state.modes = Some(ModesId(super::objects::bytes_of(&id))),
                _ => {}
            }
        }
        Ok(state)
    }

    pub(crate) fn skipped(&self, reader: &ObjectReader) -> Result<Vec<Skipped>, ObjectProblem> {
        read_json_lines(reader, self.skipped)
    }

    pub(crate) fn changed(&self, reader: &ObjectReader) -> Result<Vec<WorkspacePath>, ObjectProblem> {
        read_json_lines(reader, self.changed)
    }

    pub(crate) fn dirty(&self, reader: &ObjectReader) -> Result<Vec<WorkspacePath>, ObjectProblem> {
        read_json_lines(reader, self.dirty)
    }

    pub(crate) fn dropped(&self, reader: &ObjectReader) -> Result<Vec<Dropped>, ObjectProblem> {
        read_json_lines(reader, self.dropped)
    }

    pub(crate) fn rules(&self, reader: &ObjectReader) -> Result<(OutsideRules, ScanSettings), ObjectProblem> {
        let Some(id) = self.rules else { return Ok(Default::default()) };
        let damaged = || ObjectProblem::Damaged(id, "its ignore rules can't be parsed".into());
        let bytes = reader.read(&id, ObjectKind::Blob)?;
        let file: RulesFile = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        let outside = || {
            Some(OutsideRules {
                info_exclude: file.info_exclude.to_bytes()?,
                global_excludes: file.global_excludes.to_bytes()?,
                prefix: file.prefix.to_bytes()?,
                above: file
                    .above
                    .iter()
                    .map(|(at, rules)| Some((at.to_bytes()?, rules.to_bytes()?)))
                    .collect::<Option<_>>()?,
            })
        };
        Ok((outside().ok_or_else(damaged)?, file.scan))
    }

    /// Returns the file that is kept of the user's repository under this name, or `None` if there is none.
    pub(crate) fn git_file(&self, reader: &ObjectReader, name: &str) -> Result<Option<Vec<u8>>, ObjectProblem> {
        let Some(tree) = self.git else { return Ok(None) };
        let found = reader.entry(&tree, name)?;
        found.map(|(_, id)| reader.read(&id, ObjectKind::Blob)).transpose()
    }

    /// Returns the bytes of an attachment, or `None` if there is none with this name.
    pub(crate) fn attachment(&self, reader: &ObjectReader, name: &str) -> Result<Option<Vec<u8>>, ObjectProblem> {
        let Some(tree) = self.attachments else { return Ok(None) };
        let found = attachments::find(reader, tree, name)?;
        found.map(|found| attachments::read(reader, found)).transpose()
    }

    /// Returns the pieces of an attachment. The result is empty if there is none with this name.
    pub(crate) fn attachment_pieces(&self, reader: &ObjectReader, name: &str) -> Result<Pieces, ObjectProblem> {
        let Some(tree) = self.attachments else { return Ok(Pieces::default()) };
        match attachments::find(reader, tree, name)? {
            Some(found) => Pieces::read(reader, found),
            None => Ok(Pieces::default()),
        }
    }
}

fn read_json_lines<T: serde::de::DeserializeOwned>(
    reader: &ObjectReader,
    id: Option<ObjectId>,
) -> Result<Vec<T>, ObjectProblem> {
    let Some(id) = id else { return Ok(Vec::new()) };
    let bytes = reader.read(&id, ObjectKind::Blob)?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).map_err(|error| ObjectProblem::Damaged(id, error.to_string())))
        .collect()
}
