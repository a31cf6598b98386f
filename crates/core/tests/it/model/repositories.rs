//! Repositories inside the workspace: no operation may touch their git directories.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use backtrail_testkit::{Found, Manifest, TestWorkspace, git, git_directory_bytes};

/// The git directories by their paths, byte for byte.
pub(super) type Repositories = BTreeMap<Vec<u8>, Manifest>;

/// Reads the git directories on disk.
pub(super) fn read(ws: &TestWorkspace) -> Repositories {
    let manifest = ws.manifest();
    let directories = manifest.0.iter().filter(|(_, found)| matches!(found, Found::Directory(_)));
    let paths = directories.map(|(path, _)| [path, &b"/.git"[..]].concat());
    let existing = paths.filter(|path| ws.exists(path));
    existing.map(|path| (path.clone(), git_directory_bytes(&ws.path(&path)))).collect()
}

/// Makes a directory a repository, unless it is one already.
pub(super) fn make(ws: &TestWorkspace, name: &str) {
    let directory = ws.path(format!("{name}/.git"));
    if !directory.exists() {
        copy(template(), &directory);
    }
}

/// Returns a git directory that git itself created. Creates it once for all tests.
fn template() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        git(directory.path(), &["init", "-q"]);
        git(directory.path(), &["commit", "-q", "--allow-empty", "-m", "inner"]);
        let path = directory.path().join(".git");
        (directory, path)
    });
    path
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}
