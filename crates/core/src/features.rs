//! What a feature list says, in the shapes that agents use.

use serde_json::Value;

use crate::model::FeatureState;

/// Reads the current and the completed features; none where it is no JSON or says neither.
///
/// Either the keys `current` and `completed`, or an array of features (by itself or under `features`) with an `id` and a
/// `status` or `passes`.
pub(crate) fn parse(bytes: &[u8]) -> Option<FeatureState> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let current = document.get("current").and_then(text);
    let completed = document.get("completed").and_then(Value::as_array);
    if current.is_some() || completed.is_some() {
        let completed = completed.map(|list| list.iter().filter_map(text).collect()).unwrap_or_default();
        return Some(FeatureState { current, completed });
    }
    let features = document.as_array().or_else(|| document.get("features").and_then(Value::as_array))?;
    let mut state = FeatureState::default();
    let mut says_something = false;
    for feature in features {
        let Some(id) = feature.get("id").and_then(text) else { continue };
        let status = feature.get("status").and_then(Value::as_str).map(str::to_ascii_lowercase);
        let passes = feature.get("passes").and_then(Value::as_bool);
        if status.is_none() && passes.is_none() {
            continue;
        }
        says_something = true;
        let is_done = passes.unwrap_or(matches!(status.as_deref(), Some("completed" | "complete" | "done")));
        let is_current = matches!(status.as_deref(), Some("in_progress" | "in-progress" | "current" | "active"));
        if is_done {
            state.completed.push(id);
        } else if is_current && state.current.is_none() {
            state.current = Some(id);
        }
    }
    says_something.then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_that_agents_use() {
        let state = |current: Option<&str>, completed: &[&str]| {
            let completed = completed.iter().map(|id| (*id).to_owned()).collect();
            Some(FeatureState { current: current.map(str::to_owned), completed })
        };
        assert_eq!(parse(br#"{"current": "b", "completed": ["a"]}"#), state(Some("b"), &["a"]));
        let list = br#"[{"id": "a", "passes": true}, {"id": 2, "status": "in_progress", "passes": false}]"#;
        assert_eq!(parse(list), state(Some("2"), &["a"]));
        let nested = br#"{"features": [{"id": "a", "status": "done"}, {"id": "b", "status": "pending"}]}"#;
        assert_eq!(parse(nested), state(None, &["a"]));
        for nothing in [&b"{ half a fi"[..], b"[1, 2]", b"{}", b"[]", b"\xff"] {
            assert_eq!(parse(nothing), None);
        }
    }
}
