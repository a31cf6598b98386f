//! The page that `backtrail ui` serves, and the API under it.
//!
//! Shares the access rules, the plans, the limits and the guard with the MCP server. The page itself is built from
//! `ui/` and embedded.

mod answers;
mod assets;
mod changing;
mod conversation;
mod desk;
mod diff;
mod events;
mod file;
mod guard;
mod page;
mod query;
mod reading;
mod routes;

pub use desk::{AllWorkspaces, OpenAny, ShownWorkspaces};
pub use guard::PageTokens;
pub(crate) use page::Page;
