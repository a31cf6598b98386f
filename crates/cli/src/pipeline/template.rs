//! Text with `{{variable}}` placeholders.

use super::variables::{Variables, is_variable_name};

/// A parsed text with `{{variable}}` placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<TemplatePiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Variable(String),
}

/// The quotes around a placeholder in a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
    /// A comment, up to the end of the line.
    Comment,
}

/// Returns the environment variable that passes a value to a shell.
pub(super) fn carrier(name: &str) -> String {
    format!("BACKTRAIL_VAR_{name}")
}

impl Template {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let behind = &rest[start + 2..];
            let name = behind.find("}}").map(|end| (behind[..end].trim(), &behind[end + 2..]));
            match name.filter(|(name, _)| is_variable_name(name)) {
                Some((name, after)) => {
                    plain.push_str(&rest[..start]);
                    pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
                    pieces.push(TemplatePiece::Variable(name.to_owned()));
                    rest = after;
                }
                // Braces of another tool.
                None => {
                    plain.push_str(&rest[..start + 1]);
                    rest = &rest[start + 1..];
                }
            }
        }
        plain.push_str(rest);
        pieces.push(TemplatePiece::Text(plain));
        pieces.retain(|piece| *piece != TemplatePiece::Text(String::new()));
        Self(pieces)
    }

    /// Returns the names of the variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePiece::Variable(name) => Some(name.as_str()),
            TemplatePiece::Text(_) => None,
        })
    }

    /// Returns the variable's name if the text is a single placeholder.
    pub(super) fn only_variable(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePiece::Variable(name)] => Some(name),
            [TemplatePiece::Variable(name), TemplatePiece::Text(rest)] if rest.trim().is_empty() => Some(name),
            _ => None,
        }
    }

    /// Returns the text with the values filled in.
    pub(super) fn to_text(&self, variables: &Variables) -> String {
        let piece = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Variable(name) => variables.get(name).to_owned(),
        };
        self.0.iter().map(piece).collect()
    }

    /// Returns the text for a shell. Each variable is one word there, or a part of the quoted word around it.
    ///
    /// The text does not contain the values: they are passed in the environment, so that no value can be run as a
    /// command.
    pub(super) fn to_shell(&self) -> String {
        let mut out = String::new();
        let mut position = Position { quotes: Quotes::None, before: ' ' };
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => {
                    position = position.after(text);
                    out.push_str(text);
                }
                TemplatePiece::Variable(name) => {
                    let value = format!("${{{}}}", carrier(name));
                    out.push_str(&match position.quotes {
                        Quotes::None => format!("\"{value}\""),
                        Quotes::Double | Quotes::Comment => value,
                        Quotes::Single => format!("'\"{value}\"'"),
                    });
                    // A value is a part of a word: a `#` right behind it starts no comment.
                    position.before = '"';
                }
            }
        }
        out
    }

    /// Returns the text with its placeholders.
    pub(crate) fn source(&self) -> String {
        let piece = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Variable(name) => format!("{{{{{name}}}}}"),
        };
        self.0.iter().map(piece).collect()
    }
}

/// A position in the text of a template, as the shell sees it.
#[derive(Clone, Copy)]
struct Position {
    quotes: Quotes,
    /// The last character.
    before: char,
}

impl Position {
    /// Returns the position behind a text.
    fn after(self, text: &str) -> Self {
        let Self { mut quotes, mut before } = self;
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            let starts_word = before.is_whitespace() || ";&|(".contains(before);
            quotes = match (quotes, c) {
                (Quotes::None | Quotes::Double, '\\') => {
                    characters.next();
                    quotes
                }
                (Quotes::None, '#') if starts_word => Quotes::Comment,
                (Quotes::Comment, '\n') => Quotes::None,
                (Quotes::None, '\'') => Quotes::Single,
                (Quotes::None, '"') => Quotes::Double,
                (Quotes::Single, '\'') | (Quotes::Double, '"') => Quotes::None,
                _ => quotes,
            };
            before = c;
        }
        Self { quotes, before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> String {
        Template::parse(text).to_shell().replace("BACKTRAIL_VAR_", "")
    }

    #[test]
    fn variables_are_found_and_other_braces_are_kept() {
        let names = |text: &str| Template::parse(text).variables().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("{{a}} {{ b_1 }}{{a}}"), ["a", "b_1", "a"]);
        for other in ["{{.State}}", "{{ json . }}", "{{", "{{}}", "{a}", "}}", "{{a b}}", "{{1a}}", "${{a"] {
            assert_eq!(names(other), [""; 0], "{other}");
            assert_eq!(Template::parse(other).source(), other);
        }
        assert_eq!(names("{{{a}}"), ["a"]);
    }

    #[test]
    fn a_value_is_one_word_in_every_kind_of_quotes() {
        assert_eq!(shell("echo {{w}}"), r#"echo "${w}""#);
        assert_eq!(shell("echo pre{{w}}post"), r#"echo pre"${w}"post"#);
        assert_eq!(shell(r#"echo "a {{w}} b""#), r#"echo "a ${w} b""#);
        assert_eq!(shell("echo 'a {{w}} b'"), r#"echo 'a '"${w}"' b'"#);
        assert_eq!(shell(r#"echo \"{{w}}"#), r#"echo \""${w}""#);
        assert_eq!(shell("true # it's\necho {{w}}"), "true # it's\necho \"${w}\"");
        assert_eq!(shell("echo a#'{{w}}'"), r#"echo a#''"${w}"''"#);
        // A comment continues after a variable in it.
        assert_eq!(shell("# keep {{w}}'s value\necho {{w}}"), "# keep ${w}'s value\necho \"${w}\"");
        assert_eq!(shell("echo {{w}}#'{{w}}'"), r##"echo "${w}"#''"${w}"''"##);
    }
}
