//! The records of a stat cache that were read one by one. Each is read once and stays in memory.

use std::sync::OnceLock;

/// Two records never begin in the same cell: each is longer.
const CELL_BYTES: u64 = 64;
/// The number of cells that are created at once.
const BLOCK_CELLS: u64 = 1024;

type Cell = OnceLock<Option<Box<[u8]>>>;

/// The records by their offsets in the file.
#[derive(Debug)]
pub(super) struct Parts {
    blocks: Vec<OnceLock<Box<[Cell]>>>,
}

impl Parts {
    /// Creates an empty table for a file of this length.
    pub(super) fn of(length: u64) -> Self {
        let blocks = length.div_ceil(CELL_BYTES * BLOCK_CELLS);
        Self { blocks: (0..blocks).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the record at this offset. `read` reads it for the first time, and returns `None` if it is damaged.
    pub(super) fn get(&self, place: u64, read: impl FnOnce() -> Option<Box<[u8]>>) -> Option<&[u8]> {
        let cell = place / CELL_BYTES;
        let block = self.blocks.get(usize::try_from(cell / BLOCK_CELLS).ok()?)?;
        let cells = block.get_or_init(|| (0..BLOCK_CELLS).map(|_| Cell::new()).collect());
        cells[(cell % BLOCK_CELLS) as usize].get_or_init(read).as_deref()
    }
}
