//! Adding to `[scan] exclude` in the workspace's own settings, with the rest of the file kept as it is.

use std::path::PathBuf;

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::{
    disk::{Dir, FileType, Rename},
    error::{Error, Result, While},
    settings::WORKSPACE_FILE,
    workspace::Workspace,
};

impl Workspace {
    /// Adds ignore patterns; says which file has them, and all that it has now.
    pub fn exclude(&self, patterns: &[String]) -> Result<(PathBuf, Vec<String>)> {
        for pattern in patterns {
            if let Some(problem) = mistake(pattern) {
                return Err(Error::Usage(format!("{pattern:?} leaves nothing out: {problem}")));
            }
        }
        let path = self.root().join(WORKSPACE_FILE);
        let problem = |problem: String| Error::Settings { file: path.clone(), problem };
        let before = self.read_settings_text()?;
        let (after, all) = with_patterns(&before, patterns).map_err(problem)?;
        if after != before {
            self.write_settings_text(&after)?;
        }
        Ok((path, all))
    }

    fn read_settings_text(&self) -> Result<String> {
        let path = self.root().join(WORKSPACE_FILE);
        let directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let name = WORKSPACE_FILE.as_bytes();
        match directory.try_stamp_at(name).or_fail("read", &path)? {
            None => return Ok(String::new()),
            Some(stamp) if FileType::of(&stamp) == FileType::File => {}
            Some(_) => return Err(Error::Settings { file: path, problem: "it is no regular file".into() }),
        }
        let mut text = String::new();
        let read = directory.open_file(name).and_then(|mut file| std::io::Read::read_to_string(&mut file, &mut text));
        read.or_fail("read", path)?;
        Ok(text)
    }

    /// Replaces the file in one step: whoever looks sees the old or the new one.
    fn write_settings_text(&self, text: &str) -> Result<()> {
        let path = self.root().join(WORKSPACE_FILE);
        let directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let (name, temporary) = (WORKSPACE_FILE.as_bytes(), b".backtrail.toml.new");
        let write = || -> std::io::Result<()> {
            if directory.try_stamp_at(temporary)?.is_some() {
                directory.remove_own_file(temporary)?;
            }
            let mut file = directory.create_file(temporary)?;
            directory.write_own(&mut file, text.as_bytes())?;
            let mode = match directory.try_stamp_at(name)? {
                Some(stamp) => crate::model::Mode::from_raw(stamp.mode),
                None => crate::model::Mode(0o644),
            };
            crate::disk::set_mode(&file, mode)?;
            directory.sync_own(&file)?;
            if directory.try_stamp_at(name)?.is_some() {
                directory.rename(temporary, &directory, name, Rename::Exchange)?;
                directory.remove_own_file(temporary)?;
            } else {
                directory.rename(temporary, &directory, name, Rename::NoReplace)?;
            }
            directory.sync()
        };
        write().or_fail("write", path)
    }
}

/// The text with these patterns in it, and all patterns that it has then.
pub(crate) fn with_patterns(before: &str, patterns: &[String]) -> Result<(String, Vec<String>), String> {
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let scan = document.entry("scan").or_insert_with(|| Item::Table(Table::new()));
    let scan = scan.as_table_like_mut().ok_or("[scan] is no table")?;
    let exclude = scan.entry("exclude").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let exclude = exclude.as_array_mut().ok_or("[scan] exclude is no list")?;
    for pattern in patterns {
        if !exclude.iter().any(|value| value.as_str() == Some(pattern)) {
            push(exclude, pattern);
        }
    }
    let all = exclude.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
    Ok((document.to_string(), all))
}

/// A list over several lines gets a line more, any other grows at its end.
fn push(exclude: &mut Array, pattern: &str) {
    let is_on_lines = exclude.iter().last().is_some_and(|last| {
        last.decor().prefix().and_then(|prefix| prefix.as_str()).is_some_and(|prefix| prefix.contains('\n'))
    });
    let mut value = Value::from(pattern);
    if is_on_lines {
        let indent = exclude.iter().last().and_then(|last| last.decor().prefix()?.as_str().map(str::to_owned));
        let indent = indent.unwrap_or_default();
        let line = indent.rsplit('\n').next().unwrap_or_default();
        value.decor_mut().set_prefix(format!("\n{line}"));
        exclude.push_formatted(value);
    } else {
        exclude.push(value);
    }
}

/// Why a pattern could never fit anything in the workspace, as far as that can be told.
fn mistake(pattern: &str) -> Option<&'static str> {
    let pattern = pattern.trim();
    if pattern.starts_with('#') {
        return Some("a line that starts with # is a comment; write \\# for the character");
    }
    if pattern.trim_matches(['!', '/']).is_empty() {
        return Some("it names nothing");
    }
    if pattern.split('/').any(|part| part == "..") {
        return Some("no path in the workspace has .. in it");
    }
    let mut escaped = false;
    let mut open = false;
    for c in pattern.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => open = true,
            ']' => open = false,
            _ => {}
        }
    }
    open.then_some("its [ has no ]; write \\[ for the character")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_never_fit_are_known() {
        for bad in ["[", "a[b", "[a-", "../x", "x/../y", "/", "!", "!/", "# note"] {
            assert!(mistake(bad).is_some(), "{bad:?} was taken");
        }
        for good in ["*.log", "data/", "[ab].txt", "\\[", "a..b", "..hidden", "/top", "!keep", "**/x", "\\#x"] {
            assert!(mistake(good).is_none(), "{good:?} was refused");
        }
    }
}
