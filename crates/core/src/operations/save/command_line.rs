//! The command line of a shell step, as a record keeps it: short, and without secrets.

use crate::text::start_of;

/// The maximum size of a recorded command line.
const MAX_BYTES: usize = 1_000;

/// Replaces a secret.
const MASK: &str = "***";

/// Parts of the names of long options whose value is a secret.
const SECRET_OPTIONS: &[&str] = &["password", "passwd", "token", "secret", "api-key", "apikey"];

/// Returns a command line without the values of assignments, tokens in headers, passwords in URLs and values of options
/// for secrets, cut to the maximum size.
pub(super) fn recorded(line: &str) -> String {
    // What follows can't be in the result. The limit leaves room for values that become shorter.
    let line = start_of(line.trim(), 64 * MAX_BYTES);
    let masked = without_secrets(line);
    let start = start_of(&masked, MAX_BYTES);
    if start.len() == masked.len() { masked } else { format!("{}…", start_of(&masked, MAX_BYTES - "…".len())) }
}

fn without_secrets(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        let found = if before.is_alphanumeric() || before == '_' { None } else { secret(rest, before) };
        match found {
            Some((kept, hidden)) => {
                out.push_str(&rest[..kept]);
                out.push_str(MASK);
                rest = &rest[kept + hidden..];
                before = '*';
            }
            None => {
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
                before = letter;
            }
        }
    }
    out
}

/// Returns the length of what stays, and the length of the secret behind it, if a secret starts here.
fn secret(text: &str, before: char) -> Option<(usize, usize)> {
    let (kept, hidden) = assignment(text, before)
        .or_else(|| option(text, before))
        .or_else(|| header(text))
        .or_else(|| url_password(text))?;
    (hidden > 0).then_some((kept, hidden))
}

/// `KEY=value`, where a shell would read an assignment, or a program would.
fn assignment(text: &str, before: char) -> Option<(usize, usize)> {
    let name = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))?;
    let is_name = name > 0 && !text.starts_with(|first: char| first.is_ascii_digit());
    let value = text[name..].strip_prefix("+=").or(text[name..].strip_prefix('='))?;
    if !is_name || before == '-' || before == '$' || before == '.' || value.starts_with('=') {
        return None;
    }
    Some((text.len() - value.len(), value_length(value)))
}

/// `--token=value` or `--token value`.
fn option(text: &str, before: char) -> Option<(usize, usize)> {
    let name = text.strip_prefix("--").filter(|_| before.is_whitespace())?;
    let end = name.find(|letter: char| letter == '=' || letter.is_whitespace())?;
    let word = name[..end].to_ascii_lowercase();
    if !SECRET_OPTIONS.iter().any(|secret| word.contains(secret)) {
        return None;
    }
    let value = name[end..].strip_prefix('=').unwrap_or_else(|| name[end..].trim_start());
    if value.starts_with('-') {
        return None;
    }
    Some((text.len() - value.len(), value_length(value)))
}

/// `Bearer token`, or `Authorization: scheme token`.
fn header(text: &str) -> Option<(usize, usize)> {
    let token = match strip_word(text, "authorization:") {
        Some(rest) => {
            let rest = rest.trim_start();
            let scheme = rest.find(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
            match scheme.filter(|end| rest[*end..].starts_with(' ')) {
                Some(end) => rest[end..].trim_start(),
                None => rest,
            }
        }
        None => strip_word(text, "bearer").filter(|rest| rest.starts_with(char::is_whitespace))?.trim_start(),
    };
    let end = token.find(|letter: char| letter.is_whitespace() || "\"'".contains(letter)).unwrap_or(token.len());
    Some((text.len() - token.len(), end))
}

/// The password in `scheme://user:password@host`.
fn url_password(text: &str) -> Option<(usize, usize)> {
    let place = text.strip_prefix("://")?;
    let end = place.find(|letter: char| letter.is_whitespace() || "/?#\"'".contains(letter)).unwrap_or(place.len());
    let (account, _) = place[..end].rsplit_once('@')?;
    let (user, password) = account.split_once(':')?;
    Some(("://".len() + user.len() + 1, password.len()))
}

fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let start = text.get(..word.len())?;
    start.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// Returns the length of a shell word: up to the first separator outside of quotes and parentheses. A quote that is never
/// closed reaches to the end.
fn value_length(value: &str) -> usize {
    let mut quote = None;
    let mut depth = 0_usize;
    let mut letters = value.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') | (Some('`'), '`') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(letters.next()),
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, _) if depth > 0 => {}
            (None, ';' | '|' | '&' | ')' | '<' | '>') => return at,
            (None, letter) if letter.is_whitespace() => return at,
            (None, _) => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (line, expected) in [
            ("API_KEY=abc cargo test", "API_KEY=*** cargo test"),
            ("export A='b c' B=\"d e\"f; make", "export A=*** B=***; make"),
            ("env X=$(cat 'a b') Y=`id -u` run", "env X=*** Y=*** run"),
            ("docker run -e TOKEN=1 -eT=2 x", "docker run -e TOKEN=*** -eT=2 x"),
            ("sh -c 'KEY=1 x'", "sh -c 'KEY=*** x'"),
            ("curl -H 'Authorization: Bearer ab.cd' u", "curl -H 'Authorization: Bearer ***' u"),
            ("curl -H \"authorization: Basic dXNlcg==\"", "curl -H \"authorization: Basic ***\""),
            ("echo bearer xyz, ok", "echo bearer *** ok"),
            ("git clone https://me:s3@host/x?a=1", "git clone https://me:***@host/x?a=***"),
            ("psql postgres://u:p@q:1@db", "psql postgres://u:***@db"),
            ("gh --token abc --api-key='x y' z", "gh --token *** --api-key=*** z"),
            ("gh --token --verbose", "gh --token --verbose"),
            ("A+=1 B= c", "A+=*** B= c"),
        ] {
            assert_eq!(recorded(line), expected, "{line}");
            assert_eq!(recorded(expected), expected, "again: {line}");
        }
        for plain in [
            "pip install x==1.2",
            "cargo test --features=a",
            "test $a = 1",
            "ls -la src",
            "echo https://host:80/x@y",
            "é=1",
        ] {
            assert_eq!(recorded(plain), plain);
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let cut = recorded(&"é".repeat(900));
        assert!(cut.len() <= MAX_BYTES && cut.ends_with("é…"), "{}", cut.len());
        assert_eq!(recorded(&"x".repeat(MAX_BYTES)).len(), MAX_BYTES);
        let secret = format!("K='{}' run", "s".repeat(5_000));
        assert_eq!(recorded(&secret), "K=*** run");
    }
}
