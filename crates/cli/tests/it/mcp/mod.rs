//! `mcp`, used as an agent uses it.

mod client;
mod dropped;
mod hostile;
mod http;
mod logging;
mod precious;
mod precision;
mod protocol;
mod schema;
mod tools;
