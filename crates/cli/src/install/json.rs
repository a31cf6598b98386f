//! Adds entries to JSON and JSONC by inserting text, and removes them again. Comments, order and layout are preserved.

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Object, Value as Node},
    common::{Range, Ranged},
    cst::{CstArray, CstNode, CstObject, CstRootNode},
    parse_to_ast, parse_to_serde_value,
    tokens::Token,
};
use serde_json::{Value, json};

use super::text_edits::Draft;

/// The reason why a text can't be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditProblem(pub(crate) String);

/// Accepts comments and trailing commas, which occur in real files. The parser's other extensions count as syntax
/// errors.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Parses a document. An empty document is null.
pub(crate) fn parse(text: &str) -> Result<Value, EditProblem> {
    parse_to_serde_value(text, &options()).map_err(|error| EditProblem(error.to_string()))
}

/// An entry that a document should contain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    /// A member of the object at a path.
    Member {
        /// The keys that lead to the object.
        path: Vec<String>,
        /// The member's key.
        key: String,
        /// The member's value.
        value: Value,
    },
    /// An element of the array at a path.
    Element {
        /// The keys that lead to the array.
        path: Vec<String>,
        /// The element.
        value: Value,
    },
}

/// Adds an entry to a document. The caller has checked that it is not there yet.
pub(crate) fn add(draft: &mut Draft, wish: &Wish) -> Result<(), EditProblem> {
    let text = draft.text().to_owned();
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    let parsed = parse_to_ast(&text, &collect, &options()).map_err(|error| EditProblem(error.to_string()))?;
    let style = Style::of(&text);
    let insertions = match (&parsed.value, wish) {
        (None, _) => vec![(text.len(), style.document(&text, &from_top(wish)))],
        (Some(top), wish) => {
            let tokens = parsed.tokens.unwrap_or_default();
            let editor = Editor {
                text: &text,
                tokens: tokens.iter().map(|token| (&token.token, token.range())).collect(),
                style,
            };
            editor.insertions(top, wish)?
        }
    };
    for (at, piece) in insertions.into_iter().rev() {
        draft.insert(at, &piece);
    }
    Ok(())
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonStep {
    Key(String),
    Index(usize),
}

/// Returns the range of a value in a text.
pub(crate) fn place_of(text: &str, steps: &[JsonStep]) -> Option<std::ops::Range<usize>> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).ok()?;
    let mut here = parsed.value.as_ref()?;
    for step in steps {
        here = match (here, step) {
            (Node::Object(object), JsonStep::Key(key)) => find(object, key)?,
            (Node::Array(array), JsonStep::Index(number)) => array.elements.get(*number)?,
            _ => return None,
        };
    }
    Some(here.range().start..here.range().end)
}

/// Replaces a value.
pub(crate) fn replace(draft: &mut Draft, steps: &[JsonStep], value: &Value) {
    if let Some(range) = place_of(draft.text(), steps) {
        let value = Style::of(draft.text()).render(value, "");
        draft.replace(range, &value);
    }
}

/// Returns a document that contains only this entry.
fn from_top(wish: &Wish) -> Value {
    let (path, inner) = match wish {
        Wish::Member { path, key, value } => (path, json!({ key: value })),
        Wish::Element { path, value } => (path, json!([value])),
    };
    path.iter().rev().fold(inner, |inner, key| json!({ key: inner }))
}

/// The layout of a document.
#[derive(Debug, Clone)]
struct Style {
    newline: &'static str,
    /// One level of indentation. `None` if the whole document is on one line.
    unit: Option<String>,
}

impl Style {
    fn of(text: &str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let body = text.trim();
        if !body.contains('\n') && !body.is_empty() && body != "{}" {
            return Self { newline, unit: None };
        }
        let indentations = text.lines().filter(|line| !line.trim().is_empty()).map(indentation);
        let unit = indentations.filter(|indentation| !indentation.is_empty()).min_by_key(|unit| unit.len());
        Self { newline, unit: Some(unit.unwrap_or("  ").to_owned()) }
    }

    fn document(&self, before: &str, value: &Value) -> String {
        let start = if before.is_empty() || before.ends_with('\n') { "" } else { self.newline };
        format!("{start}{}{}", self.render(value, ""), self.newline)
    }

    /// Formats a value that starts at this indentation.
    fn render(&self, value: &Value, indent: &str) -> String {
        let Some(unit) = &self.unit else { return value.to_string() };
        let inner = format!("{indent}{unit}");
        let lines = |open: &str, lines: Vec<String>, close: &str| {
            let body = lines.join(&format!(",{}{inner}", self.newline));
            format!("{open}{}{inner}{body}{}{indent}{close}", self.newline, self.newline)
        };
        match value {
            Value::Object(members) if !members.is_empty() => {
                let member =
                    |(key, value): (&String, &Value)| format!("{}: {}", json!(key), self.render(value, &inner));
                lines("{", members.iter().map(member).collect(), "}")
            }
            Value::Array(elements) if elements.iter().any(|element| element.is_object() || element.is_array()) => {
                lines("[", elements.iter().map(|element| self.render(element, &inner)).collect(), "]")
            }
            Value::Array(elements) => {
                format!("[{}]", elements.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
            }
            plain => plain.to_string(),
        }
    }

    fn colon(&self) -> &'static str {
        if self.unit.is_some() { ": " } else { ":" }
    }
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Offsets and the texts to insert there, in order.
type Insertions = Vec<(usize, String)>;

struct Editor<'t> {
    text: &'t str,
    tokens: Vec<(&'t Token<'t>, Range)>,
    style: Style,
}

impl Editor<'_> {
    fn insertions(&self, top: &Node<'_>, wish: &Wish) -> Result<Insertions, EditProblem> {
        let (Wish::Member { path, .. } | Wish::Element { path, .. }) = wish;
        let mut here = top;
        for (depth, key) in path.iter().enumerate() {
            let object = as_object(here, &path[..depth])?;
            match find(object, key) {
                Some(value) => here = value,
                None => {
                    let rest = rest_of(wish, depth + 1);
                    return Ok(self.insert_member(object, key, &rest));
                }
            }
        }
        match (wish, here) {
            (Wish::Member { key, value, .. }, here) => Ok(self.insert_member(as_object(here, path)?, key, value)),
            (Wish::Element { value, .. }, Node::Array(array)) => {
                let last = array.elements.last().map(Ranged::range);
                Ok(self.insert_entry(array.range(), last, |indent| self.style.render(value, indent)))
            }
            (Wish::Element { .. }, _) => Err(wrong_kind(path, "an array")),
        }
    }

    fn insert_member(&self, object: &Object<'_>, key: &str, value: &Value) -> Insertions {
        let member = |indent: &str| format!("{}{}{}", json!(key), self.style.colon(), self.style.render(value, indent));
        self.insert_entry(object.range(), object.properties.last().map(Ranged::range), member)
    }

    /// Inserts an entry after the last one of a container, or into an empty container.
    fn insert_entry(&self, container: Range, last: Option<Range>, entry: impl Fn(&str) -> String) -> Insertions {
        let newline = self.style.newline;
        let (unit, last) = match (&self.style.unit, last) {
            (None, Some(last)) => return self.beside(container, last, entry("")),
            (None, None) => return vec![(container.start + 1, entry(""))],
            (Some(unit), None) => return self.insert_first(container, unit, entry),
            (Some(unit), Some(last)) => (unit, last),
        };
        let begins_line = self.line_start(last.start) > container.start;
        let closes_in_line = !self.text[last.end..container.end - 1].contains('\n');
        if !begins_line && closes_in_line {
            return self.beside(container, last, entry(indentation(&self.text[self.line_start(last.start)..])));
        }
        let indent = self.entry_indentation(container, last, unit);
        let (has_comma, line_end) = self.comma_and_line_end(last, container);
        let text = format!("{newline}{indent}{}", entry(&indent));
        if has_comma {
            vec![(line_end, format!("{text},"))]
        } else if line_end == last.end {
            vec![(last.end, format!(",{text}"))]
        } else {
            vec![(last.end, ",".into()), (line_end, text)]
        }
    }

    fn insert_first(&self, container: Range, unit: &str, entry: impl Fn(&str) -> String) -> Insertions {
        let newline = self.style.newline;
        let outer = indentation(&self.text[self.line_start(container.start)..]);
        let indent = format!("{outer}{unit}");
        let inside = &self.text[container.start + 1..container.end - 1];
        let close = if inside.contains('\n') { String::new() } else { format!("{newline}{outer}") };
        vec![(container.start + 1, format!("{newline}{indent}{}{close}", entry(&indent)))]
    }

    /// Inserts an entry on the same line as the last one.
    fn beside(&self, container: Range, last: Range, entry: String) -> Insertions {
        let space = if self.style.unit.is_some() { " " } else { "" };
        match self.comma(last, container) {
            Some(comma_end) => vec![(comma_end, format!("{space}{entry}"))],
            None => vec![(last.end, format!(",{space}{entry}"))],
        }
    }

    /// Returns the tokens between the last entry and the end of its container.
    fn behind(&self, last: Range, container: Range) -> impl Iterator<Item = &(&Token<'_>, Range)> {
        self.tokens.iter().filter(move |(_, range)| range.start >= last.end && range.end < container.end)
    }

    /// Returns the end of the comma after the last entry. Returns `None` if there is no comma.
    fn comma(&self, last: Range, container: Range) -> Option<usize> {
        let mut commas = self.behind(last, container).filter(|(token, _)| matches!(token, Token::Comma));
        commas.next().map(|(_, range)| range.end)
    }

    /// Returns whether there is a comma after the last entry, and the end of that entry's line, comments included.
    fn comma_and_line_end(&self, last: Range, container: Range) -> (bool, usize) {
        let mut line_end = last.end;
        for (_, range) in self.behind(last, container) {
            if self.text[line_end..range.start].contains('\n') {
                break;
            }
            line_end = range.end;
        }
        match self.comma(last, container) {
            // The comma may be at the start of a later line.
            Some(comma_end) => (true, line_end.max(comma_end)),
            None => (false, line_end),
        }
    }

    /// Returns the indentation of this container's entries: the indentation of the line on which the last one starts.
    fn entry_indentation(&self, container: Range, last: Range, unit: &str) -> String {
        let line = self.line_start(last.start);
        if line > container.start {
            return indentation(&self.text[line..]).to_owned();
        }
        format!("{}{unit}", indentation(&self.text[self.line_start(container.start)..]))
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }
}

/// Returns the value that belongs under the key at this depth of the entry's path.
fn rest_of(wish: &Wish, depth: usize) -> Value {
    let shortened = match wish.clone() {
        Wish::Member { path, key, value } => Wish::Member { path: path[depth..].to_vec(), key, value },
        Wish::Element { path, value } => Wish::Element { path: path[depth..].to_vec(), value },
    };
    from_top(&shortened)
}

fn as_object<'n, 't>(node: &'n Node<'t>, path: &[String]) -> Result<&'n Object<'t>, EditProblem> {
    match node {
        Node::Object(object) => Ok(object),
        _ => Err(wrong_kind(path, "an object")),
    }
}

/// Returns the value of a key. For duplicate keys, returns the last one, which parsers use.
fn find<'n, 't>(object: &'n Object<'t>, key: &str) -> Option<&'n Node<'t>> {
    object.properties.iter().rev().find(|property| property.name.as_str() == key).map(|property| &property.value)
}

fn wrong_kind(path: &[String], wanted: &str) -> EditProblem {
    match path {
        [] => EditProblem(format!("it is not {wanted}")),
        path => EditProblem(format!("{:?} is not {wanted}", path.join("."))),
    }
}

/// Selects the values to remove from a document.
pub(crate) struct Cut<'a> {
    /// Returns whether the value at this path is one of ours.
    pub(crate) is_ours: &'a dyn Fn(&[String], &Value) -> bool,
    /// Returns whether there was a container at this path before the installation. Such a container stays, even if it
    /// becomes empty.
    pub(crate) was_there: &'a dyn Fn(&[String]) -> bool,
}

/// Removes our elements and members, with the containers that become empty.
pub(crate) fn take_out(text: &str, cut: &Cut<'_>) -> Result<String, EditProblem> {
    let root = CstRootNode::parse(text, &options()).map_err(|error| EditProblem(error.to_string()))?;
    if let Some(top) = root.object_value() {
        cut.clean_object(&top, &mut Vec::new());
    }
    Ok(root.to_string())
}

impl Cut<'_> {
    /// Removes our entries below a value. Returns whether there were any.
    fn clean(&self, node: &CstNode, path: &mut Vec<String>) -> bool {
        if let Some(object) = node.as_object() {
            return self.clean_object(&object, path);
        }
        node.as_array().is_some_and(|array| self.clean_array(&array, path))
    }

    fn clean_object(&self, object: &CstObject, path: &mut Vec<String>) -> bool {
        let mut found = false;
        for property in object.properties() {
            let (Some(name), Some(value)) = (property.decoded_name(), property.value()) else { continue };
            path.push(name);
            let is_ours = self.is_ours(path, &value);
            found |= is_ours;
            if is_ours {
                property.remove();
            } else if self.clean(&value, path) {
                found = true;
                if is_empty(&value) && !(self.was_there)(path) {
                    property.remove();
                }
            }
            path.pop();
        }
        found
    }

    fn clean_array(&self, array: &CstArray, path: &mut Vec<String>) -> bool {
        let mut found = false;
        for element in array.elements() {
            if self.is_ours(path, &element) {
                element.remove();
                found = true;
            } else if self.clean(&element, path) {
                found = true;
                // A matcher without hooks has no effect.
                if element.as_object().is_some_and(|object| object.get("hooks").is_none()) {
                    element.remove();
                }
            }
        }
        found
    }

    fn is_ours(&self, path: &[String], node: &CstNode) -> bool {
        parse(&node.to_string()).is_ok_and(|value| (self.is_ours)(path, &value))
    }
}

fn is_empty(node: &CstNode) -> bool {
    match (node.as_object(), node.as_array()) {
        (Some(object), _) => object.properties().is_empty(),
        (_, Some(array)) => array.elements().is_empty(),
        _ => false,
    }
}
