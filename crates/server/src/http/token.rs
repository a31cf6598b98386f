//! The secret that clients need for access over HTTP.

use std::fmt;

use subtle::ConstantTimeEq;

const RANDOM_BYTES: usize = 32;
/// The minimum length. Shorter tokens can be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 1_000;

/// A secret that clients send as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct Token(String);

/// The reason why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is too short, and could be guessed, or too long for a header.
    #[error("the token has {length} characters; it must have {SHORTEST} to {LONGEST}")]
    Length {
        /// The number of characters.
        length: usize,
    },
    /// The text has characters that are not safe in a header.
    #[error("the token may contain only letters, digits and - . _ ~ + / =")]
    Characters,
    /// The system returned no random bytes.
    #[error("can't create a token: {0}")]
    NoRandomBytes(String),
}

impl Token {
    /// Returns a token that the user chose. White space around it is removed.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let length = text.chars().count();
        if !(SHORTEST..=LONGEST).contains(&length) {
            return Err(TokenError::Length { length });
        }
        let is_fit = |character: char| character.is_ascii_alphanumeric() || "-._~+/=".contains(character);
        if text.chars().all(is_fit) { Ok(Self(text.to_owned())) } else { Err(TokenError::Characters) }
    }

    /// Returns a random token.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0_u8; RANDOM_BYTES];
        let mut filled = 0;
        while filled < RANDOM_BYTES {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(|error| TokenError::NoRandomBytes(error.to_string()))?;
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the secret, to be shown to the user.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether the client sent this token. Compares in constant time, so that the time reveals nothing about
    /// the token.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_plain() {
        assert!(Token::new("0123456789abcdef\n").is_ok_and(|token| token.is(b"0123456789abcdef")));
        assert_eq!(Token::new("short").unwrap_err(), TokenError::Length { length: 5 });
        assert_eq!(Token::new("").unwrap_err(), TokenError::Length { length: 0 });
        assert_eq!(Token::new("0123456789 abcdef").unwrap_err(), TokenError::Characters);
        assert_eq!(Token::new("0123456789\nabcdef").unwrap_err(), TokenError::Characters);
    }

    #[test]
    fn random_ones_differ_and_fit() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.reveal(), two.reveal());
        assert!(Token::new(one.reveal()).is_ok());
        assert!(one.is(one.reveal().as_bytes()) && !one.is(two.reveal().as_bytes()) && !one.is(b""));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }
}
