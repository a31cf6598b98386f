//! A hermetic workspace.

use std::{
    cell::Cell,
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use backtrail::{
    Checkpoint, CheckpointId, GitEnvironment, Options, SaveRequest, Saved, Settings, Start, Workspace, WorkspacePath,
};

use crate::{Manifest, git, git_output};

/// A workspace in a temporary directory, with a home of its own and a clock that ticks with every call.
pub struct TestWorkspace {
    base: PathBuf,
    stores: PathBuf,
    clock: Cell<i64>,
    /// The temporary directories, removed with the workspace. Empty if another process created them.
    _directories: Vec<tempfile::TempDir>,
}

/// Most methods panic on a system error, because a test can't continue then.
#[expect(clippy::new_without_default, reason = "a temporary directory is not a default value")]
#[expect(clippy::unwrap_used, reason = "a test stops if its own set-up fails")]
#[expect(clippy::missing_panics_doc, reason = "stated once for all methods")]
impl TestWorkspace {
    /// Creates an empty workspace.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// Creates an empty workspace in memory if the system has a memory file system. For tests with very many
    /// operations.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::new() }
    }

    fn below(above: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("backtrail-test-").tempdir_in(above).unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["ws", "home", "outside"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        let stores = base.join("home/stores");
        std::os::unix::fs::symlink(&stores, base.join("stores-link")).unwrap();
        Self { base, stores, clock: Cell::new(1_800_000_000_000), _directories: vec![directory] }
    }

    /// Creates an empty workspace whose stores are below `elsewhere`, which may be another file system.
    pub fn with_stores_below(elsewhere: &Path) -> Self {
        let mut made = Self::new();
        let directory = tempfile::Builder::new().prefix("backtrail-test-").tempdir_in(elsewhere).unwrap();
        made.stores = directory.path().canonicalize().unwrap().join("stores");
        std::fs::remove_file(made.base.join("stores-link")).unwrap();
        std::os::unix::fs::symlink(&made.stores, made.base.join("stores-link")).unwrap();
        made._directories.push(directory);
        made
    }

    /// Opens a workspace that another process created, by its [`base`](Self::base).
    pub fn attach(base: &Path) -> Self {
        let stores = std::fs::read_link(base.join("stores-link")).unwrap();
        Self { base: base.to_owned(), stores, clock: Cell::new(1_900_000_000_000), _directories: Vec::new() }
    }

    /// Returns the canonical path of the temporary directory that contains everything.
    pub fn base(&self) -> PathBuf {
        self.base.clone()
    }

    /// Returns the root of the workspace.
    pub fn root(&self) -> PathBuf {
        self.base().join("ws")
    }

    /// Returns a directory beside the workspace that no operation may change.
    pub fn outside(&self) -> PathBuf {
        self.base().join("outside")
    }

    /// Returns the home directory.
    pub fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    /// Returns the directory that contains the stores.
    pub fn stores(&self) -> PathBuf {
        self.stores.clone()
    }

    /// Writes the user's own settings file, which [`open`](Self::open) reads.
    pub fn write_user_settings(&self, text: &str) {
        std::fs::write(self.user_settings_file(), text).unwrap();
    }

    fn user_settings_file(&self) -> PathBuf {
        self.home().join("config.toml")
    }

    /// Opens the workspace as a front end would, with the settings in its own file.
    pub fn open(&self) -> Workspace {
        self.open_at(&self.root())
    }

    /// Opens another directory as a workspace.
    pub fn open_at(&self, root: &Path) -> Workspace {
        let user = Settings::of_user(Some(&self.user_settings_file())).unwrap();
        let settings = user.with_workspace(root).unwrap();
        self.open_with(root, settings)
    }

    /// Opens a directory with these settings.
    pub fn open_with(&self, root: &Path, settings: Settings) -> Workspace {
        self.open_as(root, Options { settings, ..Options::default() })
    }

    /// Opens a directory with these options, except for the git environment, which is the test's own.
    pub fn open_as(&self, root: &Path, options: Options) -> Workspace {
        let location = backtrail::locate(&Start::At(root.to_owned()), &self.stores(), None).unwrap();
        let git = GitEnvironment {
            home: Some(self.home()),
            config_files: vec![self.home().join(".gitconfig")],
            default_excludes: None,
        };
        Workspace::new(location, Options { git, ..options })
    }

    /// Returns the next tick of the clock.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.set(self.clock.get() + 1_000);
        jiff::Timestamp::from_millisecond(self.clock.get()).unwrap()
    }

    /// Takes a checkpoint. Panics if it is not a new one.
    #[track_caller]
    pub fn save(&self) -> Checkpoint {
        let saved = self.save_with(&SaveRequest::default());
        assert!(saved.created, "nothing to save");
        saved.checkpoint
    }

    /// Takes a checkpoint.
    #[track_caller]
    pub fn save_with(&self, request: &SaveRequest) -> Saved {
        self.open().save(request, self.now()).unwrap()
    }

    /// Returns a path in the workspace.
    pub fn path(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(name.as_ref()))
    }

    /// Returns the packs of the store.
    pub fn packs(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(self.store().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|extension| extension == "pack")).collect()
    }

    /// Writes a file. Creates its parent directories.
    pub fn write(&self, name: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Writes a file with these permission bits.
    pub fn write_mode(&self, name: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>, mode: u32) {
        self.write(name.as_ref(), bytes);
        self.chmod(name, mode);
    }

    /// Sets permission bits.
    pub fn chmod(&self, name: impl AsRef<[u8]>, mode: u32) {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Creates a directory with its parents.
    pub fn mkdir(&self, name: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name)).unwrap();
    }

    /// Creates a symlink. Creates its parent directories.
    pub fn symlink(&self, target: impl AsRef<[u8]>, name: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(OsStr::from_bytes(target.as_ref()), path).unwrap();
    }

    /// Removes a file, a symlink or a directory.
    #[expect(clippy::disallowed_methods, reason = "a test clears its own temporary tree")]
    pub fn remove(&self, name: impl AsRef<[u8]>) {
        let path = self.path(name);
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Renames a file or directory. Creates the parent directories of the new name.
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        let to = self.path(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(self.path(from), to).unwrap();
    }

    /// Returns the bytes of a file. Returns `None` if it does not exist.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    /// Returns whether the path exists.
    pub fn exists(&self, name: impl AsRef<[u8]>) -> bool {
        std::fs::symlink_metadata(self.path(name)).is_ok()
    }

    /// Returns the current tree.
    pub fn manifest(&self) -> Manifest {
        Manifest::of(&self.root())
    }

    /// Makes the workspace a git repository and commits everything.
    pub fn git_init(&self) {
        git(&self.root(), &["init", "-q"]);
        git(&self.root(), &["add", "-A"]);
        git(&self.root(), &["commit", "-q", "--allow-empty", "-m", "base"]);
    }

    /// Runs real git in the workspace.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> Vec<u8> {
        git(&self.root(), arguments)
    }

    /// Returns the directory of the workspace's store.
    pub fn store(&self) -> PathBuf {
        self.open().store_directory().to_owned()
    }

    /// Runs real git on the store.
    #[track_caller]
    pub fn store_git(&self, arguments: &[&str]) -> Vec<u8> {
        git(&self.store(), arguments)
    }

    /// Checks the store with real git and with `verify`.
    #[track_caller]
    pub fn assert_store_is_sound(&self) {
        let output = git_output(&self.store(), &["fsck", "--full", "--strict"]);
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let bad = ["error", "fatal", "missing", "broken"];
        let is_bad = text.lines().any(|line| bad.iter().any(|start| line.starts_with(start)));
        assert!(output.status.success() && !is_bad, "git fsck: {text}");
        let verified = self.open().verify().unwrap();
        assert_eq!(verified.damaged, [], "verify");
    }

    /// Returns the content of a checkpoint as plain git reads it: modes and blob ids by path.
    #[track_caller]
    pub fn tree_in_store(&self, id: &CheckpointId) -> Vec<(Vec<u8>, String, String)> {
        let listing = self.store_git(&["ls-tree", "-r", "-z", "--full-tree", &id.to_string()]);
        let mut found: Vec<_> = listing
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
            .map(|record| {
                let tab = record.iter().position(|byte| *byte == b'\t').unwrap();
                let head = String::from_utf8_lossy(&record[..tab]).into_owned();
                let words: Vec<&str> = head.split(' ').collect();
                (record[tab + 1..].to_vec(), words[0].to_owned(), words[2].to_owned())
            })
            .collect();
        found.sort();
        found
    }

    /// Returns the paths that a checkpoint holds, as plain git reads them.
    #[track_caller]
    pub fn paths_in_store(&self, id: &CheckpointId) -> Vec<String> {
        let paths = self.tree_in_store(id).into_iter();
        paths.map(|(path, _, _)| String::from_utf8_lossy(&path).into_owned()).collect()
    }

    /// Returns whether a file with these bytes is reachable in the store.
    #[track_caller]
    pub fn is_in_store(&self, bytes: &[u8]) -> bool {
        let listing = self.store_git(&["rev-list", "--objects", "--all"]);
        let id = crate::blob_id(bytes);
        String::from_utf8_lossy(&listing).lines().any(|line| line.starts_with(&id))
    }

    /// Returns the bytes of every file and symlink that is reachable in the store, as plain git reads them.
    #[track_caller]
    pub fn blobs_in_store(&self) -> std::collections::BTreeSet<Vec<u8>> {
        let listing = self.store_git(&["rev-list", "--objects", "--no-object-names", "--all"]);
        let answer = crate::git::git_with_input(&self.store(), &["cat-file", "--batch"], listing);
        let mut found = std::collections::BTreeSet::new();
        let mut rest = &answer[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            let words: Vec<&str> = head.split(' ').collect();
            let length: usize = words[2].parse().unwrap();
            if words[1] == "blob" {
                found.insert(rest[end + 1..end + 1 + length].to_vec());
            }
            rest = &rest[end + length + 2..];
        }
        found
    }

    /// Returns a path for the library.
    pub fn workspace_path(&self, name: impl AsRef<[u8]>) -> WorkspacePath {
        WorkspacePath::new(name.as_ref()).unwrap()
    }
}
