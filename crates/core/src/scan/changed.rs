//! The directories that a scan looks at if a watcher knows which ones changed. All others are as the stat cache has
//! them.

use bstr::{BString, ByteSlice};

use crate::model::{ChangedDirectories, WorkspacePath};

/// How far a directory may differ from the stat cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Neither the directory nor anything below it.
    Nothing,
    /// Only directories below it.
    Below,
    /// The directory itself. Says nothing about the directories below.
    Here,
    /// Anything in it, at any depth.
    Whole,
}

/// The directories that may differ from the stat cache.
#[derive(Debug)]
pub(crate) struct ChangedPaths {
    /// Sorted by their bytes.
    here: Vec<BString>,
    whole: Vec<BString>,
    /// Both.
    all: Vec<BString>,
}

impl ChangedPaths {
    /// Creates the set of directories that a watcher named, and those that every scan looks at.
    pub(crate) fn new(changed: &ChangedDirectories, always: &[WorkspacePath]) -> Self {
        let sorted = |paths: &mut dyn Iterator<Item = &WorkspacePath>| {
            let mut sorted: Vec<BString> = paths.map(|path| path.as_bytes().into()).collect();
            sorted.sort_unstable();
            sorted.dedup();
            sorted
        };
        Self {
            here: sorted(&mut changed.here.iter().chain(always)),
            whole: sorted(&mut changed.whole.iter()),
            all: sorted(&mut changed.here.iter().chain(always).chain(&changed.whole)),
        }
    }

    pub(super) fn extent(&self, path: &[u8]) -> Extent {
        let has = |paths: &[BString], path: &[u8]| paths.binary_search_by(|found| found.as_slice().cmp(path)).is_ok();
        let mut around = path.find_iter("/").map(|end| &path[..end]).chain([path, b""]);
        if !self.whole.is_empty() && around.any(|above| has(&self.whole, above)) {
            return Extent::Whole;
        }
        if has(&self.here, path) {
            return Extent::Here;
        }
        let below = [path, b"/"].concat();
        let first = self.all.partition_point(|found| found.as_slice() < below.as_slice());
        let is_above_any = match path {
            b"" => !self.all.is_empty(),
            _ => self.all.get(first).is_some_and(|found| found.starts_with(&below)),
        };
        if is_above_any { Extent::Below } else { Extent::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_follows_from_the_directories_above_and_below() {
        let paths = |names: &[&str]| names.iter().map(|name| WorkspacePath::new(*name).unwrap()).collect();
        let changed = ChangedDirectories { here: paths(&["a/b", "z"]), whole: paths(&["a/c"]) };
        let set = ChangedPaths::new(&changed, &[WorkspacePath::new("m/n").unwrap()]);
        for (path, extent) in [
            ("", Extent::Below),
            ("a", Extent::Below),
            ("a/b", Extent::Here),
            ("a/b/c", Extent::Nothing),
            ("a/bc", Extent::Nothing),
            ("a-b", Extent::Nothing),
            ("a/c", Extent::Whole),
            ("a/c/d/e", Extent::Whole),
            ("a/cc", Extent::Nothing),
            ("m", Extent::Below),
            ("m/n", Extent::Here),
            ("z", Extent::Here),
            ("z/y", Extent::Nothing),
        ] {
            assert_eq!(set.extent(path.as_bytes()), extent, "{path}");
        }
        let root = ChangedDirectories { here: paths(&[""]), whole: Vec::new() };
        let set = ChangedPaths::new(&root, &[]);
        assert_eq!((set.extent(b""), set.extent(b"a")), (Extent::Here, Extent::Nothing));
        let root = ChangedDirectories { here: Vec::new(), whole: paths(&[""]) };
        assert_eq!(ChangedPaths::new(&root, &[]).extent(b"a/b"), Extent::Whole);
        assert_eq!(ChangedPaths::new(&ChangedDirectories::default(), &[]).extent(b""), Extent::Nothing);
    }
}
