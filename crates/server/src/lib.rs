//! Backtrail for agents: an MCP server over one workspace.
//!
//! The only asynchronous part. The operations are the library's and run on threads of their own; here is what an agent
//! may ask for, how much it is told, and how the protocol carries it. Which workspace it is, and with which settings,
//! is decided by whoever starts the server. Deleting and pruning are not offered.

mod access;
mod answers;
mod failure;
mod handler;
mod http;
mod plans;
mod resources;
mod running;
mod schema;
mod serve;
#[cfg(test)]
mod serve_tests;
mod tools;
mod watch;

pub use access::{Opener, Purpose};
pub use http::{Token, TokenError, parse_address};
pub use serve::{End, serve_http, serve_stdio};
pub use tools::TOOL_NAMES;
