//! Packs: writing them, and writing them again, smaller.

pub(super) mod collect;
mod delta;
pub(super) mod deltify;
pub(super) mod index;
pub(super) mod merge;
pub(super) mod pack;
pub(super) mod reindex;
pub(super) mod sizes;

pub(crate) use pack::PackWriter;
pub(crate) use sizes::PackedSizes;
