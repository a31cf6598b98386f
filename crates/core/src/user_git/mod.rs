//! The user's own git repository: its rules, its tracked files and its position. It is read and not written. A move
//! that the user asked for is planned here and carried out in `restore/git.rs`.
//!
//! Everything is read from files. Hooks, filters and helpers that the configuration names are ignored. A repository
//! that can't be parsed is treated as if there were none.

mod dirty;
mod index;
mod nested;
mod objects;
mod obstacles;
mod ownership;
mod position;
mod repository;
mod shared_objects;
mod staged;

pub(crate) use nested::NestedRepositories;
pub(crate) use position::{Destination, GitMove, Position};
pub use repository::{GitEnvironment, GitPosition};
pub(crate) use repository::{RuleFiles, UserRepository, global_excludes};
pub(crate) use shared_objects::SharedObjects;
