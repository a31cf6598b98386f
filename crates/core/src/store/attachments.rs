//! Attachments: named bytes that a checkpoint keeps beside its files.
//!
//! Most attachments grow: a conversation gets a few lines with every step. A large attachment is stored as a tree of
//! pieces, in order. If an earlier checkpoint already has the first part, its pieces are reused and only the rest is
//! written. If the first part differs, as in a file that its program writes anew each time, the bytes themselves decide
//! where the pieces end, so that all pieces without a change are reused.

use std::io;

use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    content_cuts,
    objects::{ObjectKind, ObjectProblem, ObjectReader, hash_object},
    packs::pack::PackWriter,
    snapshot::{TreeLine, put_tree},
};

/// The largest attachment that is stored as one blob.
const WHOLE_BYTES: usize = 64 << 10;
/// The largest piece of an attachment.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// The number of pieces of one size class at the end of an attachment at which they are joined. Each byte is rewritten
/// only a few times this way, and there are never many pieces.
const RUN: usize = 16;
/// The unit of the size classes. The lowest class holds pieces below [`RUN`] times this size. The limit of each class
/// is [`RUN`] times that of the class below.
const LOWEST_CLASS: usize = 16 << 10;

/// An attachment of a checkpoint that is being built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewAttachment {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The pieces of the attachment with this name in an earlier checkpoint.
    pub(crate) earlier: Pieces,
}

/// The parts of a stored attachment, in order, with their lengths.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pieces {
    parts: Vec<(usize, ObjectId)>,
    /// Set if the attachment is one of the same session: then the new one is a later version of it.
    of_session: bool,
}

pub(super) fn write(attachments: &[NewAttachment], sink: &PackWriter) -> io::Result<ObjectId> {
    let names: Vec<String> = attachments.iter().map(|attachment| encode_name(&attachment.name)).collect();
    let mut lines = Vec::new();
    for (attachment, name) in attachments.iter().zip(&names) {
        let bytes = attachment.bytes.as_slice();
        let line = if bytes.len() <= WHOLE_BYTES {
            TreeLine::new(EntryKind::Blob, name.as_bytes(), sink.put_object(ObjectKind::Blob, bytes)?)
        } else {
            TreeLine::new(EntryKind::Tree, name.as_bytes(), put_pieces(bytes, &attachment.earlier, sink)?)
        };
        lines.push(line);
    }
    put_tree(lines, sink)
}

fn put_pieces(bytes: &[u8], earlier: &Pieces, sink: &PackWriter) -> io::Result<ObjectId> {
    let known = earlier.beginning_of(bytes)?;
    let lengths = lengths_of_pieces(bytes, earlier, known);
    let kept = lengths.iter().zip(known).take_while(|(length, (known, _))| *length == known).count();
    let mut ids: Vec<ObjectId> = known[..kept].iter().map(|(_, id)| *id).collect();
    let mut at = lengths[..kept].iter().sum();
    for length in &lengths[kept..] {
        ids.push(sink.put_object(ObjectKind::Blob, &bytes[at..at + length])?);
        at += length;
    }
    let names: Vec<String> = (0..ids.len()).map(|number| format!("{number:08}")).collect();
    put_tree(
        names.iter().zip(ids).map(|(name, id)| TreeLine::new(EntryKind::Blob, name.as_bytes(), id)).collect(),
        sink,
    )
}

/// Returns the lengths of the pieces of an attachment that starts with the `known` pieces of an earlier one.
fn lengths_of_pieces(bytes: &[u8], earlier: &Pieces, known: &[(usize, ObjectId)]) -> Vec<usize> {
    let known_lengths = || known.iter().map(|(length, _)| *length);
    let is_written_anew = earlier.of_session && known_lengths().sum::<usize>() < bytes.len() / 2;
    // A single piece tells nothing about how the earlier attachment was cut.
    let may_be_cut_by_content = is_written_anew || known.len() > 2;
    let cuts = if may_be_cut_by_content { content_cuts::lengths(bytes) } else { Vec::new() };
    let was_cut_by_content = || cuts.iter().copied().zip(known_lengths()).take_while(|(cut, known)| cut == known);
    if is_written_anew || known.len() > 2 && was_cut_by_content().count() + 1 >= known.len() {
        cuts
    } else {
        split(known, bytes.len())
    }
}

impl Pieces {
    /// Marks the pieces as those of an attachment of the same session.
    pub(crate) fn of_session(self) -> Self {
        Self { of_session: true, ..self }
    }

    /// Returns the longest run of leading pieces that `bytes` starts with.
    fn beginning_of(&self, bytes: &[u8]) -> io::Result<&[(usize, ObjectId)]> {
        let mut at = 0;
        for (count, (length, id)) in self.parts.iter().enumerate() {
            let held = bytes.get(at..at + length);
            if !matches!(held.map(|held| hash_object(ObjectKind::Blob, held)).transpose()?, Some(found) if found == *id)
            {
                return Ok(&self.parts[..count]);
            }
            at += length;
        }
        Ok(&self.parts)
    }

    pub(super) fn read(reader: &ObjectReader, entry: StoredAttachment) -> Result<Self, ObjectProblem> {
        let ids = match entry {
            StoredAttachment::Whole(id) => vec![id],
            StoredAttachment::InPieces(tree) => piece_ids(reader, tree)?,
        };
        let sized = ids.into_iter().map(|id| {
            let length = usize::try_from(reader.size(&id)?);
            Ok((length.map_err(|_| ObjectProblem::Damaged(id, "a piece is too large".into()))?, id))
        });
        Ok(Self { parts: sized.collect::<Result<_, ObjectProblem>>()?, of_session: false })
    }
}

/// Returns the lengths of the pieces for `total` bytes that start with the `known` pieces. Known pieces that are kept
/// come first, with unchanged lengths.
fn split(known: &[(usize, ObjectId)], total: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = known.iter().map(|(length, _)| *length).collect();
    let mut rest = total - lengths.iter().sum::<usize>();
    while rest > 0 {
        let length = rest.min(PIECE_BYTES);
        lengths.push(length);
        rest -= length;
        join_run(&mut lengths);
    }
    lengths
}

/// Joins the last pieces if many of them are of the same size class.
fn join_run(lengths: &mut Vec<usize>) {
    while let Some(class) = lengths.last().map(|last| class_of(*last)) {
        let run =
            lengths.iter().rev().take_while(|length| **length < PIECE_BYTES && class_of(**length) == class).count();
        if run < RUN {
            return;
        }
        let mut joined: usize = lengths.drain(lengths.len() - run..).sum();
        while joined > 0 {
            let length = joined.min(PIECE_BYTES);
            lengths.push(length);
            joined -= length;
        }
    }
}

fn class_of(length: usize) -> u32 {
    (length / LOWEST_CLASS).max(1).ilog(RUN)
}

/// The object that holds a stored attachment: a blob, or a tree of pieces.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoredAttachment {
    Whole(ObjectId),
    InPieces(ObjectId),
}

/// Returns the attachment with this name from the tree of attachments. Returns `None` if there is none.
pub(super) fn find(
    reader: &ObjectReader,
    tree: ObjectId,
    name: &str,
) -> Result<Option<StoredAttachment>, ObjectProblem> {
    let found = reader.entry(&tree, &encode_name(name))?;
    Ok(found.map(|(kind, id)| match kind {
        EntryKind::Tree => StoredAttachment::InPieces(id),
        _ => StoredAttachment::Whole(id),
    }))
}

pub(super) fn read(reader: &ObjectReader, entry: StoredAttachment) -> Result<Vec<u8>, ObjectProblem> {
    match entry {
        StoredAttachment::Whole(id) => reader.read(&id, ObjectKind::Blob),
        StoredAttachment::InPieces(tree) => {
            let mut content = Vec::new();
            for id in piece_ids(reader, tree)? {
                content.extend_from_slice(&reader.read(&id, ObjectKind::Blob)?);
            }
            Ok(content)
        }
    }
}

fn piece_ids(reader: &ObjectReader, tree: ObjectId) -> Result<Vec<ObjectId>, ObjectProblem> {
    let bytes = reader.read(&tree, ObjectKind::Tree)?;
    let mut ids = Vec::new();
    for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
        ids.push(entry.map_err(|error| ObjectProblem::Damaged(tree, error.to_string()))?.oid.to_owned());
    }
    Ok(ids)
}

/// Encodes an attachment's name as the name of a tree entry. All bytes other than plain characters are escaped.
fn encode_name(name: &str) -> String {
    let mut out = String::from("@");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(step: usize, steps: usize) -> Vec<usize> {
        let mut known: Vec<(usize, ObjectId)> = Vec::new();
        for number in 1..=steps {
            let lengths = split(&known, number * step);
            assert_eq!(lengths.iter().sum::<usize>(), number * step);
            assert!(lengths.iter().all(|length| (1..=PIECE_BYTES).contains(length)));
            known = lengths.into_iter().map(|length| (length, ObjectId::null(gix_hash::Kind::Sha1))).collect();
        }
        known.into_iter().map(|(length, _)| length).collect()
    }

    #[test]
    fn what_grows_by_a_little_stays_in_few_pieces() {
        for (step, steps) in [(1, 5_000), (700, 20_000), (40_000, 500), (300_000, 100), (PIECE_BYTES, 40)] {
            let lengths = grown(step, steps);
            let least = (step * steps).div_ceil(PIECE_BYTES);
            assert!(lengths.len() <= 2 * least + 4 * RUN, "{step} × {steps}: {} pieces", lengths.len());
        }
    }

    #[test]
    fn what_is_known_is_cut_where_it_was() {
        let id = ObjectId::null(gix_hash::Kind::Sha1);
        let known = [(PIECE_BYTES, id), (300, id)];
        assert_eq!(split(&known, PIECE_BYTES + 1_000), [PIECE_BYTES, 300, 700]);
        assert_eq!(split(&[], 2 * PIECE_BYTES + 5), [PIECE_BYTES, PIECE_BYTES, 5]);
    }
}
