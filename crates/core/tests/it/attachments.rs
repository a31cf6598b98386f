//! Attachments: they are read back byte for byte, and one that grows costs only its growth.

use backtrail::{Checkpoint, Origin, SaveRequest};
use backtrail_testkit::{Random, TestWorkspace};

fn attach(ws: &TestWorkspace, session: &str, bytes: &[u8]) -> Checkpoint {
    let attachments = vec![("conversation".to_owned(), bytes.to_vec())];
    ws.save_with(&SaveRequest {
        attachments,
        origin: Origin { session: Some(session.into()), ..Origin::default() },
        ..SaveRequest::default()
    })
    .checkpoint
}

fn store_bytes(ws: &TestWorkspace) -> u64 {
    let mut bytes = 0;
    let mut directories = vec![ws.store()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => bytes += entry.metadata().unwrap().len(),
            }
        }
    }
    bytes
}

#[test]
fn a_growing_attachment_costs_only_its_growth() {
    let ws = TestWorkspace::new();
    ws.write("file", "1\n");
    let mut random = Random::new(7);
    let mut bytes = random.bytes(5 << 20);
    attach(&ws, "s", &bytes);
    let before = store_bytes(&ws);
    let mut saved = Vec::new();
    let mut grown = 0;
    for _ in 0..12 {
        let tail = random.bytes(20_000);
        grown += tail.len() as u64;
        bytes.extend(tail);
        saved.push((attach(&ws, "s", &bytes).id, bytes.clone()));
    }
    let cost = store_bytes(&ws) - before;
    assert!(cost < 2 * grown, "{grown} new bytes cost {cost} bytes");
    for (id, bytes) in saved {
        assert!(ws.open().attachment(&id, "conversation").unwrap() == bytes);
    }
    ws.assert_store_is_sound();
}

#[test]
fn alternating_sessions_do_not_store_unchanged_bytes_again() {
    let ws = TestWorkspace::new();
    ws.write("file", "1\n");
    let mut random = Random::new(8);
    let mut conversations = [random.bytes(1 << 20), random.bytes(1 << 20)];
    for (name, bytes) in ["a", "b"].iter().zip(&conversations) {
        attach(&ws, name, bytes);
    }
    let before = store_bytes(&ws);
    for _ in 0..4 {
        for (name, bytes) in ["a", "b"].iter().zip(&mut conversations) {
            bytes.extend(random.bytes(1_000));
            let id = attach(&ws, name, bytes).id;
            assert!(ws.open().attachment(&id, "conversation").unwrap() == *bytes);
        }
    }
    assert!(store_bytes(&ws) - before < 200_000);
}

#[test]
fn a_truncated_edited_or_replaced_attachment_is_read_back_exactly() {
    let ws = TestWorkspace::new();
    ws.write("file", "1\n");
    let mut random = Random::new(9);
    let mut bytes = random.bytes(100_000);
    let mut saved = Vec::new();
    for round in 0..60 {
        match random.below(6) {
            0 => bytes.truncate(random.below(bytes.len() + 1)),
            1 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1;
            }
            2 => bytes = random.bytes(1_300_000),
            _ => {
                let length = random.below(200_000);
                bytes.extend(random.bytes(length));
            }
        }
        saved.push((round, attach(&ws, "s", &bytes).id, bytes.clone()));
    }
    for (round, id, bytes) in saved {
        assert!(ws.open().attachment(&id, "conversation").unwrap() == bytes, "round {round}");
    }
    ws.assert_store_is_sound();
}

/// Some agents write the whole conversation anew with each prompt, and something at its start differs each time.
#[test]
fn a_conversation_that_is_written_anew_costs_what_is_new() {
    let ws = TestWorkspace::new();
    ws.write("file", "1\n");
    let mut random = Random::new(10);
    let mut messages = Vec::new();
    let mut saved = Vec::new();
    let mut sum = 0;
    for prompt in 0..60 {
        messages.extend(random.bytes(20_000));
        let bytes = [format!("{{\"updated\": {prompt}}}\n").into_bytes(), messages.clone()].concat();
        sum += bytes.len() as u64;
        saved.push((attach(&ws, "s", &bytes).id, bytes));
    }
    let stored = store_bytes(&ws);
    let new = messages.len() as u64;
    assert!(stored < 8 * new && stored < sum / 4, "{new} new bytes, {sum} together, cost {stored} bytes");
    for (id, bytes) in saved {
        assert!(ws.open().attachment(&id, "conversation").unwrap() == bytes);
    }
    ws.assert_store_is_sound();
}
