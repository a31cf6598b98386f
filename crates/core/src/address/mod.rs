//! The words that name a checkpoint.

pub(crate) mod range;
mod resolve;
pub(crate) mod time;

use std::time::Duration;

use jiff::{Timestamp, Zoned};

use crate::{
    address::{
        range::split_range,
        time::{OUT_OF_RANGE, parse_until},
    },
    error::{Error, Result},
    settings::{is_beyond_range, parse_duration},
};

/// The minimum length of an id prefix that names a checkpoint.
const SHORTEST_PREFIX: usize = 4;

/// A parsed word that names a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `@`: the checkpoint that the workspace stands on.
    Current,
    /// `ID~N`: the checkpoint that is N steps before another one.
    Back {
        /// The other checkpoint.
        of: Box<Address>,
        /// The number of steps.
        steps: u64,
    },
    /// `latest`.
    Latest,
    /// `step:N`.
    Step(u64),
    /// `turn:N`: the checkpoint of the prompt with this number in its session.
    Turn(u64),
    /// `commit:HASH`: the newest checkpoint for which the user repository stood at this commit, given as an id or a
    /// prefix of one.
    Commit(String),
    /// `before:ID`.
    Before(Box<Address>),
    /// `ago:20m`.
    Ago(Duration),
    /// `at:14:30`: the last moment that the text covers, here the end of that minute.
    At(Timestamp),
    /// A name, an id or a prefix of one.
    Word(String),
}

/// A word that is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} does not name a checkpoint: {expected}")]
pub struct InvalidAddress {
    /// The word that was given.
    pub word: String,
    /// A hint with the correct syntax.
    pub expected: &'static str,
}

impl Address {
    /// Parses a word. `now` provides today's date and the time zone.
    pub fn parse(word: &str, now: &Zoned) -> Result<Self, InvalidAddress> {
        let invalid = |expected| InvalidAddress { word: word.to_owned(), expected };
        if word.is_empty() {
            return Err(invalid("write an id, a name, or a word such as @"));
        }
        if word.starts_with('-') {
            return Err(invalid("an id or a name can't start with a dash"));
        }
        if split_range(word).is_some() {
            return Err(invalid("write one checkpoint; FROM..TO is for list, show, diff and revert"));
        }
        if let Some(rest) = word.strip_prefix("before:") {
            return Self::parse(rest, now).map(|address| Self::Before(Box::new(address)));
        }
        if let Some((of, number)) = split_steps(word) {
            let steps = if number.is_empty() { Ok(1) } else { number.parse() };
            let steps = steps.map_err(|_| invalid("the number after ~ is too large"))?;
            return Self::parse(of, now).map(|of| Self::Back { of: Box::new(of), steps });
        }
        if word.starts_with('@') {
            return if word == "@" { Ok(Self::Current) } else { Err(invalid("write @, or @~N where N is a number")) };
        }
        if word == "latest" {
            return Ok(Self::Latest);
        }
        if let Some(number) = word.strip_prefix("step:") {
            return number.parse().map(Self::Step).map_err(|_| invalid("write a number after step:"));
        }
        if let Some(number) = word.strip_prefix(TURN) {
            return number.parse().map(Self::Turn).map_err(|_| invalid("write the number of a prompt after turn:"));
        }
        if let Some(commit) = word.strip_prefix("commit:") {
            let expected = "write a commit id after commit:, or at least its first four characters";
            let is_id = commit.len() >= SHORTEST_PREFIX && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            return is_id.then(|| Self::Commit(commit.to_ascii_lowercase())).ok_or_else(|| invalid(expected));
        }
        if let Some(text) = word.strip_prefix("ago:") {
            let expected = "write a duration after ago:, such as ago:20m, ago:36h or ago:7d";
            let expected = if is_beyond_range(text) { OUT_OF_RANGE } else { expected };
            return parse_duration(text).map(Self::Ago).map_err(|_| invalid(expected));
        }
        if let Some(text) = word.strip_prefix("at:") {
            let expected = "write a time after at:, such as at:14:30, \"at:yesterday 12:31\", at:2026-11-15 or at:2026-11-15T14:30";
            return parse_until(text, now).map(Self::At).ok_or_else(|| invalid(expected));
        }
        Ok(Self::Word(word.to_owned()))
    }
}

/// The start of the address of a prompt.
const TURN: &str = "turn:";

/// Splits `ID~N` into `ID` and `N`. `N` consists of digits, or is empty. Returns `None` for any other word.
fn split_steps(word: &str) -> Option<(&str, &str)> {
    word.rsplit_once('~').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a word has a form that names could have in earlier versions: `turn:N`, `ID~N` or `FROM..TO`. A
/// checkpoint with exactly this name is still found by it.
fn was_possible_name(word: &str) -> bool {
    word.starts_with(TURN) || split_steps(word).is_some() || split_range(word).is_some()
}

/// Prefixes that no name may have: each starts another kind of address.
const NO_NAME_STARTS_WITH: [&str; 8] = ["@", "-", "step:", TURN, "commit:", "before:", "ago:", "at:"];

/// The rule that [`validate_name`] checks, in words.
pub const RULE_OF_NAMES: &str = "a name can't be empty, `latest`, an id or a range such as a..b, can't end with ~ or ~1, \
                                 and can't start with any of @ - step: turn: commit: before: ago: at:";

/// Returns an error for a name that would be read as another address.
pub fn validate_name(name: &str) -> Result<()> {
    let is_id = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = NO_NAME_STARTS_WITH.iter().any(|start| name.starts_with(start)) || was_possible_name(name);
    if name.is_empty() || name == "latest" || is_id || is_address {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: &str) -> Result<Address, InvalidAddress> {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        Address::parse(word, &now)
    }

    #[test]
    fn every_shape_of_word() {
        let back = |of, steps| Address::Back { of: Box::new(of), steps };
        assert_eq!(parse("@"), Ok(Address::Current));
        assert_eq!(parse("@~"), Ok(back(Address::Current, 1)));
        assert_eq!(parse("@~3"), Ok(back(Address::Current, 3)));
        assert_eq!(parse("abcd~2"), Ok(back(Address::Word("abcd".into()), 2)));
        assert_eq!(parse("turn:4~2~"), Ok(back(back(Address::Turn(4), 2), 1)));
        assert_eq!(parse("before:@~2"), Ok(Address::Before(Box::new(back(Address::Current, 2)))));
        assert_eq!(parse("a~b"), Ok(Address::Word("a~b".into())));
        assert_eq!(parse("wait..."), Ok(Address::Word("wait...".into())));
        assert_eq!(parse("step:5"), Ok(Address::Step(5)));
        assert_eq!(parse("commit:ABCD12"), Ok(Address::Commit("abcd12".into())));
        assert_eq!(parse("before:@"), Ok(Address::Before(Box::new(Address::Current))));
        assert_eq!(parse("ago:20m"), Ok(Address::Ago(Duration::from_secs(1200))));
        assert_eq!(parse("at:14:30"), Ok(Address::At("2026-11-15T13:30:59.999Z".parse().unwrap())));
        assert_eq!(parse("abcd"), Ok(Address::Word("abcd".into())));
        for bad in [
            "",
            "-x",
            "@x",
            "@~x",
            "~1",
            "a~99999999999999999999",
            "step:x",
            "turn:",
            "turn:x",
            "a..b",
            "commit:",
            "commit:abc",
            "commit:main",
            "before:",
            "ago:soon",
            "at:noon",
        ] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn names_that_read_as_something_else_are_refused() {
        let id = "a".repeat(40);
        for bad in [
            "",
            "@",
            "@~1",
            "-x",
            "step:1",
            "turn:1",
            "turn:x",
            "a~1",
            "a~",
            "v1..v2",
            "commit:abcd",
            "before:x",
            "ago:5m",
            "at:14:30",
            "latest",
            &id,
        ] {
            assert!(validate_name(bad).is_err(), "{bad:?} was taken");
        }
        for good in ["x", "before-refactor", "v1.0", "deadbeef", "at", "日本", "a~b", "wait...", "turn"] {
            assert!(validate_name(good).is_ok(), "{good:?} was refused");
        }
        assert!(RULE_OF_NAMES.ends_with(&NO_NAME_STARTS_WITH.join(" ")), "{RULE_OF_NAMES}");
    }
}
