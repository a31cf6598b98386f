//! The bytes of one file, at a checkpoint or on disk.

use std::io;

use backtrail::{ErrorCode, Workspace, WorkspacePath};

use super::{answers::Reply, desk::Desk, query::Query};
use crate::{
    access::{self, Purpose},
    failure::Failure,
    running::Call,
};

/// The maximum size of a file that is sent. Larger ones are for the command line.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The number of bytes that decide whether a file is text.
const LOOKED_AT: usize = 8_000;

/// Returns a file. Without a checkpoint, the one on disk. The contents of a precious file need `reveal=1`.
pub(super) fn file(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, precious) = desk.open(Purpose::Scan, call)?;
    let path = access::path(&workspace, query.required("path")?)?;
    if precious.contains(&path) && query.get("reveal") != Some("1") {
        let failure =
            Failure::new(ErrorCode::UnknownPath, format!("the contents of {path} are hidden: it is precious"));
        return Err(failure.with_hint("ask for it alone, with reveal=1"));
    }
    let bytes = match query.checkpoint("checkpoint", &workspace, &call.now)? {
        Some(checkpoint) => stored(&workspace, &checkpoint, &path)?,
        None => on_disk(&workspace, &path)?,
    };
    let image = image_type(&bytes, &path);
    let is_text = !bytes[..bytes.len().min(LOOKED_AT)].contains(&0);
    let content_type = match image {
        Some(image) => image,
        None if is_text => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    Ok(Reply::File { content_type, is_attachment: image.is_none() && !is_text, bytes })
}

fn stored(workspace: &Workspace, id: &backtrail::CheckpointId, path: &WorkspacePath) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let copied = workspace.cat(id, path, &mut |piece| {
        if (bytes.len() + piece.len()) as u64 > MAX_FILE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    copied.map_err(|_| too_large(path, &format!("backtrail cat {} FILE", id.short())))?;
    Ok(bytes)
}

fn on_disk(workspace: &Workspace, path: &WorkspacePath) -> Result<Vec<u8>, Failure> {
    let bytes = workspace.file_on_disk(path, MAX_FILE_BYTES + 1)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(path, "open it in another program"));
    }
    Ok(bytes)
}

fn too_large(path: &WorkspacePath, hint: &str) -> Failure {
    Failure::usage(format!("{path} is larger than {} MiB", MAX_FILE_BYTES >> 20)).with_hint(hint)
}

/// Returns the type of an image that browsers can show, by its first bytes.
fn image_type(bytes: &[u8], path: &WorkspacePath) -> Option<&'static str> {
    let is = |start: &[u8]| bytes.starts_with(start);
    let has = |at: usize, part: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(part));
    if is(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if is(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if is(b"GIF87a") || is(b"GIF89a") {
        Some("image/gif")
    } else if is(b"RIFF") && has(8, b"WEBP") {
        Some("image/webp")
    } else if has(4, b"ftypavif") {
        Some("image/avif")
    } else if is(b"\0\0\x01\0") {
        Some("image/x-icon")
    } else if path.to_text().to_lowercase().ends_with(".svg") {
        Some("image/svg+xml")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_first_bytes() {
        let kind = |bytes: &[u8], path: &str| image_type(bytes, &WorkspacePath::new(path).unwrap());
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest", "a.txt"), Some("image/png"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBPVP8 ", "a"), Some("image/webp"));
        assert_eq!(kind(b"<svg/>", "a.SVG"), Some("image/svg+xml"));
        assert_eq!(kind(b"<script>", "a.png"), None);
        assert_eq!(kind(b"", "a.png"), None);
    }
}
