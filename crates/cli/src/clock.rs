//! The current time and time zone.

use std::{ops::Deref, sync::OnceLock};

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// The time at which the program was started. The time zone is only looked up when it is needed, because the system's
/// list of zones is long.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    timestamp: Timestamp,
    zoned: OnceLock<Zoned>,
}

impl Now {
    pub(crate) fn new() -> Self {
        Self { timestamp: Timestamp::now(), zoned: OnceLock::new() }
    }

    /// Returns the time, independent of the zone.
    pub(crate) fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Returns the time for resolving an address of a checkpoint. Only addresses that contain a time depend on the
    /// zone. All other addresses get UTC.
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
    fn the_time_zone_is_looked_up_only_for_addresses_with_a_time() {
        let now = Now::new();
        for word in ["@", "@~2", "latest", "a name", "1234abcd"] {
            assert_eq!(now.for_address(word).timestamp(), now.timestamp());
        }
        assert!(now.zoned.get().is_none());
        assert_eq!(now.for_address("at:14:30"), *now.zoned.get().unwrap());
    }
}
