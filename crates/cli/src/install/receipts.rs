//! Remembers what was added to which file, so that exactly that can be taken out again.
//!
//! A convenience, not a condition: without a receipt, entries are found by what they say.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{config_file::ConfigFile, draft::Piece};
use crate::hooks::Agent;

/// What was added to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    agent: String,
    path: PathBuf,
    /// Was the file made?
    pub(crate) created: bool,
    /// The directories that were made for it, outermost first.
    pub(crate) directories: Vec<PathBuf>,
    /// What was added, with the places.
    pub(crate) pieces: Vec<Piece>,
    /// Objects and arrays that something was put into and that were there before.
    pub(crate) kept: Vec<Vec<String>>,
}

impl Receipt {
    pub(crate) fn new(agent: Agent, path: &Path) -> Self {
        Self {
            agent: agent.name().to_owned(),
            path: path.to_owned(),
            created: false,
            directories: Vec::new(),
            pieces: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Is this all of the file, as it was made?
    pub(crate) fn is_whole(&self, text: &str) -> bool {
        self.created && matches!(&self.pieces[..], [only] if only.at == 0 && only.text == text)
    }
}

/// All receipts, in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipts {
    files: Vec<Receipt>,
}

impl Receipts {
    /// Reads them; what can't be read counts for nothing.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let file = ConfigFile::read(file)?;
        Ok(file.text().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    /// Keeps them.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from)?;
        ConfigFile::read(file)?.write(&text, false).map(drop)
    }

    pub(crate) fn find(&self, agent: Agent, path: &Path) -> Option<&Receipt> {
        self.files.iter().find(|receipt| receipt.agent == agent.name() && receipt.path == path)
    }

    /// Takes a receipt in the place of an older one for the same file.
    pub(crate) fn put(&mut self, receipt: Receipt) {
        self.files.retain(|known| (&known.agent, &known.path) != (&receipt.agent, &receipt.path));
        self.files.push(receipt);
    }

    pub(crate) fn remove(&mut self, agent: Agent, path: &Path) {
        self.files.retain(|known| known.agent != agent.name() || known.path != path);
    }

    /// The files that something was installed into for an agent.
    pub(crate) fn paths(&self, agent: Agent) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(move |receipt| receipt.agent == agent.name()).map(|receipt| receipt.path.as_path())
    }
}
