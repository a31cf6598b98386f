//! HTTP for programs on this machine that have the token.

mod address;
pub(crate) mod guard;
pub(crate) mod listen;
mod protocol;
mod token;

pub use address::parse_address;
pub(crate) use listen::{Listening, bind};
pub(crate) use protocol::serve_protocol;
pub use token::{Token, TokenError};
