//! The protocol over HTTP, for programs on this machine that have the token.

mod address;
mod guard;
mod listen;
mod token;

pub use address::parse_address;
pub(crate) use listen::bind;
pub use token::{Token, TokenError};
