//! Cuts bytes into pieces at places that the bytes themselves decide: a change moves only the cuts near it, so that the
//! other pieces stay the same and are stored once.

use super::attachments::PIECE_BYTES;

/// The usual number of pieces of a large attachment. More would make the list of them long.
const USUAL_PIECES: usize = 256;
/// The usual length of a piece is at least this.
const SHORTEST_USUAL: usize = 16 << 10;

/// Returns the lengths of the pieces.
pub(super) fn lengths(bytes: &[u8]) -> Vec<usize> {
    let usual = (bytes.len() / USUAL_PIECES).next_power_of_two().clamp(SHORTEST_USUAL, PIECE_BYTES / 4);
    let mut lengths = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = first_cut(rest, usual);
        lengths.push(length);
        rest = &rest[length..];
    }
    lengths
}

/// Returns the place of the first cut. `usual` is a power of two.
fn first_cut(bytes: &[u8], usual: usize) -> usize {
    // The upper bits of the hash depend on the last 64 bytes, the lower ones on fewer.
    let mask = (usual as u64 - 1) << (64 - usual.ilog2());
    let mut hash = 0u64;
    for (place, byte) in bytes.iter().enumerate().take(usual * 4).skip(usual / 4) {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash & mask == 0 {
            return place + 1;
        }
    }
    bytes.len().min(usual * 4)
}

/// A number for each byte. Changing one moves every cut: stored pieces would no longer be found again.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut numbers = [0; 256];
    let mut state = 0x6261_636b_7472_6169_u64;
    let mut byte = 0;
    while byte < numbers.len() {
        // One step of splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        numbers[byte] = mixed ^ (mixed >> 31);
        byte += 1;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn random(length: usize) -> Vec<u8> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
        let mut rest = bytes;
        let cut = |length: usize| {
            let (piece, after) = rest.split_at(length);
            rest = after;
            piece
        };
        lengths(bytes).into_iter().map(cut).collect()
    }

    #[test]
    fn a_change_moves_only_the_cuts_near_it() {
        let before = random(2 << 20);
        for (place, new) in [(0, "inserted"), (1 << 20, "in the middle"), (2 << 20, "at the end")] {
            let mut after = before.clone();
            after.splice(place..place, new.bytes());
            let known: HashSet<&[u8]> = pieces(&before).into_iter().collect();
            let new: usize = pieces(&after).into_iter().filter(|piece| !known.contains(piece)).map(<[u8]>::len).sum();
            assert!(new < 8 * SHORTEST_USUAL, "{new} bytes are new after a change at {place}");
        }
    }

    #[test]
    fn the_pieces_are_all_of_the_bytes_and_not_too_many() {
        for bytes in [Vec::new(), vec![1], vec![0; 3 << 20], random(70_000), random(3 << 20)] {
            assert_eq!(pieces(&bytes).concat(), bytes);
            assert!(pieces(&bytes).iter().all(|piece| piece.len() <= PIECE_BYTES));
            assert!(pieces(&bytes).len() <= 4 * USUAL_PIECES);
        }
    }
}
