//! Checks answers against the part of JSON Schema that the tools' schemas use. An unknown keyword fails.

use serde_json::Value;

/// Checks that a value fits the schema.
#[track_caller]
pub(super) fn assert_fits(schema: &Value, value: &Value, what: &str) {
    let mut problems = Vec::new();
    check(schema, schema, value, what, &mut problems);
    assert!(problems.is_empty(), "{}\n{value}", problems.join("\n"));
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            problems.push(format!("{place}: nothing is allowed here"));
        }
        return;
    };
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$schema" | "$defs" | "description" | "title" | "default" => {}
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(root, &root["$defs"][name], value, place, problems);
            }
            "type" => {
                let kinds = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                if !kinds.iter().any(|kind| is_kind(kind.as_str().unwrap(), value)) {
                    problems.push(format!("{place}: {value} is no {wanted}"));
                }
            }
            "const" if wanted == value => {}
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "minimum" if value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()) => {}
            "maximum" if value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()) => {}
            "minItems" if value.as_array().is_none_or(|list| list.len() as u64 >= wanted.as_u64().unwrap()) => {}
            "maxItems" if value.as_array().is_none_or(|list| list.len() as u64 <= wanted.as_u64().unwrap()) => {}
            "const" | "enum" | "minItems" | "maxItems" | "minimum" | "maximum" => {
                problems.push(format!("{place}: {value} is not within {keyword} {wanted}"));
            }
            "anyOf" | "oneOf" => {
                let fitting = wanted.as_array().unwrap().iter().filter(|choice| {
                    let mut found = Vec::new();
                    check(root, choice, value, place, &mut found);
                    found.is_empty()
                });
                let count = fitting.count();
                if count == 0 || (keyword == "oneOf" && count != 1) {
                    problems.push(format!("{place}: {value} fits {count} of {wanted}"));
                }
            }
            "required" => {
                for name in wanted.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        problems.push(format!("{place}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(root, schema, value, &format!("{place}.{name}"), problems);
                    }
                }
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        check(root, wanted, value, &format!("{place}.{name}"), problems);
                    }
                }
            }
            "items" => {
                for (number, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, value, &format!("{place}[{number}]"), problems);
                }
            }
            unknown => problems.push(format!("{place}: the keyword {unknown} is not known here")),
        }
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    }
}

/// Checks that the schema declares every key of an answer. Clients do not expect other keys.
#[track_caller]
pub(super) fn assert_declared(schema: &Value, value: &Value, what: &str) {
    let declared = schema["properties"].as_object().unwrap();
    for key in value.as_object().unwrap().keys() {
        assert!(declared.contains_key(key), "{what}: {key} is not declared");
    }
}

#[test]
fn values_that_do_not_fit_are_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "$ref": "#/$defs/A" }, "b": { "type": ["string", "null"] } },
        "$defs": { "A": { "type": "array", "items": { "enum": ["x", "y"] } } },
    });
    let problems = |value: Value| {
        let mut problems = Vec::new();
        check(&schema, &schema, &value, "v", &mut problems);
        problems.len()
    };
    assert_eq!(problems(serde_json::json!({ "a": ["x"], "b": null })), 0);
    for bad in [r#"{}"#, r#"{"a":["z"]}"#, r#"{"a":[],"c":1}"#, r#"{"a":[],"b":1}"#, r#"[]"#] {
        assert!(problems(serde_json::from_str(bad).unwrap()) > 0, "{bad}");
    }
}
