//! Completion for bash, which splits words at `@` and `:`, shows no descriptions and quotes nothing.

use std::{ffi::OsString, io, os::unix::ffi::OsStrExt};

use clap_complete::engine::CompletionCandidate;

use crate::output::{columns, cut, pad};

/// The script that bash loads. It passes the line up to the cursor, the type of completion, and the word break
/// characters.
pub(super) const SCRIPT: &str = r#"_backtrail_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(BACKTRAIL_COMPLETE=bash backtrail -- "${COMP_LINE:0:COMP_POINT}" "$COMP_TYPE" "$COMP_WORDBREAKS" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _backtrail_complete backtrail 2>/dev/null || complete -F _backtrail_complete backtrail
"#;

/// The maximum length of a description.
const MAX_HELP: usize = 60;

/// Answers the script. Calls `complete` with the words up to the cursor.
pub(super) fn answer(
    words: &[OsString],
    complete: impl FnOnce(&[OsString]) -> io::Result<Vec<CompletionCandidate>>,
) -> io::Result<Vec<u8>> {
    let [line, sort, breaks] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
    let typed = Typed::read(line.as_bytes(), breaks.as_bytes());
    let words: Vec<OsString> =
        typed.words.iter().map(|word| OsString::from(String::from_utf8_lossy(word).as_ref())).collect();
    let candidates = complete(&words)?;
    // If bash lists the alternatives instead of inserting one, there is room for descriptions.
    let is_list = sort == "63" || sort == "33";
    let with_help = is_list && candidates.len() > 1;
    let values: Vec<String> = candidates.iter().map(|candidate| typed.rest_of(candidate)).collect();
    let width = values.iter().map(|value| columns(value)).max().unwrap_or(0);
    let mut out = String::new();
    for (candidate, value) in candidates.iter().zip(&values) {
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        match help.lines().next().filter(|help| with_help && !help.is_empty()) {
            Some(help) => out.push_str(&format!("{}  ({})", pad(value, width), cut(help, MAX_HELP))),
            None => out.push_str(value),
        }
        out.push('\n');
    }
    Ok(out.into_bytes())
}

/// A parsed command line up to the cursor. `shlex` does not tell which quote is open, nor where a word breaks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Typed {
    /// The words without their quotes. The last one is being typed.
    words: Vec<Vec<u8>>,
    /// The length of the prefix of the last word that bash keeps: the part before the last word break.
    kept: usize,
    /// The quote that is still open.
    quote: Option<u8>,
}

impl Typed {
    fn read(line: &[u8], breaks: &[u8]) -> Self {
        let mut typed = Self { words: vec![Vec::new()], ..Self::default() };
        let mut is_between = true;
        let mut bytes = line.iter().copied();
        while let Some(byte) = bytes.next() {
            let word = typed.words.last_mut().map_or(0, |word| word.len());
            match (typed.quote, byte) {
                (Some(quote), _) if byte == quote => typed.quote = None,
                (Some(b'"') | None, b'\\') => typed.push(bytes.next().unwrap_or_default()),
                (Some(_), _) => typed.push(byte),
                (None, b'\'' | b'"') => {
                    typed.quote = Some(byte);
                    typed.kept = word;
                }
                (None, b' ' | b'\t' | b'\n') => {
                    if !is_between {
                        typed.words.push(Vec::new());
                        typed.kept = 0;
                    }
                    is_between = true;
                    continue;
                }
                (None, _) => {
                    typed.push(byte);
                    if breaks.contains(&byte) {
                        // This one belongs to the text after it, because bash completes host names like that.
                        typed.kept = if byte == b'@' { word } else { word + 1 };
                    }
                }
            }
            is_between = false;
        }
        typed
    }

    fn push(&mut self, byte: u8) {
        if let Some(word) = self.words.last_mut() {
            word.push(byte);
        }
    }

    /// Returns the text that replaces the part of the word after the last word break.
    fn rest_of(&self, candidate: &CompletionCandidate) -> String {
        let value = candidate.get_value().to_string_lossy();
        let rest = value.get(self.kept..).unwrap_or(&value);
        if self.quote.is_some() { rest.to_owned() } else { escaped(rest) }
    }
}

/// Adds a backslash before characters that are special to a shell.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@~+,%^".contains(c) || !c.is_ascii();
    text.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKS: &[u8] = b" \t\n\"'@><=;|&(:";

    fn read(line: &str) -> (Vec<String>, usize, Option<char>) {
        let typed = Typed::read(line.as_bytes(), BREAKS);
        let words = typed.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        (words, typed.kept, typed.quote.map(char::from))
    }

    #[test]
    fn lines_are_split_as_a_shell_splits_them() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(read("backtrail  restore "), (words(&["backtrail", "restore", ""]), 0, None));
        assert_eq!(read("backtrail restore @~"), (words(&["backtrail", "restore", "@~"]), 0, None));
        assert_eq!(read("b show before:3f"), (words(&["b", "show", "before:3f"]), 7, None));
        assert_eq!(read(r"b cat @ my\ fi"), (words(&["b", "cat", "@", "my fi"]), 0, None));
        assert_eq!(read("b cat @ 'my fi"), (words(&["b", "cat", "@", "my fi"]), 0, Some('\'')));
        assert_eq!(read("b cat @ src/\"my fi"), (words(&["b", "cat", "@", "src/my fi"]), 4, Some('"')));
    }

    #[test]
    fn the_inserted_text_fits_the_text_that_bash_replaces() {
        let rest =
            |line: &str, value: &str| Typed::read(line.as_bytes(), BREAKS).rest_of(&CompletionCandidate::new(value));
        assert_eq!(rest("b show @~", "@~1"), "@~1");
        assert_eq!(rest("b show before:@", "before:@~1"), "@~1");
        assert_eq!(rest("b show before:3", "before:3f9c2a1b"), "3f9c2a1b");
        assert_eq!(rest("b cat @ my", "my file's"), r"my\ file\'s");
        assert_eq!(rest("b cat @ 'my", "my file"), "my file");
    }
}
