//! Learns from the kernel which directories change, so that a save looks only at those.
//!
//! One process for each workspace keeps the watches and answers clients. An answer is a list of directories, or
//! "unknown"; it never contains what is in them. Whether an answer may be used is decided in
//! [`workspace`](crate::workspace).

mod auto;
mod client;
mod protocol;
mod server;
mod tree;

pub use auto::{AutoOutcome, AutoSaver};
pub(crate) use client::{SocketWatcher, ask_status, ask_to_stop};
pub use protocol::WatcherReport;
pub use server::WatchEnd;
pub(crate) use server::{Comparison, Duties, Server, Times, WatchFiles};
