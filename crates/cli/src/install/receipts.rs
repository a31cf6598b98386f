//! Records the additions to each file, so that exactly these can be removed again.
//!
//! Receipts are optional: without one, our entries are recognized by their content.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{config_file::ConfigFile, text_edits::AddedText};
use crate::hooks::Agent;

/// The additions to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    agent: String,
    path: PathBuf,
    /// The part of the file that belongs to this installation. Set if several installations share the file.
    #[serde(default)]
    part: Option<String>,
    /// Set if the installation created the file.
    pub(crate) created: bool,
    /// The directories that were created for the file, outermost first.
    pub(crate) directories: Vec<PathBuf>,
    /// The added pieces, with their offsets.
    pub(crate) pieces: Vec<AddedText>,
    /// Objects and arrays that entries were added to and that existed before.
    pub(crate) kept: Vec<Vec<String>>,
    /// Objects and arrays that were created for our entries.
    #[serde(default)]
    pub(crate) made: Vec<Vec<String>>,
    /// The places of entries that called this program before the first installation. They are the user's own.
    #[serde(default)]
    pub(crate) own: Vec<Vec<String>>,
}

impl Receipt {
    pub(crate) fn new(agent: Agent, file: &ConfigFile) -> Self {
        Self {
            agent: agent.name().to_owned(),
            path: file.path.clone(),
            part: file.part.clone(),
            created: false,
            directories: Vec::new(),
            pieces: Vec::new(),
            kept: Vec::new(),
            made: Vec::new(),
            own: Vec::new(),
        }
    }

    pub(crate) fn with_own(self, own: Vec<Vec<String>>) -> Self {
        Self { own, ..self }
    }

    /// Returns the receipt that remains after all additions were removed. Returns `None` if nothing has to be
    /// remembered.
    pub(crate) fn after_removal(&self) -> Option<Self> {
        let (pieces, kept, made) = (Vec::new(), Vec::new(), Vec::new());
        let left = Self { created: false, directories: Vec::new(), pieces, kept, made, ..self.clone() };
        (!left.own.is_empty()).then_some(left)
    }

    fn is_of(&self, agent: Agent, file: &ConfigFile) -> bool {
        self.agent == agent.name() && self.path == file.path && self.part == file.part
    }

    /// Returns whether the installation created the file, with exactly this text.
    pub(crate) fn is_whole(&self, text: &str) -> bool {
        self.created && self.is_all(text)
    }

    /// Returns whether this text is exactly what was added.
    pub(crate) fn is_all(&self, text: &str) -> bool {
        matches!(&self.pieces[..], [only] if only.at == 0 && only.text == text)
    }
}

/// All receipts, stored in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipts {
    files: Vec<Receipt>,
}

impl Receipts {
    /// Reads the receipts. A file that can't be parsed counts as empty.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let file = ConfigFile::read(file)?;
        Ok(file.text().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    /// Writes the receipts.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from)?;
        ConfigFile::read(file)?.write(&text, false).map(drop)
    }

    pub(crate) fn find(&self, agent: Agent, file: &ConfigFile) -> Option<&Receipt> {
        self.files.iter().find(|receipt| receipt.is_of(agent, file))
    }

    /// Adds a receipt. Replaces an older one for the same file and part.
    pub(crate) fn put(&mut self, receipt: Receipt) {
        let mark = |receipt: &Receipt| (receipt.agent.clone(), receipt.path.clone(), receipt.part.clone());
        self.files.retain(|known| mark(known) != mark(&receipt));
        self.files.push(receipt);
    }

    /// Removes a receipt. If other receipts share its file, they take over the things that it created, so that the last
    /// one removes them.
    pub(crate) fn remove(&mut self, agent: Agent, file: &ConfigFile) {
        let Some(at) = self.files.iter().position(|receipt| receipt.is_of(agent, file)) else { return };
        let gone = self.files.remove(at);
        let mut heirs = self.files.iter_mut().filter(|other| other.agent == gone.agent && other.path == gone.path);
        let Some(first) = heirs.next() else { return };
        if gone.created {
            (first.created, first.directories) = (true, gone.directories);
        }
        for container in gone.made {
            let mut heirs = self.files.iter_mut().filter(|other| other.agent == gone.agent && other.path == gone.path);
            if let Some(heir) = heirs.find(|heir| heir.kept.contains(&container)) {
                heir.kept.retain(|kept| *kept != container);
                heir.made.push(container);
            }
        }
    }

    /// Returns the files that were edited for an agent.
    pub(crate) fn paths(&self, agent: Agent) -> impl Iterator<Item = &Path> {
        let of_agent =
            self.files.iter().filter(move |receipt| receipt.agent == agent.name() && !receipt.pieces.is_empty());
        let paths: BTreeSet<&Path> = of_agent.map(|receipt| receipt.path.as_path()).collect();
        paths.into_iter()
    }
}
