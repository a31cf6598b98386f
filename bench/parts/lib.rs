//! Nothing by itself: see `benches/parts.rs`.
