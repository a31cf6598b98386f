//! The schema of a pipeline file.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Deserializer, de};
use serde_saphyr::{Localizer, Location, Spanned, UserMessageFormatter};

use super::problem::{PipelineProblem, Result};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PipelineFile {
    pub(super) name: Option<String>,
    pub(super) agent: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Spanned<Option<String>>>,
    #[serde(default)]
    pub(super) checkpoints: CheckpointsSection,
    pub(super) steps: Spanned<Vec<Spanned<StepSection>>>,
}

/// `checkpoints`: the checkpoints before steps.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointsSection {
    pub(super) enabled: Option<bool>,
    pub(super) every_n_steps: Option<Spanned<u64>>,
}

/// An entry of `steps`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepSection {
    pub(super) name: Option<Spanned<String>>,
    pub(super) run: Option<Spanned<String>>,
    pub(super) prompt: Option<Spanned<String>>,
    pub(super) agent: Option<Spanned<String>>,
    pub(super) model: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) checkpoint: bool,
    pub(super) condition: Option<Spanned<Option<String>>>,
    pub(super) output_var: Option<Spanned<String>>,
    pub(super) checks: Option<Spanned<Checks>>,
    pub(super) timeout: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) on_failure: OnFailureWord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailureWord {
    #[default]
    Stop,
    Continue,
    Rollback,
}

/// One command, or several.
#[derive(Debug, Default)]
pub(super) struct Checks(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Checks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Checks;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a command or a list of commands")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Checks, E> {
                Ok(Checks(vec![text.to_owned()]))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Checks, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element()? {
                    found.push(item);
                }
                Ok(Checks(found))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl PipelineFile {
    pub(super) fn parse(text: &str) -> Result<Self> {
        serde_saphyr::from_str(text).map_err(|error| problem_in(text, &error))
    }
}

/// Leaves the location out of messages: the problem has the line as a field.
struct WithoutLocation;

impl Localizer for WithoutLocation {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

fn problem_in(text: &str, error: &serde_saphyr::Error) -> PipelineProblem {
    let said = error.without_snippet().render_with_formatter(&UserMessageFormatter.with_localizer(&WithoutLocation));
    let Some(line) = error.location().map(|location| location.line()) else { return PipelineProblem::anywhere(said) };
    let written = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
    let problem = PipelineProblem::at(line, if written.is_empty() { said } else { format!("{said} (in `{written}`)") });
    if written.split_once(": ").is_some_and(|(_, value)| value.starts_with("{{")) {
        return problem.with_hint("a value that begins with {{ needs quotes around it");
    }
    problem
}
