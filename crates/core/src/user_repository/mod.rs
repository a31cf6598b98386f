//! The user's own git repository, read and not written: which rules it has, what it tracks, where it stands. A move of
//! it that somebody asked for is planned here and carried out in `restore/git.rs`.
//!
//! Read from its files alone. No hook, filter or helper that its configuration names is looked at, and a repository that
//! can't be made sense of counts as none.

mod dirty;
mod index;
mod lent;
mod nested;
mod objects;
mod obstacles;
mod ownership;
mod position;
mod repository;
mod staged;

pub(crate) use lent::LentObjects;
pub(crate) use nested::NestedRepositories;
pub(crate) use position::{Destination, GitMove, Position};
pub use repository::{GitEnvironment, GitPosition};
pub(crate) use repository::{RuleFiles, UserRepository, global_excludes};
