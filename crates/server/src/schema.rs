//! Generates the JSON schemas of the tools' arguments and answers.
//!
//! Clients and model services support different parts of JSON Schema. These schemas only use what all of them support:
//! one type in each place, words as an `enum`, no `format` for Rust's number types, and in arguments no `null` and no
//! references.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::transform_subschemas};
use serde_json::{Value, json};

/// Returns the schema of a tool's arguments.
pub(crate) fn of_input<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    each(&mut schema, &mut |object| {
        object.remove("format");
        object.remove("default");
        without_null(object);
        words_as_enum(object);
    });
    root(schema)
}

/// Returns the schema of a tool's answer.
pub(crate) fn of_output<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    each(&mut schema, &mut |object| {
        object.remove("format");
        words_as_enum(object);
        one_type_at_a_place(object);
    });
    root(schema)
}

fn root(mut schema: Schema) -> JsonObject {
    let object = schema.ensure_object();
    object.remove("title");
    object.remove("description");
    object.entry("properties").or_insert_with(|| json!({}));
    std::mem::take(object)
}

fn each(schema: &mut Schema, change: &mut dyn FnMut(&mut JsonObject)) {
    if let Some(object) = schema.as_object_mut() {
        change(object);
    }
    transform_subschemas(&mut |schema: &mut Schema| each(schema, change), schema);
}

/// Removes `null` from the types of a field. An optional field can be omitted instead.
fn without_null(object: &mut JsonObject) {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// Converts a list of constants, each with a description, to a plain `enum`.
fn words_as_enum(object: &mut JsonObject) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let words: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(words) = words {
        object.remove("oneOf");
        object.insert("type".to_owned(), json!("string"));
        object.insert("enum".to_owned(), Value::Array(words));
    }
}

fn one_type_at_a_place(object: &mut JsonObject) {
    let Some(Value::Array(kinds)) = object.get("type") else { return };
    let kinds = kinds.clone();
    object.remove("type");
    let about = object.shift_remove("description");
    let rest = std::mem::take(object);
    let choice = |kind: &Value| {
        let mut choice = JsonObject::new();
        choice.insert("type".to_owned(), kind.clone());
        if kind != "null" {
            choice.extend(rest.clone());
        }
        Value::Object(choice)
    };
    object.insert("anyOf".to_owned(), kinds.iter().map(choice).collect());
    object.extend(about.map(|about| ("description".to_owned(), about)));
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        /// One.
        One,
        /// Two.
        Two,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Shape {
        /// The number.
        number: Option<u64>,
        word: Option<Word>,
        list: Option<Vec<String>>,
    }

    #[test]
    fn what_is_taken_has_neither_null_nor_formats() {
        let schema = of_input::<Shape>();
        assert_eq!(
            schema["properties"],
            json!({
                "number": { "type": "integer", "description": "The number.", "minimum": 0 },
                "word": { "type": "string", "enum": ["one", "two"] },
                "list": { "type": "array", "items": { "type": "string" } },
            })
        );
    }

    #[test]
    fn what_is_given_has_one_type_at_a_place() {
        let schema = of_output::<Shape>();
        let number =
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }], "description": "The number." });
        assert_eq!(schema["properties"]["number"], number);
        let list = json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "null" }] });
        assert_eq!(schema["properties"]["list"], list);
        assert_eq!(schema["$defs"]["Word"], json!({ "type": "string", "enum": ["one", "two"] }));
    }
}
