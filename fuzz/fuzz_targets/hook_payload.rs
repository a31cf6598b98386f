#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| backtrail_cli::fuzzing::hook_payload(bytes));
