//! Parses feature lists in the shapes that agents use.

use serde_json::Value;

use crate::model::FeatureState;

/// Reads the current and the completed features. Returns `None` if the bytes are not JSON, name neither, or have
/// another shape.
///
/// Accepts either the keys `current` and `completed`, or an array of features (by itself or under `features`) with an
/// `id` and a `status` or `passes`.
pub(crate) fn parse(bytes: &[u8]) -> Option<FeatureState> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let said = |key: &str| document.get(key).filter(|value| !value.is_null());
    if let (current, completed) = (said("current"), said("completed"))
        && (current.is_some() || completed.is_some())
    {
        // A value of another shape means unknown, rather than empty.
        let completed = match completed {
            Some(list) => list.as_array()?.iter().map(text).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        let current = match current {
            Some(current) => Some(text(current)?),
            None => None,
        };
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
        assert_eq!(parse(br#"{"current": null, "completed": ["a", 2]}"#), state(None, &["a", "2"]));
        assert_eq!(parse(br#"{"current": 3}"#), state(Some("3"), &[]));
        for nothing in [&b"{ half a fi"[..], b"[1, 2]", b"{}", b"[]", b"\xff", br#"{"current": null}"#] {
            assert_eq!(parse(nothing), None);
        }
    }

    /// A list of an unknown shape was reported as having no current and no completed feature.
    #[test]
    fn a_shape_that_is_not_known_says_nothing() {
        for strange in [
            &br#"{"current": {"id": "x"}, "completed": [{"id": "y"}]}"#[..],
            br#"{"current": "x", "completed": [{"id": "y"}]}"#,
            br#"{"current": "x", "completed": {"y": true}}"#,
            br#"{"current": ["x"], "completed": ["y"]}"#,
        ] {
            assert_eq!(parse(strange), None, "{}", String::from_utf8_lossy(strange));
        }
    }
}
