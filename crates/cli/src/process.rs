//! The process's own limits.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process keep as many files open as the system allows it: a deep tree holds a handle per level.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal leaves the smaller limit, which most workspaces never reach.
    let _ = setrlimit(Resource::Nofile, limit);
}
