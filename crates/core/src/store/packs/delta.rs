//! Git's binary deltas: an object described by copies from another object, the delta base, and bytes of its own.

/// The length of the shortest match that is searched for.
const BLOCK: usize = 16;
/// The limits of one instruction: the most bytes that it copies, and the most that it inserts.
const MAX_COPY: usize = 0x1_0000;
const MAX_INSERT: usize = 0x7f;

/// A delta base, with the positions of its blocks.
pub(in crate::store) struct Base<'a> {
    bytes: &'a [u8],
    /// The number of a block plus one, by the hash of the block; 0 if there is none.
    places: Vec<u32>,
}

impl<'a> Base<'a> {
    pub(in crate::store) fn new(bytes: &'a [u8]) -> Self {
        let blocks = bytes.len() / BLOCK;
        let mut places = vec![0; (2 * blocks).next_power_of_two().max(2)];
        let mask = places.len() - 1;
        // The first of equal blocks wins, because the most bytes follow it.
        for (number, block) in bytes.chunks_exact(BLOCK).enumerate().rev() {
            places[hash(block) & mask] = number as u32 + 1;
        }
        Self { bytes, places }
    }

    /// Returns a position in the base where these bytes may start. Only the hash is compared.
    fn find(&self, block: &[u8]) -> Option<usize> {
        let place = self.places[hash(block) & (self.places.len() - 1)];
        (place as usize).checked_sub(1).map(|number| number * BLOCK)
    }

    /// Returns the instructions that make `target` from this base. Returns `None` if they take more than `most` bytes.
    pub(in crate::store) fn delta(&self, target: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(most.min(target.len()) + BLOCK);
        push_size(&mut out, self.bytes.len());
        push_size(&mut out, target.len());
        // Bytes from `pending` on are not in `out` yet.
        let (mut pending, mut at) = (0, 0);
        while at + BLOCK <= target.len() {
            let found =
                self.find(&target[at..at + BLOCK]).map(|from| (from, common(&self.bytes[from..], &target[at..])));
            let Some((from, length)) = found.filter(|(_, length)| *length >= BLOCK) else {
                at += 1;
                if out.len() + at - pending > most {
                    return None;
                }
                continue;
            };
            let before = common_end(&self.bytes[..from], &target[pending..at]);
            push_inserts(&mut out, &target[pending..at - before]);
            push_copies(&mut out, from - before, length + before);
            at += length;
            pending = at;
        }
        push_inserts(&mut out, &target[pending..]);
        (out.len() <= most).then_some(out)
    }
}

fn hash(block: &[u8]) -> usize {
    xxhash_rust::xxh3::xxh3_64(block) as usize
}

/// Returns the length of the common prefix.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Returns the length of the common suffix.
fn common_end(one: &[u8], other: &[u8]) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn push_size(out: &mut Vec<u8>, mut size: usize) {
    while size > 0x7f {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

fn push_inserts(out: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_INSERT) {
        out.push(piece.len() as u8);
        out.extend_from_slice(piece);
    }
}

/// Appends copy instructions. The first byte of each says which bytes of the offset and of the length follow: those
/// that are not zero.
fn push_copies(out: &mut Vec<u8>, mut from: usize, mut length: usize) {
    while length > 0 {
        let piece = length.min(MAX_COPY);
        let head = out.len();
        out.push(0x80);
        // A length of zero stands for the maximum.
        let said = if piece == MAX_COPY { 0 } else { piece as u32 };
        let numbers = (from as u32).to_le_bytes().into_iter().chain(said.to_le_bytes().into_iter().take(3));
        for (bit, byte) in numbers.enumerate().filter(|(_, byte)| *byte != 0) {
            out[head] |= 1 << bit;
            out.push(byte);
        }
        from += piece;
        length -= piece;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies a delta as the description of the format says.
    fn apply(base: &[u8], delta: &[u8]) -> Vec<u8> {
        let mut rest = delta.iter().copied();
        let mut size = || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = rest.next().unwrap();
                value |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return value;
                }
            }
        };
        assert_eq!(size(), base.len());
        let length = size();
        let mut out = Vec::new();
        while let Some(instruction) = rest.next() {
            if instruction & 0x80 == 0 {
                out.extend(rest.by_ref().take(usize::from(instruction)));
                continue;
            }
            let mut number = |bits: std::ops::Range<u32>| {
                let start = bits.start;
                bits.fold(0, |value, bit| match instruction & (1 << bit) {
                    0 => value,
                    _ => value | usize::from(rest.next().unwrap()) << (8 * (bit - start)),
                })
            };
            let from = number(0..4);
            let length = match number(4..7) {
                0 => 0x10000,
                length => length,
            };
            out.extend_from_slice(&base[from..from + length]);
        }
        assert_eq!(out.len(), length);
        out
    }

    proptest! {
        #[test]
        fn a_delta_gives_the_target(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..12),
            order in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..20),
            repeat in 1..600usize,
        ) {
            let base = pieces.concat().repeat(repeat.min(1 + 300_000 / pieces.concat().len().max(1)));
            let mut target = Vec::new();
            for (which, with_more) in order {
                if !pieces.is_empty() {
                    target.extend_from_slice(which.get(pieces.as_slice()).as_slice());
                }
                if with_more {
                    target.extend_from_slice(b"something of its own");
                }
            }
            target.extend_from_slice(&base);
            let delta = Base::new(&base).delta(&target, usize::MAX / 2).unwrap();
            prop_assert_eq!(apply(&base, &delta), target);
        }
    }

    #[test]
    fn a_small_edit_is_a_small_delta_and_a_large_one_none() {
        let base: Vec<u8> = (0..5_000u32).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
        let mut edited = base.clone();
        edited.splice(20_000..20_010, *b"something else");
        assert!(Base::new(&base).delta(&edited, 100).is_some());
        let other: Vec<u8> =
            (0..5_000u32).flat_map(|number| format!("{} row\n", number * 7_919).into_bytes()).collect();
        assert_eq!(Base::new(&base).delta(&other, other.len() / 2), None);
    }
}
