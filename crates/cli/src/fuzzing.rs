//! The entry point for the fuzzer of hook payloads in `fuzz/`, and the test that runs its corpus.

/// Checks a payload of a hook, as a payload of every agent.
pub fn hook_payload(bytes: &[u8]) {
    crate::hooks::fuzzing::payload(bytes);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_payloads_of_the_corpus_are_parsed_or_refused() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/hook_payload");
        let mut tried = 0;
        for entry in std::fs::read_dir(&corpus).unwrap() {
            super::hook_payload(&std::fs::read(entry.unwrap().path()).unwrap());
            tried += 1;
        }
        assert!(tried > 20, "{tried} payloads in {}", corpus.display());
    }
}
