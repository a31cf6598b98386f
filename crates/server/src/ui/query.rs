//! The parameters of a request.

use backtrail::{CheckpointId, Workspace};
use jiff::Zoned;
use percent_encoding::percent_decode_str;

use crate::{access, failure::Failure, tools::count};

/// The maximum length of a query.
const MAX_QUERY_BYTES: usize = 16_000;

/// The parameters of a `GET` request, as names and values.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part of an address behind the question mark.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        access::limited("the query", text, MAX_QUERY_BYTES)?;
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8().map(|text| text.into_owned());
            decoded.map_err(|_| Failure::usage("the query is not UTF-8"))
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        });
        Ok(Self(pairs.collect::<Result<_, Failure>>()?))
    }

    /// Returns the value of a parameter. Returns `None` if it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns all values of a parameter that may occur several times.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        let fitting = self.0.iter().filter(|(known, value)| known == name && !value.is_empty());
        fitting.map(|(_, value)| value.clone()).collect()
    }

    /// Returns a number from 1 to `most`, or the usual one if the parameter is missing.
    pub(super) fn count(&self, name: &str, usual: usize, most: usize) -> Result<usize, Failure> {
        count(name, self.number(name)?, usual, most)
    }

    /// Returns a number. Returns `None` if the parameter is missing.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let parsed = |text: &str| text.parse().map_err(|_| Failure::usage(format!("{name} is not a number: {text:?}")));
        self.get(name).map(parsed).transpose()
    }

    /// Resolves the address of a checkpoint. Returns `None` if the parameter is missing.
    pub(super) fn checkpoint(
        &self,
        name: &str,
        workspace: &Workspace,
        now: &Zoned,
    ) -> Result<Option<CheckpointId>, Failure> {
        self.get(name).map(|word| access::checkpoint(workspace, word, now)).transpose()
    }

    /// Returns a parameter that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).ok_or_else(|| Failure::usage(format!("the parameter {name} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let query = Query::parse("path=a%20b%26c&grep=x+y&limit=&limit=3&flag").unwrap();
        assert_eq!((query.get("path"), query.get("grep")), (Some("a b&c"), Some("x y")));
        assert_eq!((query.get("limit"), query.all("limit")), (None, vec!["3".to_owned()]));
        assert_eq!((query.get("flag"), query.get("other")), (None, None));
        assert!(Query::parse("path=%ff").is_err());
        assert!(Query::parse(&"x".repeat(20_000)).is_err());
        assert!(Query::parse("limit=-1").unwrap().count("limit", 5, 10).is_err());
    }
}
