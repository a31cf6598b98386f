//! Ids as one type per kind, so that they can't be confused.

use std::{fmt, str::FromStr};

/// The error for a text that is not forty hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an id: an id has 40 hexadecimal digits")]
pub struct InvalidId(pub String);

fn parse_hex(text: &str) -> Result<[u8; 20], InvalidId> {
    let invalid = || InvalidId(text.to_owned());
    let digits = text.as_bytes();
    if digits.len() != 40 {
        return Err(invalid());
    }
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(invalid)?;
    }
    Ok(bytes)
}

macro_rules! id {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name($visibility [u8; 20]);

        impl $name {
            /// Returns the raw bytes.
            $visibility fn as_bytes(&self) -> &[u8; 20] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse_hex(text).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id! {
    /// The id of a checkpoint. It is the id of a commit in the store, so that plain git can look it up.
    pub CheckpointId
}
id! {
    /// The id of the bytes of a file or the target of a symlink.
    pub ContentId
}
id! {
    /// The id of a directory with everything below it. Equal content has an equal id.
    pub(crate) TreeId
}
id! {
    /// The id of the permission bits below a directory that differ from the usual ones.
    pub(crate) ModesId
}

impl CheckpointId {
    /// Returns the first characters, as they are shown to people.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(8);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_refuse_everything_else() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(text.parse::<CheckpointId>().unwrap().to_string(), text);
        for bad in ["", "0123", "0123456789ABCDEF0123456789abcdef01234567", "g123456789abcdef0123456789abcdef01234567"]
        {
            assert!(bad.parse::<CheckpointId>().is_err(), "{bad:?} was taken");
        }
    }
}
