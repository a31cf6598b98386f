//! How the bytes of an object are compressed: quickly, with patience, or not at all.

use std::{cell::RefCell, fs::File, io, os::unix::fs::FileExt};

/// Where a sample of this size does not shrink, the rest will not either.
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

/// Compresses quickly, or just wraps what would not shrink.
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

/// Is every byte about as frequent as every other? Cheaper than to try, and right about text.
fn looks_random(sample: &[u8]) -> bool {
    let mut counts = [0u64; 256];
    sample.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    // How many pairs are alike; among random bytes one in 256 is.
    let alike: u64 = counts.iter().map(|count| count * count.saturating_sub(1)).sum();
    let length = sample.len() as u64;
    alike * 256 < length * length.saturating_sub(1) * 3 / 2
}

/// Compresses with patience.
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

/// The level for a large file, by a sample from its middle.
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

    /// Bytes that follow no rule that a compressor could find.
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
        // Every byte is as frequent as every other, and yet it repeats.
        let even: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(256);
        assert!(looks_random(&even[..SAMPLE_BYTES]));
        assert!(compressed(&even) < even.len() / 10);
    }

    #[test]
    fn a_sample_tells_text_from_noise() {
        assert!(looks_random(&noise(SAMPLE_BYTES)));
        assert!(!looks_random("keine Zeile gleicht der anderen; größer, kleiner, schöner\n".repeat(80).as_bytes()));
        assert!(!looks_random(&[0; SAMPLE_BYTES]));
        // Base64 has a quarter of all bytes: it shrinks by a quarter.
        let base64: Vec<u8> = noise(SAMPLE_BYTES).iter().map(|byte| b'0' + byte % 64).collect();
        assert!(!looks_random(&base64));
    }
}
