//! Compresses the bytes of objects: quickly, thoroughly, or not at all.

use std::{cell::RefCell, fs::File, io, os::unix::fs::FileExt};

/// The size of the sample that decides whether compression is worth it. If the sample does not shrink, the rest is
/// expected not to shrink either.
const SAMPLE_BYTES: usize = 4 << 10;

struct Compressors {
    fast: libdeflater::Compressor,
    stored: libdeflater::Compressor,
    buffer: Vec<u8>,
}

fn compressor(level: i32) -> libdeflater::Compressor {
    libdeflater::Compressor::new(libdeflater::CompressionLvl::new(level).unwrap_or_default())
}

thread_local! {
    static COMPRESSORS: RefCell<Compressors> =
        RefCell::new(Compressors { fast: compressor(1), stored: compressor(0), buffer: Vec::new() });
}

/// Compresses bytes quickly, or stores them uncompressed if they would not shrink.
pub(super) fn compress<T>(bytes: &[u8], then: impl FnOnce(&[u8]) -> io::Result<T>) -> io::Result<T> {
    COMPRESSORS.with_borrow_mut(|Compressors { fast, stored, buffer }| {
        let mut run = |compressor: &mut libdeflater::Compressor, input: &[u8]| {
            let bound = compressor.zlib_compress_bound(input.len());
            if buffer.len() < bound {
                buffer.resize(bound, 0);
            }
            compressor.zlib_compress(input, buffer).map_err(io::Error::other)
        };
        let is_worth_it = bytes.len() < 2 * SAMPLE_BYTES || {
            let sample = &bytes[bytes.len() / 2..][..SAMPLE_BYTES];
            !looks_random(sample) || run(fast, sample)? < SAMPLE_BYTES - SAMPLE_BYTES / 32
        };
        let length = run(if is_worth_it { fast } else { stored }, bytes)?;
        then(&buffer[..length])
    })
}

/// Returns whether all byte values are about equally frequent. This check is cheaper than compressing the sample, and
/// right about text.
fn looks_random(sample: &[u8]) -> bool {
    let mut counts = [0u64; 256];
    sample.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    // The number of pairs of equal bytes. Among random bytes, one pair in 256 is equal.
    let alike: u64 = counts.iter().map(|count| count * count.saturating_sub(1)).sum();
    let length = sample.len() as u64;
    alike * 256 < length * length.saturating_sub(1) * 3 / 2
}

/// Compresses bytes thoroughly, which is slower.
pub(super) fn compress_well(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static PATIENT: RefCell<libdeflater::Compressor> = RefCell::new(compressor(7));
    }
    PATIENT.with_borrow_mut(|compressor| {
        let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
        let length = compressor.zlib_compress(bytes, &mut out).map_err(io::Error::other)?;
        out.truncate(length);
        Ok(out)
    })
}

/// Returns the compression level for a large file, chosen by a sample from its middle.
pub(super) fn stream_level(file: &File) -> io::Result<flate2::Compression> {
    let mut sample = vec![0; SAMPLE_BYTES];
    let middle = file.metadata()?.len() / 2;
    let read = file.read_at(&mut sample, middle).map_err(crate::model::Unreadable::mark)?;
    let shrinks = compress(&sample[..read], |compressed| Ok(compressed.len() < read - read / 32))?;
    Ok(if shrinks { flate2::Compression::fast() } else { flate2::Compression::none() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pseudo-random bytes, in which a compressor finds no pattern.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn compressed(bytes: &[u8]) -> usize {
        compress(bytes, |compressed| Ok(compressed.len())).unwrap()
    }

    #[test]
    fn noise_is_only_wrapped_and_everything_else_shrinks() {
        let noise = noise(64 << 10);
        let wrapped = compressed(&noise);
        assert!((noise.len()..noise.len() + 64).contains(&wrapped), "{wrapped}");
        let text = b"fn main() { println!(\"a line\"); }\n".repeat(2_000);
        assert!(compressed(&text) < text.len() / 10);
        // All byte values are equally frequent, and yet the sequence repeats.
        let even: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(256);
        assert!(looks_random(&even[..SAMPLE_BYTES]));
        assert!(compressed(&even) < even.len() / 10);
    }

    #[test]
    fn a_sample_tells_text_from_noise() {
        assert!(looks_random(&noise(SAMPLE_BYTES)));
        assert!(!looks_random("keine Zeile gleicht der anderen; größer, kleiner, schöner\n".repeat(80).as_bytes()));
        assert!(!looks_random(&[0; SAMPLE_BYTES]));
        // Base64 uses a quarter of all byte values, so it shrinks by a quarter.
        let base64: Vec<u8> = noise(SAMPLE_BYTES).iter().map(|byte| b'0' + byte % 64).collect();
        assert!(!looks_random(&base64));
    }
}
