//! Reads one file or symlink, and makes sure that it did not change while it was read.

use std::{cell::RefCell, fs::File, io, io::Read, time::Duration};

use crate::{
    disk::{Dir, FileType, stamp_of},
    model::{ContentId, ContentSink, Contents, FileEntry, Node, Reason, Stamp, Unreadable, Unwritable, is_shortage},
};

/// Files up to this size are read at once; larger ones are streamed.
const WHOLE_BYTES: u64 = 4 << 20;
/// The number of attempts to read a file that changes during the read.
const TRIES: u32 = 4;

/// Reads a regular file. Returns `None` if it is gone.
pub(super) fn read_file(
    directory: &Dir,
    name: &[u8],
    max_bytes: u64,
    sink: &dyn ContentSink,
) -> io::Result<Option<Node>> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(u64::from(attempt) * 5));
        }
        let file = match directory.open_file(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return refusal(directory, name, error).map(Some),
        };
        let before = stamp_of(&rustix::fs::fstat(&file)?);
        if FileType::of(&before) != FileType::File {
            // Another process replaced the file after it was listed. The next attempt sees what it is now.
            let Some(stamp) = directory.try_stamp_at(name)? else { return Ok(None) };
            if FileType::of(&stamp) == FileType::Special {
                return Ok(Some(Node::Skipped(Reason::Special, stamp)));
            }
            continue;
        }
        if before.size > max_bytes {
            return Ok(Some(Node::Skipped(Reason::TooLarge, before)));
        }
        match put_contents(&file, &before, sink) {
            Ok(Some(content)) => {
                let after = stamp_of(&rustix::fs::fstat(&file)?);
                if after == before {
                    return Ok(Some(Node::File(FileEntry { content, stamp: before })));
                }
            }
            Ok(None) => {}
            Err(error) if Unreadable::is_marked(&error) => return refusal(directory, name, error).map(Some),
            Err(error) => return Err(error),
        }
    }
    let stamp = directory.try_stamp_at(name)?;
    Ok(stamp.map(|stamp| Node::Skipped(Reason::Changing, stamp)))
}

fn put_contents(file: &File, stamp: &Stamp, sink: &dyn ContentSink) -> io::Result<Option<ContentId>> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    if stamp.size > WHOLE_BYTES {
        return sink.put(Contents::Stream { file, bytes: stamp.size }).map_err(Unwritable::mark);
    }
    BUFFER.with_borrow_mut(|buffer| {
        // One byte more than the size in the stamp detects a file that grew.
        let wanted = stamp.size as usize + 1;
        if buffer.len() < wanted {
            buffer.resize(wanted.next_power_of_two(), 0);
        }
        let read = read_up_to(file, &mut buffer[..wanted]).map_err(Unreadable::mark)?;
        if read as u64 != stamp.size {
            return Ok(None);
        }
        sink.put(Contents::Whole(&buffer[..read])).map_err(Unwritable::mark)
    })
}

/// Reads until at most one byte of the buffer is free, or the file ends.
fn read_up_to(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    loop {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(filled),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled + 1 >= buffer.len() {
            return Ok(filled);
        }
    }
}

/// Reads a symlink. Returns `None` if it is gone.
pub(super) fn read_link(directory: &Dir, name: &[u8], sink: &dyn ContentSink) -> io::Result<Option<Node>> {
    for _ in 0..TRIES {
        let Some(before) = directory.try_stamp_at(name)? else { return Ok(None) };
        if FileType::of(&before) != FileType::Symlink {
            continue;
        }
        let target = match directory.read_link(name) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => continue,
            Err(error) => return refusal(directory, name, error).map(Some),
        };
        if let Some(content) = sink.put(Contents::Whole(&target)).map_err(Unwritable::mark)? {
            let after = directory.try_stamp_at(name)?;
            if after == Some(before) {
                return Ok(Some(Node::Symlink(FileEntry { content, stamp: before })));
            }
        }
    }
    let stamp = directory.try_stamp_at(name)?;
    Ok(stamp.map(|stamp| Node::Skipped(Reason::Changing, stamp)))
}

/// Returns a skipped node for a name that the system refuses to open. Returns an error if the whole system lacks a
/// resource, such as memory or file handles.
pub(super) fn refusal(directory: &Dir, name: &[u8], error: io::Error) -> io::Result<Node> {
    if is_shortage(&error) {
        return Err(error);
    }
    let stamp = directory.try_stamp_at(name)?.unwrap_or_default();
    Ok(Node::Skipped(Reason::Unreadable, stamp))
}
