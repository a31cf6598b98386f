//! Splits a shell line into commands, redirections and words, without running a shell. Nothing is expanded.
//!
//! `shlex` removes the quotes of a word. It knows no operators, and it gives up on a line with an unclosed quote, so
//! the boundaries of words are found here.

use std::{iter::Peekable, str::CharIndices};

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPiece {
    /// A word, without its quotes.
    Word(String),
    /// A redirection to the next word.
    Into,
    /// A redirection from the next word.
    From,
}

/// Splits a line into commands, and each command into pieces.
pub(super) fn commands(line: &str) -> Vec<Vec<WordPiece>> {
    let mut reader = LineReader { line, rest: line.char_indices().peekable(), word: None, commands: vec![Vec::new()] };
    while let Some((at, letter)) = reader.rest.next() {
        reader.take(at, letter);
    }
    reader.end_command(line.len());
    reader.commands.retain(|command| !command.is_empty());
    reader.commands
}

struct LineReader<'l> {
    line: &'l str,
    rest: Peekable<CharIndices<'l>>,
    /// The start of the current word.
    word: Option<usize>,
    commands: Vec<Vec<WordPiece>>,
}

impl LineReader<'_> {
    fn take(&mut self, at: usize, letter: char) {
        match letter {
            // A continued line is no word.
            '\\' => match self.rest.next() {
                Some((_, '\n')) | None => {}
                Some(_) => self.start_word(at),
            },
            ';' | '|' | '&' | '\n' | '(' | ')' | '`' => self.end_command(at),
            '>' | '<' => self.take_arrow(at, letter),
            letter if letter.is_whitespace() => self.end_word(at),
            '\'' | '"' => {
                self.start_word(at);
                self.skip_quoted(at, letter);
            }
            _ => self.start_word(at),
        }
    }

    /// Skips a quoted text. Without a closing quote, the first quote was an apostrophe.
    fn skip_quoted(&mut self, at: usize, quote: char) {
        let Some(length) = end_of_quoted(&self.line[at + 1..], quote) else { return };
        while self.rest.next_if(|(position, _)| *position <= at + 1 + length).is_some() {}
    }

    fn take_arrow(&mut self, at: usize, arrow: char) {
        // The number of a file descriptor.
        self.word = self.word.filter(|start| !self.line[*start..at].bytes().all(|byte| byte.is_ascii_digit()));
        self.end_word(at);
        while self.rest.next_if(|(_, next)| *next == arrow || *next == '|').is_some() {}
        let piece = match self.rest.next_if(|(_, next)| *next == '&') {
            Some(_) if self.rest.peek().is_some_and(|(_, next)| next.is_ascii_digit() || *next == '-') => {
                WordPiece::From
            }
            _ if arrow == '>' => WordPiece::Into,
            _ => WordPiece::From,
        };
        self.put(piece);
    }

    fn start_word(&mut self, at: usize) {
        self.word.get_or_insert(at);
    }

    fn end_word(&mut self, at: usize) {
        if let Some(start) = self.word.take() {
            self.put(WordPiece::Word(without_quotes(&self.line[start..at])));
        }
    }

    fn end_command(&mut self, at: usize) {
        self.end_word(at);
        self.commands.push(Vec::new());
    }

    fn put(&mut self, piece: WordPiece) {
        if let Some(command) = self.commands.last_mut() {
            command.push(piece);
        }
    }
}

/// Returns the length up to the closing quote, or `None` if there is no closing quote.
fn end_of_quoted(inside: &str, quote: char) -> Option<usize> {
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => drop(letters.next()),
            letter if letter == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// Removes the quotes of a word. A word that `shlex` can't read, such as `it's`, is returned as it is.
fn without_quotes(word: &str) -> String {
    // `$'…'` and `$"…"` are treated like plain quotes.
    let plain = word.strip_prefix('$').filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(word);
    match shlex::split(plain) {
        Some(words) if words.len() == 1 => words.concat(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<String> {
        let show = |piece: &WordPiece| match piece {
            WordPiece::Word(word) => format!("[{word}]"),
            WordPiece::Into => ">".to_owned(),
            WordPiece::From => "<".to_owned(),
        };
        commands(line).iter().map(|command| command.iter().map(show).collect()).collect()
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        assert_eq!(shown("rm 'my file' \"b c\"d e\\ f ''"), ["[rm][my file][b cd][e f][]"]);
        assert_eq!(shown(r#"echo "a \"b\" \n \$x" $'c d' '\'"#), [r#"[echo][a "b" \n $x][c d][\]"#]);
        assert_eq!(shown("a;b && c | d\ne & (f) \\\n g"), ["[a]", "[b]", "[c]", "[d]", "[e]", "[f]", "[g]"]);
        assert_eq!(shown("a 2>b 2>&1 >>c >|d <e 'x>y' 3"), ["[a]>[b]<[1]>[c]>[d]<[e][x>y][3]"]);
        assert_eq!(shown("a &> 'b c'"), ["[a]", ">[b c]"]);
        assert_eq!(shown("rm 'a$' $b ''>c #d"), ["[rm][a$][$b][]>[c][#d]"]);
        assert_eq!(shown("echo it's; rm x"), ["[echo][it's]", "[rm][x]"]);
        assert_eq!(shown("ä 'ö ü'ß \\"), ["[ä][ö üß]"]);
        assert_eq!(shown(" \n;; "), [""; 0]);
    }
}
