//! Splits a shell command into words without running a shell. Nothing is expanded.

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
    let mut reader = WordReader { line, rest: line.char_indices().peekable(), word: None, commands: vec![Vec::new()] };
    while let Some((at, letter)) = reader.rest.next() {
        reader.take(at, letter);
    }
    reader.end_command();
    reader.commands.retain(|command| !command.is_empty());
    reader.commands
}

struct WordReader<'l> {
    line: &'l str,
    rest: Peekable<CharIndices<'l>>,
    /// The current word. `Some("")` after a pair of empty quotes, which are a word as well.
    word: Option<String>,
    commands: Vec<Vec<WordPiece>>,
}

impl WordReader<'_> {
    fn take(&mut self, at: usize, letter: char) {
        match letter {
            '\'' | '"' => self.take_quoted(at, letter),
            '\\' => match self.rest.next() {
                // A continued line.
                Some((_, '\n')) | None => {}
                Some((_, escaped)) => self.push(escaped),
            },
            // `$'…'` and `$"…"` are treated like plain quotes.
            '$' if self.rest.peek().is_some_and(|(_, next)| ['\'', '"'].contains(next)) => {}
            ';' | '|' | '&' | '\n' | '(' | ')' | '`' => self.end_command(),
            '>' | '<' => self.take_arrow(letter),
            letter if letter.is_whitespace() => self.end_word(),
            letter => self.push(letter),
        }
    }

    fn take_quoted(&mut self, at: usize, quote: char) {
        let inside = &self.line[at + 1..];
        let Some(length) = end_of_quoted(inside, quote) else { return self.push(quote) };
        let word = self.word.get_or_insert_default();
        let mut letters = inside[..length].chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' if quote == '"' => match letters.next() {
                    Some('\n') | None => {}
                    Some(escaped) if ['"', '\\', '$', '`'].contains(&escaped) => word.push(escaped),
                    Some(other) => word.extend(['\\', other]),
                },
                letter => word.push(letter),
            }
        }
        while self.rest.next_if(|(position, _)| *position <= at + 1 + length).is_some() {}
    }

    fn take_arrow(&mut self, arrow: char) {
        // The number of a file descriptor.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
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

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.put(WordPiece::Word(word));
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.commands.push(Vec::new());
    }

    fn put(&mut self, piece: WordPiece) {
        if let Some(command) = self.commands.last_mut() {
            command.push(piece);
        }
    }
}

/// Returns the length up to the closing quote. Returns `None` if there is no closing quote: then the first quote was an
/// apostrophe.
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
        assert_eq!(shown("echo it's; rm x"), ["[echo][it's]", "[rm][x]"]);
        assert_eq!(shown("ä 'ö ü'ß \\"), ["[ä][ö üß]"]);
        assert_eq!(shown(" \n;; "), [""; 0]);
    }
}
