//! The variables of a pipeline and their values.

use std::collections::BTreeMap;

use super::template::carrier;

/// The variables of a pipeline and their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

/// Returns whether this is a valid name for a variable, here and in an environment.
pub(super) fn is_variable_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

impl Variables {
    pub(super) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the value of a variable. Returns an empty text if the step that sets it was not run.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns whether the value is neither empty nor a word for no.
    pub(super) fn is_true(&self, name: &str) -> bool {
        !is_no(self.get(name))
    }

    /// Returns the environment of a command. Each variable has its own name there, and the name that
    /// [`Template`](super::template::Template) uses, which no command changes by accident.
    pub(super) fn environment(&self) -> impl Iterator<Item = (String, &str)> {
        self.0.iter().flat_map(|(name, value)| [(name.clone(), value.as_str()), (carrier(name), value.as_str())])
    }
}

/// Returns whether the text is empty or a word for no.
pub(super) fn is_no(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || ["false", "no", "off", "0"].iter().any(|no| text.eq_ignore_ascii_case(no))
}

/// Returns whether the text is a word for yes.
pub(super) fn is_yes(text: &str) -> bool {
    ["true", "yes", "on", "1"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes))
}
