//! Keeps bytes that another process wrote between the scan and the restore, and that came out of the workspace.

use jiff::Timestamp;
use rayon::prelude::*;

use super::{
    apply::content_of,
    retry_policy::refusal_in,
    stage::{FEW, Stage, old_slots, slot},
};
use crate::{
    disk::{Dir, FileType, Rename},
    error::{Error, Result, While},
    model::{
        Conflict, ContentSink, Contents, Directory, Entry, FileEntry, Kind, Node, Scope, Side, Stamp, WorkspacePath,
    },
    store::{Journal, PackWriter, Record, RecordedPaths, State, Step, Writer},
    threads,
    workspace::Workspace,
};

/// Such bytes are reported and kept once for each time that they came out of the workspace.
const REASON: &str = "somebody wrote it while it was being restored; the bytes are kept";

/// An entry in a slot that matches neither the old nor the new side.
struct Intruder {
    path: WorkspacePath,
    node: Node,
}

impl Workspace {
    /// Examines everything that came out of the workspace. Contents that the safety checkpoint does not hold get a
    /// checkpoint of their own. If a step was tried more than once, several such contents may have come out of the same
    /// path.
    pub(super) fn keep_intruders(
        &self,
        writer: &Writer,
        journal: &Journal,
        stage: &Stage,
        conflicts: &mut Vec<Conflict>,
        now: Timestamp,
    ) -> Result<()> {
        let pack = writer.start_pack();
        let look = |(number, step): (usize, &Step)| self.intruders_of(number, step, stage, &pack);
        let steps = journal.steps.iter().enumerate();
        let found: Vec<(Vec<Intruder>, Vec<Conflict>)> = if journal.steps.len() <= FEW {
            steps.map(look).collect::<Result<_>>()?
        } else {
            threads::shared(|| steps.collect::<Vec<_>>().into_par_iter().map(look).collect::<Result<_>>())?
        };
        let (intruders, given_back): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let layers = layers(intruders);
        for intruder in layers.iter().flatten() {
            let kept = intruder.node.side().and_then(|side| side.content());
            conflicts.retain(|conflict| conflict.path != intruder.path || conflict.kept.is_some());
            conflicts.push(Conflict { kept, ..Conflict::new(intruder.path.clone(), REASON) });
        }
        conflicts.extend(given_back.into_iter().flatten());
        // The first pack holds the bytes of all layers.
        let mut pack = Some(pack);
        for layer in layers {
            self.publish_kept(writer, pack.take().unwrap_or_else(|| writer.start_pack()), journal, layer, now)?;
        }
        Ok(())
    }

    /// Moves a directory back that took a file's place at the worst moment and came out instead of it. It goes back to
    /// its path, or beside it.
    fn give_back(&self, area: &Dir, slot: &[u8], path: &WorkspacePath) -> Result<Conflict> {
        let parent = path.parent().unwrap_or_default();
        let reason = match self.give_directory_back(area, slot, &parent, path.name())? {
            Some(name) if name == path.name() => "a directory has taken its place".to_owned(),
            Some(name) => {
                format!("a directory had taken its place, and is {} now", parent.join(&name).to_text())
            }
            None => "a directory had taken its place, and is in the staging area now".to_owned(),
        };
        Ok(Conflict::new(path.clone(), reason))
    }

    /// Moves the directory back. Returns the name that it has now, or `None` if it could not be moved back.
    fn give_directory_back(
        &self,
        area: &Dir,
        slot: &[u8],
        parent: &WorkspacePath,
        name: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let parent = match self.open_existing(parent) {
            Err(error) if refusal_in(&error).is_some() => None,
            found => found?,
        };
        let Some(parent) = parent else { return Ok(None) };
        let beside = (1..100).map(|number| [name, format!(".kept-{number}").as_bytes()].concat());
        for name in std::iter::once(name.to_vec()).chain(beside) {
            if parent.while_open(|| area.rename(slot, &parent, &name, Rename::NoReplace)).is_ok() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Returns the entries in a step's slots that match neither its old nor its new side.
    fn intruders_of(
        &self,
        number: usize,
        step: &Step,
        stage: &Stage,
        pack: &PackWriter,
    ) -> Result<(Vec<Intruder>, Vec<Conflict>)> {
        let (mut found, mut given_back) = (Vec::new(), Vec::new());
        if !step.takes_leaf() && !step.puts_leaf() {
            return Ok((found, given_back));
        }
        // Entries on a mount that is gone went with it.
        let Some(area) = stage.find(step)? else { return Ok((found, given_back)) };
        let sides = [step.old.as_ref(), step.new.as_ref()];
        let mut look = |name: &[u8]| -> Result<bool> {
            let stamp = area.try_stamp_at(name).or_fail("check", self.root())?;
            let is_there = stamp.is_some();
            if stamp.is_some_and(|stamp| FileType::of(&stamp) == FileType::Directory) {
                given_back.push(self.give_back(area, name, &step.path)?);
            } else if let Some(node) = unaccounted(area, name, sides, pack).or_fail("check", self.root())? {
                found.push(Intruder { path: step.path.clone(), node });
            }
            Ok(is_there)
        };
        look(&slot(number))?;
        for name in old_slots(number) {
            if !look(&name)? {
                break;
            }
        }
        Ok((found, given_back))
    }

    fn publish_kept(
        &self,
        writer: &Writer,
        pack: PackWriter,
        journal: &Journal,
        intruders: Vec<Intruder>,
        now: Timestamp,
    ) -> Result<()> {
        let timeline = writer.timeline()?;
        let paths: Vec<WorkspacePath> = intruders.iter().map(|intruder| intruder.path.clone()).collect();
        let mut tree = Directory::default();
        for intruder in intruders {
            plant(&mut tree, &intruder.path, intruder.node);
        }
        let scope = Scope::of_paths(paths.clone());
        let base = writer.store().snapshot(&journal.safety.id())?;
        let snapshot = writer.graft(&pack, Some(&base), &mut tree, &scope)?;
        let message = format!("what was written while {} was being restored", journal.target.short());
        let mut record = Record::new(timeline.next_sequence(), Kind::Safety, now, message);
        record.parent = Some(journal.safety.id());
        record.scope = scope;
        record.changed = RecordedPaths::Here(paths);
        let unpublished = writer.build(pack, &snapshot, &State::default(), record)?;
        let id = writer.publish(unpublished)?;
        self.note_time(writer, id, now);
        Ok(())
    }
}

/// Arranges the intruders of each step in sets with at most one for each path: a tree has no room for more.
fn layers(of_steps: Vec<Vec<Intruder>>) -> Vec<Vec<Intruder>> {
    let mut layers: Vec<Vec<Intruder>> = Vec::new();
    for found in of_steps {
        let mut seen: Vec<Option<Side>> = Vec::new();
        for intruder in found {
            let side = intruder.node.side();
            if seen.contains(&side) {
                continue;
            }
            match layers.get_mut(seen.len()) {
                Some(layer) => layer.push(intruder),
                None => layers.push(vec![intruder]),
            }
            seen.push(side);
        }
    }
    layers
}

/// Puts the entry of a slot into the pack and returns it, unless it matches one of the sides.
fn unaccounted(area: &Dir, name: &[u8], sides: [Option<&Side>; 2], pack: &PackWriter) -> std::io::Result<Option<Node>> {
    let Some(stamp) = area.try_stamp_at(name)? else { return Ok(None) };
    let content = content_of(area, name, &stamp)?;
    let is_known = |side: &&Side| content.is_some() && side.content() == content;
    if sides.into_iter().flatten().any(|side| is_known(&side)) {
        return Ok(None);
    }
    put(area, name, &stamp, pack).map(Some)
}

fn put(area: &Dir, name: &[u8], stamp: &Stamp, pack: &PackWriter) -> std::io::Result<Node> {
    if FileType::of(stamp) == FileType::Symlink {
        let content = pack.put(Contents::Whole(&area.read_link(name)?))?;
        let content = content.ok_or(std::io::ErrorKind::InvalidData)?;
        return Ok(Node::Symlink(FileEntry { content, stamp: *stamp }));
    }
    let file = area.open_file(name)?;
    // A process that still has the file open may go on writing: the content is kept once it stops changing.
    for _ in 0..16 {
        let bytes = file.metadata()?.len();
        if let Some(content) = pack.put(Contents::Stream { file: &file, bytes })? {
            return Ok(Node::File(FileEntry { content, stamp: *stamp }));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(std::io::Error::other(Error::Internal("a file that was set aside keeps changing".into()).to_string()))
}

/// Puts a node at a path of a tree, with the directories above it.
fn plant(tree: &mut Directory, path: &WorkspacePath, node: Node) {
    let mut directory = tree;
    if let Some(parent) = path.parent() {
        for part in parent.parts() {
            directory = child(directory, part);
        }
    }
    set(directory, path.name(), node);
}

fn child<'a>(directory: &'a mut Directory, name: &[u8]) -> &'a mut Directory {
    if !matches!(directory.get(name), Some(Node::Directory(_))) {
        set(directory, name, Node::Directory(Box::default()));
    }
    let below = directory.entries_mut().iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.node);
    match below {
        Some(Node::Directory(below)) => below,
        _ => unreachable!("it was just made a directory"),
    }
}

fn set(directory: &mut Directory, name: &[u8], node: Node) {
    directory.entries_mut().retain(|entry| entry.name != name);
    directory.entries_mut().push(Entry { name: name.into(), node, exception: None });
    directory.entries_mut().sort_by(|a, b| a.name.cmp(&b.name));
}
