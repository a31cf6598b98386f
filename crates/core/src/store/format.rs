//! The files that make a directory a store: format, identity, and the files that plain git needs.

use std::path::PathBuf;

use super::{IdentityFile, Layout, refs};
use crate::{
    disk::private::{self, Durability},
    error::{Error, Result, While},
    model::Kind,
};

/// Features that this version can read and write.
const KNOWN: [&str; 3] = ["base", THREAD, BIN];

/// The feature that a program needs to write to a store with checkpoints of the kind `thread`.
const THREAD: &str = "thread";

/// The feature that a program needs to write to a store whose bin was used. A program that does not know the bin would
/// remove what is in it, and leave refs that lead nowhere.
const BIN: &str = "bin";

const FORMAT: &str = "backtrail store 1\nread: base\nwrite: base\n";

/// Git's configuration of the store. Plain git must be able to work with the store, and must leave it alone otherwise.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
[gc]
\tauto = 0
\tpruneExpire = never
[maintenance]
\tauto = false
[fsck]
\tgitmodulesBlob = ignore
\tgitmodulesLarge = ignore
\tgitmodulesMissing = ignore
\tgitmodulesName = ignore
\tgitmodulesParse = ignore
\tgitmodulesPath = ignore
\tgitmodulesSymlink = ignore
\tgitmodulesUpdate = ignore
\tgitmodulesUrl = ignore
\tgitattributesBlob = ignore
\tgitattributesLarge = ignore
\tgitattributesLineLength = ignore
\tgitattributesMissing = ignore
\tgitattributesSymlink = ignore
\tgitignoreSymlink = ignore
\tmailmapSymlink = ignore
";

const HEAD: &str = "ref: refs/heads/main\n";

/// The features that a store requires.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// A feature that is required for writing and that this version does not know.
    pub(super) unknown_to_write: Option<String>,
}

impl Format {
    /// Reads the format. Returns `None` if the directory is not a store yet. A store that has checkpoints but no format
    /// file has lost it. Then the format that this version writes is assumed.
    pub(super) fn read(layout: &Layout) -> Result<Option<Self>> {
        let path = layout.format();
        let bytes = match private::read(&path).or_fail("read", &path)? {
            Some(bytes) => bytes,
            None if refs::has_checkpoint(layout).or_fail("read the refs of", layout.root())? => FORMAT.into(),
            None => return Ok(None),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        if !lines.next().is_some_and(|line| line.starts_with("backtrail store ")) {
            return Err(Error::StoreDamaged {
                store: layout.root().to_owned(),
                problem: format!("{} is not a format file", path.display()),
            });
        }
        let unknown = |prefix: &str| {
            let features = text.lines().filter_map(|line| line.strip_prefix(prefix));
            features.flat_map(str::split_whitespace).find(|feature| !KNOWN.contains(feature)).map(str::to_owned)
        };
        if let Some(feature) = unknown("read:") {
            return Err(Error::StoreTooNew { store: layout.root().to_owned(), feature });
        }
        Ok(Some(Self { unknown_to_write: unknown("write:") }))
    }
}

/// Creates an empty store. The caller holds the lock. The format file is written last: there is no store until it
/// exists.
pub(super) fn create(layout: &Layout, identity: &IdentityFile) -> Result<()> {
    let of_refs = [layout.checkpoint_refs(), layout.pinned_refs(), layout.deleted_refs()];
    for directory in of_refs.into_iter().chain([layout.packs(), layout.objects().join("info")]) {
        private::make_directories(&directory).or_fail("create", &directory)?;
    }
    identity.write(layout)?;
    for (path, text) in [(layout.head(), HEAD), (layout.config(), CONFIG), (layout.format(), FORMAT)] {
        private::replace(&path, text.as_bytes(), Durability::Synced).or_fail("write", &path)?;
    }
    let sync = |path: PathBuf| private::sync_directory(&path).or_fail("sync", path);
    sync(layout.root().join("refs"))?;
    sync(layout.objects())?;
    sync(layout.root().to_owned())?;
    match layout.root().parent() {
        Some(parent) => sync(parent.to_owned()),
        None => Ok(()),
    }
}

/// Adds the features that a program needs to write beside a checkpoint of this kind. Called before such a checkpoint is
/// published.
pub(super) fn require(layout: &Layout, kind: Kind) -> Result<()> {
    if kind == Kind::Thread { require_feature(layout, THREAD) } else { Ok(()) }
}

/// Notes that the store has a bin, durably. Called before the first checkpoint is put there.
pub(super) fn require_bin(layout: &Layout) -> Result<()> {
    require_feature(layout, BIN)
}

fn require_feature(layout: &Layout, feature: &str) -> Result<()> {
    let path = layout.format();
    let bytes = private::read(&path).or_fail("read", &path)?.unwrap_or_else(|| FORMAT.into());
    let text = String::from_utf8_lossy(&bytes);
    let is_named =
        |line: &str| line.strip_prefix("write:").is_some_and(|names| names.split(' ').any(|name| name == feature));
    if text.lines().any(is_named) {
        return Ok(());
    }
    let lines = text.lines().map(|line| match line.starts_with("write:") {
        true => format!("{line} {feature}\n"),
        false => format!("{line}\n"),
    });
    private::replace(&path, lines.collect::<String>().as_bytes(), Durability::Synced).or_fail("write", path)
}

/// Returns whether this directory looks like a store: it has a format file or a checkpoint.
pub(crate) fn is_store(layout: &Layout) -> bool {
    private::exists(&layout.format()) || refs::has_checkpoint(layout).unwrap_or(false)
}

/// Recreates missing directories and a lost format file, and repairs the files that plain git needs if they are broken.
pub(super) fn mend(layout: &Layout) -> Result<()> {
    for directory in [layout.packs(), layout.checkpoint_refs(), layout.pinned_refs(), layout.deleted_refs()] {
        private::make_directories(&directory).or_fail("create", &directory)?;
    }
    if !private::exists(&layout.format()) {
        let path = layout.format();
        let has_bin = refs::has_deleted(layout).or_fail("read the refs of", layout.root())?;
        let text = if has_bin { FORMAT.replace("write: base", "write: base bin") } else { FORMAT.to_owned() };
        private::replace(&path, text.as_bytes(), Durability::Synced).or_fail("write", path)?;
    }
    // The engine reads none of the files below.
    let mend = |path: PathBuf, text: &str, is_sound: &dyn Fn(&[u8]) -> bool| -> Result<()> {
        let present = private::read(&path).or_fail("read", &path)?;
        if present.is_some_and(|bytes| bytes == text.as_bytes() || is_sound(&bytes)) {
            return Ok(());
        }
        private::replace(&path, text.as_bytes(), Durability::Unsynced).or_fail("write", path)
    };
    mend(layout.config(), CONFIG, &|bytes| {
        let metadata = gix_config::file::Metadata::from(gix_config::Source::Local);
        // Gitoxide accepts more than git does. A configuration that still says that the repository is bare is taken for
        // ours.
        gix_config::File::from_bytes_no_includes(bytes, metadata, Default::default())
            .is_ok_and(|config| matches!(config.boolean("core.bare"), Ok(Some(true))))
    })?;
    mend(layout.head(), HEAD, &|bytes| bytes.starts_with(b"ref: refs/") || bytes.len() == 41)
}
