//! What a program must know to be served over HTTP.

use std::fmt;

use subtle::ConstantTimeEq;

const RANDOM_BYTES: usize = 32;
/// Shorter ones can be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 1_000;

/// A secret that clients send as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct Token(String);

/// Why a text can't be a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Anybody could guess it, or it is longer than a header should be.
    #[error("the token has {length} characters; it must have {SHORTEST} to {LONGEST}")]
    Length {
        /// How many it has.
        length: usize,
    },
    /// It would not survive in a header.
    #[error("the token may contain only letters, digits and - . _ ~ + / =")]
    Characters,
    /// The system has no random bytes.
    #[error("can't create a token: {0}")]
    NoRandomBytes(String),
}

impl Token {
    /// Takes a token that somebody chose; white space around it is no part of it.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let length = text.chars().count();
        if !(SHORTEST..=LONGEST).contains(&length) {
            return Err(TokenError::Length { length });
        }
        let is_fit = |character: char| character.is_ascii_alphanumeric() || "-._~+/=".contains(character);
        if text.chars().all(is_fit) { Ok(Self(text.to_owned())) } else { Err(TokenError::Characters) }
    }

    /// Makes one that nobody can guess.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0_u8; RANDOM_BYTES];
        let mut filled = 0;
        while filled < RANDOM_BYTES {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(|error| TokenError::NoRandomBytes(error.to_string()))?;
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret itself, for whoever must be told.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Is it this one? Takes as long for a near miss as for any other.
    pub(super) fn is(&self, given: &[u8]) -> bool {
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
