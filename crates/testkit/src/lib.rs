//! Shared code of Backtrail's own tests.
//!
//! - [`TestWorkspace`]: a hermetic workspace with its own home, git configuration off, and a clock that ticks;
//! - [`Manifest`]: an independent reader of trees that shares no code with the engine;
//! - [`crash`]: kills an operation at every step that changes something;
//! - [`git()`]: the real git program as a reference, and [`CheckIgnore`], the same for ignore rules;
//! - [`repository_files`]: the files of this repository, for tests that check its source and its pages.

mod check_ignore;
pub mod crash;
mod git;
mod manifest;
mod random;
mod repository;
mod workspace;

pub use check_ignore::CheckIgnore;
pub use git::{blob_id, git, git_output, git_output_with};
pub use manifest::{Found, Manifest, git_directory_bytes};
pub use random::Random;
pub use repository::{names_in, repository, repository_files, repository_text};
pub use workspace::TestWorkspace;

/// Returns whether long-running tests are enabled.
pub fn is_long() -> bool {
    std::env::var_os("BACKTRAIL_LONG").is_some()
}
