//! The questions and answers on the socket of a watcher: one line of JSON each.

use std::collections::BTreeMap;

use crate::model::{ChangeAnswer, WatchToken};

/// The version of the protocol. Two versions do not understand each other.
pub(super) const VERSION: u32 = 1;

/// The name of the socket.
pub(super) const SOCKET: &str = "socket";

/// The longest line. A longer list of directories would not save work.
pub(super) const MAX_LINE_BYTES: usize = 4 << 20;

/// A question with the version of the program that asks it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Question {
    pub(super) version: u32,
    pub(super) ask: Ask,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Which directories may have changed?
    Changes {
        /// The device and the inode of the workspace's directory.
        root: (u64, u64),
        /// The mount namespace of the client.
        namespace: (u64, u64),
        since: Option<WatchToken>,
    },
    /// An earlier answer could not be used.
    FellBack { reason: String },
    /// What is the watcher doing?
    Status,
    /// The watcher shall end.
    Stop,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Changes(ChangeAnswer),
    Status(WatcherReport),
    Done,
    /// The question can't be answered.
    Refused(String),
}

/// What a running watcher reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WatcherReport {
    /// Its process.
    pub pid: u32,
    /// The time when it started, in milliseconds since 1970.
    pub since: i64,
    /// The number of watched directories.
    pub directories: u64,
    /// The number of directories that changed since a client last asked.
    pub pending: u64,
    /// Set if it takes checkpoints by itself.
    pub auto: bool,
    /// The number of questions that could not be answered, or whose answer could not be used, by reason. After each of
    /// them everything was scanned.
    pub fallbacks: BTreeMap<String, u64>,
    /// The number of changes that a full scan found and no event had reported.
    pub missed: u64,
    /// The last checkpoint that could not be taken, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
