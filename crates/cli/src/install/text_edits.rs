//! A text that is being edited. Records which of its bytes are new, and which text they replaced.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

/// A run of bytes that was added to a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddedText {
    /// The offset in the text that contains all pieces.
    pub(crate) at: usize,
    /// The added text.
    pub(crate) text: String,
    /// The text that was replaced. Empty for an insertion.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) replaced: String,
}

/// A text that is being edited. Bytes that are not replaced stay, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: String,
    is_new: Vec<bool>,
    /// The replaced texts, by the offset of the new bytes.
    replaced: BTreeMap<usize, String>,
}

impl Draft {
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), is_new: vec![false; text.len()], replaced: BTreeMap::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts a piece before the byte at this offset.
    pub(crate) fn insert(&mut self, at: usize, piece: &str) {
        self.put(at..at, piece);
    }

    /// Replaces bytes of the original text with a piece.
    pub(crate) fn replace(&mut self, range: Range<usize>, piece: &str) {
        debug_assert!(!piece.is_empty() && !self.is_new[range.clone()].contains(&true));
        let (at, old) = (range.start, self.text[range.clone()].to_owned());
        self.put(range, piece);
        self.replaced.insert(at, old);
    }

    fn put(&mut self, range: Range<usize>, piece: &str) {
        let behind = self.replaced.split_off(&range.start);
        self.replaced.extend(behind.into_iter().map(|(at, old)| (at + piece.len() - range.len(), old)));
        self.text.replace_range(range.clone(), piece);
        self.is_new.splice(range, std::iter::repeat_n(true, piece.len()));
    }

    /// Returns the added pieces, in order.
    pub(crate) fn pieces(&self) -> Vec<AddedText> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < self.is_new.len() {
            let length = self.is_new[at..].iter().take_while(|is_new| **is_new == self.is_new[at]).count();
            if self.is_new[at] {
                let replaced = self.replaced.range(at..at + length).map(|(_, old)| old.as_str()).collect();
                pieces.push(AddedText { at, text: self.text[at..at + length].to_owned(), replaced });
            }
            at += length;
        }
        pieces
    }
}

/// Undoes replacements in these ranges, if a piece of the receipt is still there.
pub(crate) fn with_replaced(text: &str, mut places: Vec<Range<usize>>, pieces: &[AddedText]) -> String {
    let mut out = text.to_owned();
    places.sort_by_key(|range| range.start);
    for range in places.into_iter().rev() {
        let known =
            pieces.iter().find(|piece| !piece.replaced.is_empty() && text.get(range.clone()) == Some(&piece.text));
        if let Some(piece) = known {
            out.replace_range(range, &piece.replaced);
        }
    }
    out
}

/// Removes the pieces, each at the exact offset where it was added. Returns `None` if one is missing there.
pub(crate) fn without_pieces(text: &str, pieces: &[AddedText]) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for piece in pieces {
        let end = piece.at.checked_add(piece.text.len())?;
        if text.get(piece.at..end)? != piece.text {
            return None;
        }
        out.push_str(text.get(done..piece.at)?);
        out.push_str(&piece.replaced);
        done = end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Removes the pieces at any offset. Returns `None` if one is missing or occurs twice.
pub(crate) fn without_moved_pieces(text: &str, pieces: &[AddedText]) -> Option<String> {
    let mut text = text.to_owned();
    let mut from = 0;
    for piece in pieces {
        let found: Vec<usize> = text[from..].match_indices(&piece.text).map(|(at, _)| from + at).take(2).collect();
        let [at] = found[..] else { return None };
        text.replace_range(at..at + piece.text.len(), &piece.replaced);
        from = at + piece.replaced.len();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_text_is_restored() {
        let mut draft = Draft::of("a: old, b: other");
        draft.replace(11..16, "new");
        draft.insert(0, ">>");
        draft.replace(5..8, "longer");
        draft.insert(0, ">");
        assert_eq!(draft.text(), ">>>a: longer, b: new");
        let pieces = draft.pieces();
        assert_eq!(pieces.len(), 3);
        assert_eq!(without_pieces(draft.text(), &pieces).as_deref(), Some("a: old, b: other"));
        assert_eq!(without_moved_pieces("..>>>a: longer, b: new", &pieces).as_deref(), Some("..a: old, b: other"));
        assert_eq!(with_replaced("b: new, c: new", vec![3..6, 0..1], &pieces), "b: other, c: new");
    }

    #[test]
    fn pieces_are_removed_where_they_were_inserted() {
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
