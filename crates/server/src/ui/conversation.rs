//! The conversation that was kept with a prompt, as messages.

use backtrail::{Error, json::start_of};
use serde::Serialize;
use serde_json::Value;

use super::{answers::Reply, desk::Desk, query::Query, reading::named_or_current};
use crate::{access::Purpose, failure::Failure, running::Call};

/// The name of the attachment that holds the conversation.
const CONVERSATION: &str = "conversation";
const MAX_MESSAGES: usize = 2_000;
const MAX_TEXT_BYTES: usize = 20_000;
const MAX_TOOL_BYTES: usize = 400;

#[derive(Serialize)]
struct Conversation {
    /// The checkpoint of the prompt that the conversation ends before.
    checkpoint: String,
    agent: Option<String>,
    session: Option<String>,
    prompt: Option<String>,
    messages: Vec<Message>,
    /// The number of earlier messages that are left out.
    omitted: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Message {
    role: Role,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
    Tool,
}

/// Returns the conversation up to the prompt that a checkpoint belongs to.
pub(super) fn conversation(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, _) = desk.open(Purpose::Look, call)?;
    let id = named_or_current(query, &workspace, call)?
        .ok_or_else(|| Failure::from(Error::Usage("there are no checkpoints yet".into())))?;
    let turn = workspace.turn_of(&id)?;
    let kept = turn.filter(|turn| turn.attachments.iter().any(|attachment| attachment.name == CONVERSATION));
    let turn = kept.ok_or_else(|| Error::UnknownAttachment { checkpoint: id, name: CONVERSATION.to_owned() })?;
    let bytes = workspace.attachment(&turn.id, CONVERSATION)?;
    let mut messages = messages(&bytes);
    let omitted = messages.len().saturating_sub(MAX_MESSAGES);
    messages.drain(..omitted);
    Reply::json(&Conversation {
        checkpoint: turn.id.to_string(),
        agent: turn.origin.agent,
        session: turn.origin.session,
        prompt: turn.origin.prompt,
        messages,
        omitted,
    })
}

/// Reads the messages of a transcript: one JSON object for each line, or one document with a list.
fn messages(bytes: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    if let Ok(document) = serde_json::from_slice::<Value>(bytes)
        && let Some(list) = document["messages"].as_array()
    {
        list.iter().for_each(|entry| add(entry, &mut found));
        return found;
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(entry) = serde_json::from_slice::<Value>(line) {
            add(&entry, &mut found);
        }
    }
    found
}

/// Adds the messages of one entry. The agents wrap a message in different ways.
fn add(entry: &Value, found: &mut Vec<Message>) {
    if entry["isMeta"] == true {
        return;
    }
    let inner = ["message", "payload"].iter().map(|key| &entry[*key]).find(|inner| inner.is_object()).unwrap_or(entry);
    let Some(role) = [&inner["role"], &inner["type"], &entry["type"]].into_iter().find_map(role) else { return };
    match &inner["content"] {
        Value::String(text) => push(role, text, found),
        Value::Array(parts) => parts.iter().for_each(|part| add_part(role, part, found)),
        _ => {}
    }
}

fn role(word: &Value) -> Option<Role> {
    match word.as_str()? {
        "user" => Some(Role::User),
        "assistant" | "gemini" | "model" => Some(Role::Assistant),
        _ => None,
    }
}

fn add_part(role: Role, part: &Value, found: &mut Vec<Message>) {
    if let Some(text) = part["text"].as_str() {
        push(role, text, found);
    } else if part["type"] == "tool_use" {
        let input = part["input"].to_string();
        let name = part["name"].as_str().unwrap_or("tool");
        push(Role::Tool, &format!("{name} {}", shortened(&input, MAX_TOOL_BYTES)), found);
    }
}

fn push(role: Role, text: &str, found: &mut Vec<Message>) {
    if !text.trim().is_empty() {
        found.push(Message { role, text: shortened(text, MAX_TEXT_BYTES) });
    }
}

fn shortened(text: &str, max_bytes: usize) -> String {
    let start = start_of(text, max_bytes);
    if start.len() == text.len() { text.to_owned() } else { format!("{start}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Role, String)> {
        messages(text.as_bytes()).into_iter().map(|message| (message.role, message.text)).collect()
    }

    #[test]
    fn messages_of_each_format_are_found() {
        let claude = concat!(
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
            "\nnot json\n",
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"hello"},"#,
            r#"{"type":"tool_use","name":"Edit","input":{"file":"a"}}]}}"#,
            "\n",
            r#"{"type":"user","isMeta":true,"message":{"role":"user","content":"hidden"}}"#,
        );
        let expected = [(Role::User, "hi"), (Role::Assistant, "hello"), (Role::Tool, r#"Edit {"file":"a"}"#)];
        assert_eq!(read(claude), expected.map(|(role, text)| (role, text.to_owned())));

        let codex = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}}"#;
        assert_eq!(read(codex), [(Role::User, "do it".to_owned())]);

        let gemini = r#"{"messages":[{"type":"user","content":"a"},{"type":"gemini","content":"b"}]}"#;
        assert_eq!(read(gemini), [(Role::User, "a".to_owned()), (Role::Assistant, "b".to_owned())]);
    }

    #[test]
    fn long_texts_are_shortened() {
        let long = format!(r#"{{"type":"user","content":"{}"}}"#, "ä".repeat(20_000));
        assert!(read(&long)[0].1.ends_with('…') && read(&long)[0].1.len() < 20_010);
    }
}
