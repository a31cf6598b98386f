//! The condition of a step.

use super::{
    template::Template,
    variables::{Variables, is_no, is_yes},
};

/// Decides whether a step is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A fixed yes or no.
    Fixed(bool),
    /// `{{variable}}` and nothing else: holds if the value is true.
    Variable(String),
    /// A shell command: holds if it succeeds.
    Command(Template),
}

/// The result of a condition.
pub(super) enum Verdict<'c> {
    Known(bool),
    /// The result is not known until this command has run.
    Ask(&'c Template),
}

impl Condition {
    pub(super) fn parse(text: &str) -> Self {
        // `yes` is also a program, which never ends.
        if is_no(text) || is_yes(text) {
            return Self::Fixed(is_yes(text));
        }
        let template = Template::parse(text);
        match template.only_variable() {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::Command(template),
        }
    }

    pub(super) fn variables(&self) -> Vec<&str> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Variable(name) => vec![name],
            Self::Command(template) => template.variables().collect(),
        }
    }

    pub(super) fn judge(&self, variables: &Variables) -> Verdict<'_> {
        match self {
            Self::Fixed(verdict) => Verdict::Known(*verdict),
            Self::Variable(name) => Verdict::Known(variables.is_true(name)),
            Self::Command(template) => Verdict::Ask(template),
        }
    }

    /// Returns the text of the condition. The spelling may differ from the file's.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Fixed(verdict) => verdict.to_string(),
            Self::Variable(name) => format!("{{{{{name}}}}}"),
            Self::Command(template) => template.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_variables_and_commands_are_distinguished() {
        for no in ["", "false", "No", "0", "off"] {
            assert_eq!(Condition::parse(no), Condition::Fixed(false), "{no:?}");
        }
        for yes in ["true", "YES", "1", "on"] {
            assert_eq!(Condition::parse(yes), Condition::Fixed(true), "{yes:?}");
        }
        assert_eq!(Condition::parse("{{ deploy }}"), Condition::Variable("deploy".into()));
        assert!(matches!(Condition::parse("test -n {{deploy}}"), Condition::Command(_)));
        assert!(matches!(Condition::parse("{{a}}{{b}}"), Condition::Command(_)));
    }

    #[test]
    fn a_variable_is_false_if_it_is_empty_unset_or_says_no() {
        let mut variables = Variables::default();
        for (value, expected) in [("no", false), ("0", false), ("", false), ("2", true), ("nope", true)] {
            variables.set("v", value);
            let condition = Condition::parse("{{v}}");
            assert!(matches!(condition.judge(&variables), Verdict::Known(found) if found == expected), "{value:?}");
        }
        assert!(matches!(Condition::parse("{{unset}}").judge(&variables), Verdict::Known(false)));
    }
}
