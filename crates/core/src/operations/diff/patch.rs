//! Writes a unified patch that `git apply` accepts, binary files included.

use std::fmt::Write;

use super::{
    PatchLimits,
    hunks::{Block, Blocks, CONTEXT, first_line},
    lines::LineSource,
};
use crate::{
    error::Result,
    model::{Change, ContentId, Side, WorkspacePath},
    text::{MAX_TEXT_BYTES, is_binary},
};

/// Files larger than this are named in a patch, but their contents are not in it: they would have to be held in memory.
const MAX_PATCHED_BYTES: u64 = 256 << 20;
const NO_ID: ContentId = ContentId([0; 20]);

/// A patch, and the parts that it lacks.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    pub(super) text: String,
    pub(super) is_cut: bool,
    pub(super) cut_files: Vec<WorkspacePath>,
    pub(super) hidden: Vec<WorkspacePath>,
}

/// The form of binary contents in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    /// All bytes.
    Written,
    /// Only the number of bytes.
    Sized,
}

/// The form of the contents of a file.
#[derive(Debug, Clone, Copy)]
struct Form {
    binary: Binary,
    /// The number of unchanged lines around each change.
    context: u32,
}

/// Tells whether the contents of a file were compared as far as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchLines {
    Compared,
    /// It is text, and too large to compare its lines within the limits.
    TooMany,
}

/// Replaces the rest of a file. It looks like the beginning of a hunk that never comes, so that `git apply` does not
/// take a part for the whole.
const REST_LEFT_OUT: &str = "@@ -1 +1 @@ the rest of this file is not shown\n";

/// Returns the patch for these changes. It contains no directories, and no permission bits but the executable one.
pub(super) fn patch(changes: &[Change], source: &LineSource<'_>, limits: &PatchLimits<'_>) -> Result<Patch> {
    let is_hidden = |change: &Change| limits.hide.is_some_and(|hide| hide.contains(&change.path));
    let (hidden, shown): (Vec<&Change>, Vec<&Change>) =
        changes.iter().filter(|change| !change.is_directory()).partition(|change| is_hidden(change));
    let mut patch = Patch { hidden: hidden.iter().map(|change| change.path.clone()).collect(), ..Patch::default() };
    if limits.max_bytes == Some(0) {
        patch.is_cut = !shown.is_empty();
        return Ok(patch);
    }
    let (binary, most) = match limits.max_bytes.or(limits.max_file_bytes) {
        Some(_) => (Binary::Sized, MAX_TEXT_BYTES),
        None => (Binary::Written, MAX_PATCHED_BYTES),
    };
    let form = Form { binary, context: limits.context.unwrap_or(CONTEXT) };
    for change in shown {
        let start = patch.text.len();
        if file(&mut patch.text, change, source, form, most)? == PatchLines::TooMany {
            patch.cut_files.push(change.path.clone());
        }
        if let Some(max_bytes) = limits.max_file_bytes.filter(|max_bytes| patch.text.len() - start > *max_bytes) {
            cut(&mut patch.text, start + max_bytes);
            patch.text.push_str(REST_LEFT_OUT);
            patch.cut_files.push(change.path.clone());
        }
        if let Some(max_bytes) = limits.max_bytes.filter(|max_bytes| patch.text.len() > *max_bytes) {
            patch.is_cut = true;
            cut(&mut patch.text, max_bytes);
            break;
        }
    }
    Ok(patch)
}

/// Cuts a text after the last whole line within `max_bytes`.
fn cut(text: &mut String, max_bytes: usize) {
    let end = text.as_bytes()[..max_bytes].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    text.truncate(end);
}

fn file(out: &mut String, change: &Change, source: &LineSource<'_>, form: Form, most: u64) -> Result<PatchLines> {
    let old = change.old.filter(|side| side.content().is_some());
    let new = change.new.filter(|side| side.content().is_some());
    let before = source.older(&change.path, old.as_ref(), most)?;
    let after = source.newer(&change.path, new.as_ref(), most)?;
    let (Some(before), Some(after)) = (before, after) else {
        return large_file(out, change, source, form);
    };
    match (old, new) {
        // Git has no change of type: the old entry is deleted, and the new one is created.
        (Some(old), Some(new)) if is_link(&old) != is_link(&new) => {
            section(out, &change.path, (Some(&old), None), (&before, &[]), form);
            section(out, &change.path, (None, Some(&new)), (&[], &after), form);
        }
        _ => section(out, &change.path, (old.as_ref(), new.as_ref()), (&before, &after), form),
    }
    Ok(PatchLines::Compared)
}

/// Names a file that is too large to be held in memory.
fn large_file(out: &mut String, change: &Change, source: &LineSource<'_>, form: Form) -> Result<PatchLines> {
    let (a, b) = (quote("a/", &change.path), quote("b/", &change.path));
    line(out, format_args!("diff --git {a} {b}"));
    if form.binary == Binary::Written {
        line(out, format_args!("Binary files {a} and {b} differ"));
        return Ok(PatchLines::Compared);
    }
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    let sizes = sizes(source.older_bytes(&change.path, old)?, source.newer_bytes(&change.path, new)?);
    if source.begins_binary(&change.path, old, new)? {
        line(out, format_args!("Binary files {a} and {b} differ{sizes}"));
        return Ok(PatchLines::Compared);
    }
    line(out, format_args!("Files {a} and {b} differ, and are too large to compare line by line{sizes}"));
    Ok(PatchLines::TooMany)
}

/// Returns the sizes of both sides in words, or that of the only one.
fn sizes(before: Option<u64>, after: Option<u64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!(" ({before} bytes before, {after} bytes after)"),
        (None, Some(bytes)) | (Some(bytes), None) => format!(" ({bytes} bytes)"),
        (None, None) => String::new(),
    }
}

fn is_link(side: &Side) -> bool {
    matches!(side, Side::Symlink { .. })
}

fn git_mode(side: &Side) -> &'static str {
    match side {
        Side::File { mode, .. } if mode.is_executable() => "100755",
        Side::File { .. } => "100644",
        Side::Symlink { .. } => "120000",
        Side::Directory { .. } => "040000",
    }
}

fn section(
    out: &mut String,
    path: &WorkspacePath,
    (old, new): (Option<&Side>, Option<&Side>),
    (before, after): (&[u8], &[u8]),
    form: Form,
) {
    let is_same_content = old.and_then(Side::content) == new.and_then(Side::content);
    let modes = (old.map(git_mode), new.map(git_mode));
    if is_same_content && modes.0 == modes.1 {
        return;
    }
    let a = quote("a/", path);
    let b = quote("b/", path);
    line(out, format_args!("diff --git {a} {b}"));
    match modes {
        (None, Some(mode)) => line(out, format_args!("new file mode {mode}")),
        (Some(mode), None) => line(out, format_args!("deleted file mode {mode}")),
        (Some(old), Some(new)) if old != new => {
            line(out, format_args!("old mode {old}"));
            line(out, format_args!("new mode {new}"));
        }
        _ => {}
    }
    if is_same_content {
        return;
    }
    let id = |side: Option<&Side>| side.and_then(Side::content).unwrap_or(NO_ID);
    let unchanged_mode = match modes {
        (Some(old), Some(new)) if old == new => format!(" {old}"),
        _ => String::new(),
    };
    line(out, format_args!("index {}..{}{unchanged_mode}", id(old), id(new)));
    if is_binary(before)
        || is_binary(after)
        || std::str::from_utf8(before).is_err()
        || std::str::from_utf8(after).is_err()
    {
        match form.binary {
            Binary::Written => binary(out, before, after),
            Binary::Sized => {
                let bytes = |side: Option<&Side>, bytes: &[u8]| side.map(|_| bytes.len() as u64);
                let sizes = sizes(bytes(old, before), bytes(new, after));
                line(out, format_args!("Binary files {a} and {b} differ{sizes}"));
            }
        }
    } else if before != after {
        let name = |side: Option<&Side>, quoted: &str| match side {
            // A tab ends a name that contains a space.
            Some(_) if quoted.contains(' ') && !quoted.starts_with('"') => format!("{quoted}\t"),
            Some(_) => quoted.to_owned(),
            None => "/dev/null".to_owned(),
        };
        line(out, format_args!("--- {}", name(old, &a)));
        line(out, format_args!("+++ {}", name(new, &b)));
        hunks(out, before, after, form.context);
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a String can't fail.
    out.write_fmt(text).ok();
    out.push('\n');
}

/// Returns a path as git writes it: in quotes if it contains anything that could be misread.
fn quote(prefix: &str, path: &WorkspacePath) -> String {
    let bytes = path.as_bytes();
    let needs_quotes = |byte: &u8| *byte < 0x20 || *byte >= 0x7f || matches!(*byte, b'"' | b'\\');
    if !bytes.iter().any(needs_quotes) {
        return format!("{prefix}{}", path.to_text());
    }
    let mut out = format!("\"{prefix}");
    for byte in bytes {
        match *byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            byte if !(0x20..0x7f).contains(&byte) => write!(out, "\\{byte:03o}").unwrap_or_default(),
            byte => out.push(char::from(byte)),
        }
    }
    out.push('"');
    out
}

fn hunks(out: &mut String, before: &[u8], after: &[u8], context: u32) {
    let found = Blocks::with_context(before, after, context);
    for block in &found.blocks {
        print_block(out, block, &found);
    }
}

fn print_block(out: &mut String, block: &Block, found: &Blocks<'_>) {
    let range = |range: &std::ops::Range<u32>| {
        let (start, length) = (first_line(range), range.end - range.start);
        if length == 1 { format!("{start}") } else { format!("{start},{length}") }
    };
    line(out, format_args!("@@ -{} +{} @@", range(&block.before), range(&block.after)));
    found.visit(block, &mut |mark, text| {
        out.push(mark);
        out.push_str(&String::from_utf8_lossy(text));
        if !text.ends_with(b"\n") {
            out.push_str("\n\\ No newline at end of file\n");
        }
    });
}

/// Writes binary contents in git's own form: both sides whole, compressed, in base 85.
fn binary(out: &mut String, before: &[u8], after: &[u8]) {
    line(out, format_args!("GIT binary patch"));
    for side in [after, before] {
        line(out, format_args!("literal {}", side.len()));
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut compressed = vec![0; compressor.zlib_compress_bound(side.len())];
        // The buffer has the size that the library asked for, so that it can't be too small.
        let length = compressor.zlib_compress(side, &mut compressed).unwrap_or(0);
        for piece in compressed[..length].chunks(52) {
            let count = piece.len() as u8;
            out.push(char::from(if count <= 26 { b'A' + count - 1 } else { b'a' + count - 27 }));
            base85(out, piece);
            out.push('\n');
        }
        out.push('\n');
    }
}

fn base85(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    for group in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..group.len()].copy_from_slice(group);
        let mut number = u32::from_be_bytes(word);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(number % 85) as usize];
            number /= 85;
        }
        out.extend(digits.map(char::from));
    }
}
