//! The files of this repository, for tests that check its source and its pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Directories with files that are built, downloaded or found by a fuzzer.
const NOT_WRITTEN_BY_HAND: &[&str] = &["target", "corpus", "artifacts", "coverage", "__pycache__", "node_modules"];

/// Returns the top directory of the repository.
pub fn repository() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", top.display()))
}

/// Returns the files in a directory of the repository and below it, in the order of their names. The paths start at the
/// top of the repository. Leaves out directories whose files are not written by hand.
pub fn repository_files(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in names_in(directory) {
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        if repository().join(&path).is_dir() {
            let is_cache = name.starts_with('.') && name.ends_with("_cache");
            if !is_cache && !NOT_WRITTEN_BY_HAND.contains(&name.as_str()) {
                found.extend(repository_files(&path));
            }
        } else {
            found.push(path);
        }
    }
    found
}

/// Returns the names in a directory of the repository, sorted.
pub fn names_in(directory: &str) -> Vec<String> {
    let path = repository().join(directory);
    let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        entry.file_name().into_string().unwrap_or_else(|name| panic!("a file with an odd name: {name:?}"))
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Returns the text of a file of the repository. Panics if it is not UTF-8.
pub fn repository_text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
