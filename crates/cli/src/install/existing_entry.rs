//! Looks at the place of an entry in a document: it may be empty, or hold an entry of ours or a foreign one.
//!
//! An entry is identified by its call, the command line that starts the program. The user may change the rest of the
//! entry.

use serde_json::Value;

use super::{
    json::{JsonStep, Wish},
    manifest::{Program, call, is_ours},
};
use crate::hooks::Agent;

/// The keys that hold a call.
const CALL_KEYS: [&str; 3] = ["command", "bash", "args"];

/// The result of looking at an entry's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// Exactly the wanted entry.
    Ours,
    /// The wanted call. The user changed the rest of the entry.
    Adapted,
    /// An outdated call of ours. These values have to be replaced.
    Outdated(Vec<(Vec<JsonStep>, Value)>),
    Foreign,
}

/// Recognizes our entries.
#[derive(Clone, Copy)]
pub(crate) struct EntryLookup<'a> {
    pub(crate) agent: Agent,
    pub(crate) program: &'a Program,
}

impl EntryLookup<'_> {
    pub(crate) fn at(self, document: &Value, wish: &Wish) -> Found {
        let (path, wished) = match wish {
            Wish::Member { path, key, value } => {
                let present = value_at(document, path).and_then(|object| object.get(key));
                match present {
                    None => return Found::Nothing,
                    Some(present) if present == value => return Found::Ours,
                    Some(present) if is_ours(present, self.agent, self.program) => {}
                    // Any version is good enough.
                    Some(_) if !value.is_object() => return Found::Ours,
                    Some(_) => return Found::Foreign,
                }
                (path, value)
            }
            Wish::Element { path, value } => (path, value),
        };
        let elements = value_at(document, path).and_then(Value::as_array).into_iter().flatten();
        if elements.clone().any(|element| element == wished) {
            return Found::Ours;
        }
        let calls = self.calls(document, wish);
        let wished = inner(wished);
        if calls.iter().any(|(_, present)| call(present) == call(wished)) {
            return Found::Adapted;
        }
        match calls.iter().find(|(_, present)| is_written_like(present, wished)) {
            Some((steps, present)) => Found::Outdated(differences(steps, present, wished)),
            None if calls.is_empty() => Found::Nothing,
            None => Found::Foreign,
        }
    }

    /// Returns the objects with a call of ours, at the place of an entry.
    fn calls<'v>(self, document: &'v Value, wish: &Wish) -> Vec<(Vec<JsonStep>, &'v Value)> {
        let place: Vec<JsonStep> = place_of(wish).into_iter().map(JsonStep::Key).collect();
        let Some(present) = value_at(document, &place_of(wish)) else { return Vec::new() };
        let is_ours = |value: &Value| is_ours(value, self.agent, self.program);
        if let Wish::Member { .. } = wish {
            return if is_ours(present) { vec![(place, present)] } else { Vec::new() };
        }
        let below = |steps: &[JsonStep], more: Vec<JsonStep>| [steps.to_vec(), more].concat();
        let mut found = Vec::new();
        for (number, element) in present.as_array().into_iter().flatten().enumerate() {
            let steps = below(&place, vec![JsonStep::Index(number)]);
            let hooks = element.get("hooks").and_then(Value::as_array).into_iter().flatten().enumerate();
            let hooks = hooks.map(|(number, hook)| {
                (below(&steps, vec![JsonStep::Key("hooks".into()), JsonStep::Index(number)]), hook)
            });
            found.extend(hooks.chain([(steps.clone(), element)]).filter(|(_, value)| is_ours(value)));
        }
        found
    }

    /// Returns whether there is an entry of ours that differs from the one that an installation writes in more than its
    /// call.
    pub(crate) fn is_users_own(self, document: &Value, wish: &Wish) -> bool {
        let (Wish::Member { value: wished, .. } | Wish::Element { value: wished, .. }) = wish;
        let depth = match wish {
            Wish::Member { .. } => place_of(wish).len(),
            Wish::Element { .. } => place_of(wish).len() + 1,
        };
        self.calls(document, wish).iter().any(|(steps, present)| {
            let Some(entry) = value_by(document, &steps[..depth]) else { return false };
            let mut entry = entry.clone();
            for (steps, value) in differences(&steps[depth..], present, inner(wished)) {
                if let Some(place) = value_by_mut(&mut entry, &steps) {
                    *place = value;
                }
            }
            entry != *wished
        })
    }

    /// Returns the paths of the values that hold our calls.
    pub(crate) fn written_at(self, document: &Value, wish: &Wish) -> Vec<Vec<JsonStep>> {
        let calls = self.calls(document, wish);
        let values = calls.iter().flat_map(|(steps, value)| {
            CALL_KEYS.into_iter().filter(|key| value.get(key).is_some()).map(|key| with_key(steps, key))
        });
        values.collect()
    }
}

/// Returns the keys that lead to the value, or to the array with the element.
pub(crate) fn place_of(wish: &Wish) -> Vec<String> {
    match wish {
        Wish::Element { path, .. } => path.clone(),
        Wish::Member { path, key, .. } => path.iter().chain([key]).cloned().collect(),
    }
}

/// Returns the object with the call, in an entry that an installation writes.
fn inner(entry: &Value) -> &Value {
    entry.get("hooks").and_then(|hooks| hooks.get(0)).unwrap_or(entry)
}

/// Returns whether two calls use the same keys and the same types.
fn is_written_like(present: &Value, wished: &Value) -> bool {
    CALL_KEYS.into_iter().all(|key| match (present.get(key), wished.get(key)) {
        (None, None) => true,
        (Some(present), Some(wished)) => present.is_array() == wished.is_array(),
        _ => false,
    })
}

fn differences(steps: &[JsonStep], present: &Value, wished: &Value) -> Vec<(Vec<JsonStep>, Value)> {
    let keys = CALL_KEYS.into_iter().filter(|key| present.get(key) != wished.get(key));
    keys.filter_map(|key| Some((with_key(steps, key), wished.get(key)?.clone()))).collect()
}

fn with_key(steps: &[JsonStep], key: &str) -> Vec<JsonStep> {
    steps.iter().cloned().chain([JsonStep::Key(key.to_owned())]).collect()
}

/// Returns the value at a path.
pub(crate) fn value_at<'v>(document: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, key| value.get(key))
}

fn value_by<'v>(document: &'v Value, steps: &[JsonStep]) -> Option<&'v Value> {
    steps.iter().try_fold(document, |value, step| match step {
        JsonStep::Key(key) => value.get(key),
        JsonStep::Index(number) => value.get(number),
    })
}

fn value_by_mut<'v>(document: &'v mut Value, steps: &[JsonStep]) -> Option<&'v mut Value> {
    steps.iter().try_fold(document, |value, step| match step {
        JsonStep::Key(key) => value.get_mut(key),
        JsonStep::Index(number) => value.get_mut(number),
    })
}
