//! A text that only grows, and knows which of its bytes are new.

use serde::{Deserialize, Serialize};

/// A run of bytes that was added to a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Where it begins in the text that has all pieces.
    pub(crate) at: usize,
    /// What was added.
    pub(crate) text: String,
}

/// A text under change: everything that was there stays, in its order.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: String,
    is_new: Vec<bool>,
}

impl Draft {
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), is_new: vec![false; text.len()] }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds a piece in front of the byte at this place.
    pub(crate) fn insert(&mut self, at: usize, piece: &str) {
        self.text.insert_str(at, piece);
        self.is_new.splice(at..at, std::iter::repeat_n(true, piece.len()));
    }

    /// What was added, in order.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < self.is_new.len() {
            let length = self.is_new[at..].iter().take_while(|is_new| **is_new == self.is_new[at]).count();
            if self.is_new[at] {
                pieces.push(Piece { at, text: self.text[at..at + length].to_owned() });
            }
            at += length;
        }
        pieces
    }
}

/// The text without its pieces, each at the very place where it was added; none where one is not there.
pub(crate) fn without_pieces(text: &str, pieces: &[Piece]) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for piece in pieces {
        let end = piece.at.checked_add(piece.text.len())?;
        if text.get(piece.at..end)? != piece.text {
            return None;
        }
        out.push_str(text.get(done..piece.at)?);
        done = end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// The text without its pieces, wherever they stand by now; none where one is gone, or is there twice.
pub(crate) fn without_moved_pieces(text: &str, pieces: &[Piece]) -> Option<String> {
    let mut text = text.to_owned();
    let mut from = 0;
    for piece in pieces {
        let found: Vec<usize> = text[from..].match_indices(&piece.text).map(|(at, _)| from + at).take(2).collect();
        let [at] = found[..] else { return None };
        text.replace_range(at..at + piece.text.len(), "");
        from = at;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_out_where_they_were_put_in() {
        let mut draft = Draft::of("a{}b");
        draft.insert(2, "xy");
        draft.insert(3, "--");
        draft.insert(0, ">");
        assert_eq!(draft.text(), ">a{x--y}b");
        let pieces = draft.pieces();
        assert_eq!(pieces.len(), 2);
        assert_eq!(without_pieces(draft.text(), &pieces).as_deref(), Some("a{}b"));
        assert_eq!(without_pieces("a{x--y}b", &pieces), None);
        assert_eq!(without_moved_pieces("..>a{x--y}b.", &pieces).as_deref(), Some("..a{}b."));
        assert_eq!(without_moved_pieces(">x--yx--y", &pieces).as_deref(), None);
    }
}
