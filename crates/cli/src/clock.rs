//! What now and here are.

use std::{ops::Deref, sync::OnceLock};

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// The moment at which the program was started. Which time zone that is in is found out when somebody asks: the
/// system's list of zones is long.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    timestamp: Timestamp,
    zoned: OnceLock<Zoned>,
}

impl Now {
    pub(crate) fn new() -> Self {
        Self { timestamp: Timestamp::now(), zoned: OnceLock::new() }
    }

    /// The moment, wherever it is.
    pub(crate) fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// As far as a word that names a checkpoint needs it: only those with a time in them depend on the zone.
    pub(crate) fn for_address(&self, word: &str) -> Zoned {
        if word.contains(':') { Zoned::clone(self) } else { self.timestamp.to_zoned(TimeZone::UTC) }
    }
}

impl Deref for Now {
    type Target = Zoned;

    fn deref(&self) -> &Zoned {
        self.zoned.get_or_init(|| self.timestamp.to_zoned(TimeZone::system()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_looked_up_for_words_with_a_time_alone() {
        let now = Now::new();
        for word in ["@", "@~2", "latest", "a name", "1234abcd"] {
            assert_eq!(now.for_address(word).timestamp(), now.timestamp());
        }
        assert!(now.zoned.get().is_none());
        assert_eq!(now.for_address("at:14:30"), *now.zoned.get().unwrap());
    }
}
