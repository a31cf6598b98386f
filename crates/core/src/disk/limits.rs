//! The process's own limits.

/// Lets this process keep as many files open as the system allows it: a deep tree holds a handle per level.
pub fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal leaves the smaller limit, which most workspaces never reach.
    drop(setrlimit(Resource::Nofile, limit));
}
