//! The points at which faults strike, and the kinds of faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::strace::Call;

/// Calls that change something on disk, or make changes durable.
const CHANGING: &[&str] = &[
    "mkdir",
    "mkdirat",
    "unlink",
    "unlinkat",
    "rmdir",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "openat",
    "openat2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "sendfile",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync_file_range",
    "utimensat",
    "flock",
    "setxattr",
    "fsetxattr",
];

/// Calls that only read.
const READING: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "getdents64",
    "statx",
    "newfstatat",
    "fstat",
    "readlink",
    "readlinkat",
    "faccessat",
    "faccessat2",
    "access",
    "statfs",
    "fstatfs",
    "lseek",
    "getcwd",
];

/// Calls that need disk space.
const GROWING: &[&str] = &[
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "openat",
    "write",
    "pwrite64",
    "writev",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "fsync",
    "fdatasync",
    "syncfs",
];

/// Calls that create a file descriptor.
const OPENING: &[&str] = &["openat", "openat2"];

/// Returns the calls that the sweep traces, for strace. The question marks make strace ignore unknown calls, which the
/// program does not make either.
pub(crate) fn watched() -> String {
    CHANGING.iter().chain(READING).map(|name| format!("?{name}")).collect::<Vec<_>>().join(",")
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The process is killed at the call.
    Kill,
    /// The call fails.
    Error(&'static str),
    /// A write reports success with this result, but writes nothing.
    Lie(u64),
}

/// The n-th call of a name in a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) call: String,
    pub(crate) number: usize,
    pub(crate) fault: Fault,
}

impl Point {
    /// Returns the kind of the fault, for the statistics.
    pub(crate) fn kind(&self) -> String {
        match self.fault {
            Fault::Kill => "killed".into(),
            Fault::Error(code) => code.into(),
            Fault::Lie(1) => "a short write that is a lie".into(),
            Fault::Lie(_) => "a whole write that is a lie".into(),
        }
    }

    /// Returns the option for strace.
    pub(crate) fn injection(&self) -> String {
        let what = match self.fault {
            // The call itself is not executed any more.
            Fault::Kill => "error=EIO:signal=KILL".to_owned(),
            Fault::Error(code) => format!("error={code}"),
            Fault::Lie(result) => format!("retval={result}"),
        };
        format!("inject={}:{what}:when={}", self.call, self.number)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, number, fault } = self;
        match fault {
            Fault::Kill => write!(f, "{call}#{number}:kill"),
            Fault::Error(code) => write!(f, "{call}#{number}:{code}"),
            Fault::Lie(result) => write!(f, "{call}#{number}:lie-{result}"),
        }
    }
}

/// Returns every point of an operation with these calls.
pub(crate) fn points(calls: &[Call]) -> Vec<Point> {
    // Calls are counted per name and thread, as strace does. The points are the union over all threads.
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found: BTreeSet<Point> = BTreeSet::new();
    for call in calls {
        let count = counts.entry((&call.thread, &call.name)).or_default();
        *count += 1;
        if call.is_of_loader {
            continue;
        }
        let mut add = |fault: Fault| found.insert(Point { call: call.name.clone(), number: *count, fault });
        let is_in = |list: &[&str]| list.contains(&call.name.as_str());
        let changes = is_in(CHANGING) && (call.is_for_writing || !is_in(OPENING));
        if changes {
            add(Fault::Kill);
        }
        if changes && !["flock", "fsync", "fdatasync", "syncfs"].contains(&call.name.as_str()) {
            add(Fault::Error("EROFS"));
        }
        if is_in(CHANGING) || is_in(READING) {
            add(Fault::Error("EIO"));
        }
        if changes && is_in(GROWING) {
            add(Fault::Error("ENOSPC"));
        }
        if is_in(OPENING) {
            add(Fault::Error("EMFILE"));
        }
        if ["write", "pwrite64"].contains(&call.name.as_str())
            && let Some(length) = call.written
        {
            add(Fault::Lie(length));
            if length > 1 {
                add(Fault::Lie(1));
            }
        }
    }
    found.into_iter().collect()
}
