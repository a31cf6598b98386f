//! Backtrail for agents: an MCP server over one workspace.
//!
//! The only asynchronous code. The library implements the operations, which run on separate threads. This crate defines
//! the tools and resources, the limits of their answers, and the transport. The caller that starts the server chooses
//! the workspace and its settings. Deleting and pruning are not offered.

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
mod ui;
mod watch;

pub use access::{Opener, OptionsAt, Purpose, Served};
pub use http::{Token, TokenError, parse_address};
pub use serve::{End, serve_http, serve_page, serve_stdio};
pub use tools::TOOL_NAMES;
pub use ui::{AllWorkspaces, OpenAny, PageTokens, ShownWorkspaces};
