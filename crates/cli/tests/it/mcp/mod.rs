//! `mcp`, spoken to as an agent speaks to it.

mod client;
mod dropped;
mod hostile;
mod http;
mod logging;
mod precious;
mod protocol;
mod schema;
mod tools;
