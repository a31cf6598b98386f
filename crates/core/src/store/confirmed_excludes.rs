//! Exclude patterns that the owner of the workspace added with `backtrail exclude`.
//!
//! A pattern in `backtrail.toml` alone does not end the capture of a path: an agent could have written it. It does once
//! it is listed here as well.

use std::io;

use super::{
    Layout,
    checksummed_lines::{self, Lines},
};
use crate::disk::private::{self, Durability};

/// Returns the patterns. A damaged line is skipped: the paths that it names stay captured.
pub(super) fn read(layout: &Layout) -> io::Result<Vec<String>> {
    let bytes = private::read(&layout.confirmed_excludes())?.unwrap_or_default();
    Ok(Lines::of(&bytes).sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Adds patterns.
pub(super) fn add(layout: &Layout, patterns: &[String]) -> io::Result<()> {
    let known = read(layout)?;
    let new = patterns.iter().filter(|pattern| !known.contains(pattern));
    write(layout, &known, known.iter().chain(new).collect())
}

/// Removes the patterns that are not among `present`.
pub(super) fn retain(layout: &Layout, present: &[String]) -> io::Result<()> {
    let known = read(layout)?;
    write(layout, &known, known.iter().filter(|pattern| present.contains(pattern)).collect())
}

fn write(layout: &Layout, known: &[String], patterns: Vec<&String>) -> io::Result<()> {
    if patterns.len() == known.len() {
        return Ok(());
    }
    if patterns.is_empty() {
        return private::remove(&layout.confirmed_excludes());
    }
    let mut text = String::new();
    for pattern in patterns {
        text.push_str(&checksummed_lines::seal(&serde_json::to_string(pattern)?));
    }
    private::replace(&layout.confirmed_excludes(), text.as_bytes(), Durability::Synced)
}
