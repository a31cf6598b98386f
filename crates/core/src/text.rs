//! What counts as text, and as a line of it.

/// Files larger than this are compared as a whole, not line by line.
pub(crate) const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Git takes a file for binary that has a NUL among so many first bytes.
const BINARY_PROBE: usize = 8_000;

/// Is this no text, as git tells it?
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.len() as u64 > MAX_TEXT_BYTES || memchr::memchr(0, &bytes[..bytes.len().min(BINARY_PROBE)]).is_some()
}

/// How many lines a text has; a last one without a newline counts.
pub(crate) fn line_count(bytes: &[u8]) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    newlines + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}
