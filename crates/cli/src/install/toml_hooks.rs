//! Adds hooks to TOML as tables at the end of the file, and removes them again. Everything else is preserved.

use toml_edit::{DocumentMut, Item};

use super::{json::EditProblem, text_edits::Draft, toml::parse};

/// Hooks in `[[hooks]]`, one for each event, that start the same command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TomlHooks {
    pub(crate) events: &'static [&'static str],
    pub(crate) command: String,
    /// The time after which the agent stops waiting.
    pub(crate) seconds: u64,
}

/// The key of the list of hooks.
const HOOKS: &str = "hooks";

impl TomlHooks {
    /// Returns whether the text has exactly these hooks, among others.
    pub(crate) fn are_in(&self, text: &str) -> Result<bool, EditProblem> {
        let document = parse(text)?;
        let commands = |event: &str| {
            let found = tables(&document).filter(|hook| hook.get("event").and_then(Item::as_str) == Some(event));
            let mine = found.filter(|hook| hook.get("command").and_then(Item::as_str) == Some(&self.command));
            mine.count()
        };
        Ok(self.events.iter().all(|event| commands(event) == 1))
    }

    /// Adds the hooks, which must not exist yet.
    pub(crate) fn add(&self, draft: &mut Draft) -> Result<(), EditProblem> {
        parse(draft.text())?;
        let text = draft.text();
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let apart = match text {
            "" => "",
            text if text.ends_with('\n') => newline,
            _ => &format!("{newline}{newline}"),
        };
        let hooks: Vec<String> = self.events.iter().map(|event| self.table(event)).collect();
        let piece = format!("{apart}{}", hooks.join("\n").replace('\n', newline));
        // The list may be an array of another notation, which can't be extended at the end.
        if parse(&format!("{text}{piece}")).is_err() {
            return Err(EditProblem(format!("hooks can't be added to \"{HOOKS}\": write it as [[{HOOKS}]] tables")));
        }
        draft.insert(text.len(), &piece);
        Ok(())
    }

    fn table(&self, event: &str) -> String {
        let command = toml_edit::Value::from(self.command.as_str());
        format!("[[{HOOKS}]]\nevent = \"{event}\"\ncommand = {command}\ntimeout = {}\n", self.seconds)
    }
}

fn tables(document: &DocumentMut) -> impl Iterator<Item = &toml_edit::Table> {
    document.get(HOOKS).and_then(Item::as_array_of_tables).into_iter().flatten()
}

/// Removes the hooks whose command fits, and the list if it becomes empty.
pub(crate) fn take_out(text: &str, is_ours: impl Fn(&str) -> bool) -> Result<String, EditProblem> {
    let mut document = parse(text)?;
    let is_ours = |hook: &toml_edit::Table| hook.get("command").and_then(Item::as_str).is_some_and(&is_ours);
    if !tables(&document).any(is_ours) {
        return Ok(text.to_owned());
    }
    if let Some(hooks) = document.get_mut(HOOKS).and_then(Item::as_array_of_tables_mut) {
        hooks.retain(|hook| !is_ours(hook));
        if hooks.is_empty() {
            document.remove(HOOKS);
        }
    }
    // The parser writes plain newlines. If the text had CRLF line endings, they are restored in every line.
    let cleaned = document.to_string();
    Ok(if text.contains("\r\n") { cleaned.replace("\r\n", "\n").replace('\n', "\r\n") } else { cleaned })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks() -> TomlHooks {
        TomlHooks { events: &["SessionStart", "Stop"], command: "/b/backtrail hook kimi".into(), seconds: 20 }
    }

    #[test]
    fn hooks_are_added_and_removed_without_touching_the_rest() {
        for text in ["", "# mine\na = 1\n", "a = 1", "a = 1\r\n", "[[hooks]]\nevent = \"Stop\"\ncommand = \"mine\"\n"] {
            let mut draft = Draft::of(text);
            hooks().add(&mut draft).unwrap();
            assert!(draft.text().starts_with(text) && hooks().are_in(draft.text()).unwrap(), "{}", draft.text());
            assert!(!hooks().are_in(text).unwrap());
            let cleaned = take_out(draft.text(), |command| command.contains("backtrail")).unwrap();
            assert_eq!(cleaned.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn a_list_of_another_notation_is_refused() {
        let mut draft = Draft::of("hooks = []\n");
        assert!(hooks().add(&mut draft).is_err());
        assert_eq!(draft.text(), "hooks = []\n");
    }
}
