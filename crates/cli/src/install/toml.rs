//! Adds a table to TOML, and removes it again. Everything else is preserved.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Value, value};

use super::{json::EditProblem, text_edits::Draft};

/// A table that describes a program to start, at `[table.key]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// The name of the top-level table.
    pub(crate) table: &'static str,
    /// The key in that table.
    pub(crate) key: &'static str,
    /// The program.
    pub(crate) command: String,
    /// The arguments of the program.
    pub(crate) args: Vec<String>,
    /// Environment variables that the agent passes on to the program.
    pub(crate) env_vars: &'static [&'static str],
}

/// Parses TOML.
pub(super) fn parse(text: &str) -> Result<DocumentMut, EditProblem> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let message = error.to_string();
        EditProblem(message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; "))
    })
}

/// The result of looking at the server's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Present {
    Nothing,
    Server {
        command: String,
        args: Vec<String>,
        /// Set if it contains no more than an installation writes.
        is_plain: bool,
    },
    SomethingElse,
}

/// Looks for a server.
pub(crate) fn look(text: &str, server: &Server) -> Result<Present, EditProblem> {
    let document = parse(text)?;
    let Some(table) = document.get(server.table) else { return Ok(Present::Nothing) };
    let table = table.as_table_like().ok_or_else(|| EditProblem(format!("{:?} is not a table", server.table)))?;
    let Some(item) = table.get(server.key) else { return Ok(Present::Nothing) };
    let Some(found) = item.as_table_like() else { return Ok(Present::SomethingElse) };
    let command = found.get("command").and_then(Item::as_str);
    let args = found.get("args").and_then(Item::as_array);
    let args = args.map(|args| args.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    Ok(match command {
        Some(command) => Present::Server {
            command: command.to_owned(),
            args: args.unwrap_or_default(),
            is_plain: found.iter().all(|(key, item)| is_written(key, item, server)),
        },
        None => Present::SomethingElse,
    })
}

/// Returns whether an installation writes this item. Any program counts.
fn is_written(key: &str, item: &Item, server: &Server) -> bool {
    match key {
        "command" | "args" => true,
        "env_vars" => item.as_array().is_some_and(|names| {
            names.len() == server.env_vars.len()
                && names.iter().map(Value::as_str).eq(server.env_vars.iter().copied().map(Some))
        }),
        _ => false,
    }
}

/// Returns the ranges of the server's command and arguments.
pub(crate) fn places_of_call(text: &str, server: &Server) -> Vec<Range<usize>> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let table = document.get(server.table).and_then(Item::as_table_like);
    let Some(found) = table.and_then(|table| table.get(server.key)).and_then(Item::as_table_like) else {
        return Vec::new();
    };
    ["command", "args"].into_iter().filter_map(|key| found.get(key)?.as_value()?.span()).collect()
}

/// Replaces the command and the arguments of an existing server. The rest of it stays.
pub(crate) fn replace_call(draft: &mut Draft, server: &Server) -> Result<(), EditProblem> {
    let wished = [Value::from(server.command.as_str()), server.args.iter().collect::<Value>()];
    let places = places_of_call(draft.text(), server);
    let mut edits: Vec<(Range<usize>, Value)> = places.into_iter().zip(wished).collect();
    edits.sort_by_key(|(range, _)| range.start);
    for (range, wished) in edits.into_iter().rev() {
        let present = draft.text()[range.clone()].parse::<Value>();
        if !present.is_ok_and(|present| is_same(&present, &wished)) {
            draft.replace(range, &wished.to_string());
        }
    }
    parse(draft.text()).map(drop)
}

/// Returns whether two values are equal, regardless of their notation.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => one.iter().map(Value::as_str).eq(other.iter().map(Value::as_str)),
        _ => one.as_str().is_some() && one.as_str() == other.as_str(),
    }
}

/// Adds the server, which must not exist yet.
pub(crate) fn add(draft: &mut Draft, server: &Server) -> Result<(), EditProblem> {
    parse(draft.text())?;
    let text = draft.text();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let apart = match text {
        "" => String::new(),
        text if text.ends_with('\n') => newline.to_owned(),
        _ => format!("{newline}{newline}"),
    };
    let mut lines = DocumentMut::new();
    lines["command"] = value(&server.command);
    lines["args"] = value(server.args.iter().collect::<Value>());
    lines["env_vars"] = value(server.env_vars.iter().copied().collect::<Value>());
    let body = lines.to_string().replace('\n', newline);
    let piece = format!("{apart}[{}.{}]{newline}{body}", server.table, server.key);
    let appended = format!("{text}{piece}");
    if parse(&appended).is_ok() {
        draft.insert(text.len(), &piece);
        return Ok(());
    }
    // The top-level table is an inline table, which can't be extended elsewhere: the server is inserted before its end.
    let no_room = || EditProblem(format!("a server can't be added to {:?}", server.table));
    let document = Document::parse(text).map_err(|_| no_room())?;
    let table = document.get(server.table).and_then(Item::as_inline_table).ok_or_else(no_room)?;
    let end = table.span().ok_or_else(no_room)?.end;
    let before = text[..end].strip_suffix('}').ok_or_else(no_room)?.trim_end_matches([' ', '\t']);
    let comma = if before.ends_with(['{', ',']) { " " } else { ", " };
    let args = server.args.iter().collect::<Value>();
    let command = Value::from(server.command.as_str());
    let env_vars = server.env_vars.iter().copied().collect::<Value>();
    let piece = format!("{comma}{} = {{ command = {command}, args = {args}, env_vars = {env_vars} }}", server.key);
    let at = before.len();
    let grown = format!("{before}{piece}{}", &text[at..]);
    parse(&grown).map_err(|_| no_room())?;
    draft.insert(at, &piece);
    Ok(())
}

/// Removes the server. Also removes the table around it if that becomes empty and did not exist before.
pub(crate) fn take_out(text: &str, server: &Server, table_was_there: bool) -> Result<String, EditProblem> {
    // The parser writes plain newlines. If the text had CRLF line endings, they are restored in every line.
    let with_returns = text.contains("\r\n");
    let mut document = parse(text)?;
    let Some(table) = document.get_mut(server.table).and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    table.remove(server.key);
    if table.is_empty() && !table_was_there {
        document.remove(server.table);
    }
    let text = document.to_string();
    Ok(if with_returns && !text.contains('\r') { text.replace('\n', "\r\n") } else { text })
}

/// Returns whether the top-level table exists.
pub(crate) fn has_table(text: &str, server: &Server) -> bool {
    parse(text).is_ok_and(|document| document.get(server.table).and_then(Item::as_table_like).is_some())
}

/// Returns whether the document is empty.
pub(crate) fn is_empty(text: &str) -> bool {
    parse(text).is_ok_and(|document| document.as_table().is_empty()) && text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::text_edits::without_pieces;
    use super::*;

    fn server() -> Server {
        let (command, args) = ("/b in/backtrail".into(), vec!["mcp".into()]);
        Server { table: "mcp_servers", key: "backtrail", command, args, env_vars: &["HOME"] }
    }

    #[test]
    fn a_server_is_added_to_every_form_of_table() {
        let texts = [
            "",
            "# only a comment",
            "model = \"m\"  # odd\r\n[mcp_servers.docs]\r\ncommand='d'\r\n",
            "[mcp_servers]\n",
            "mcp_servers = { docs = { command = \"d\" } } # one line\n[profiles.x]\na = 1\n",
            "mcp_servers = {}\n",
            "mcp_servers.docs.command = \"d\"\nmodel = 'm'\n",
            "[[other]]\na = 1\n[[other]]\na = 2",
        ];
        for text in texts {
            let mut draft = Draft::of(text);
            assert_eq!(look(text, &server()), Ok(Present::Nothing), "{text}");
            add(&mut draft, &server()).unwrap();
            let (command, args) = ("/b in/backtrail".into(), vec!["mcp".into()]);
            let present = Present::Server { command, args, is_plain: true };
            assert_eq!(look(draft.text(), &server()), Ok(present), "{}", draft.text());
            let passed = parse(draft.text()).unwrap()["mcp_servers"]["backtrail"]["env_vars"].to_string();
            assert_eq!(passed.trim(), "[\"HOME\"]");
            assert_eq!(without_pieces(draft.text(), &draft.pieces()).as_deref(), Some(text));
            let cleaned = take_out(draft.text(), &server(), has_table(text, &server())).unwrap();
            assert_eq!(look(&cleaned, &server()), Ok(Present::Nothing), "{cleaned}");
        }
    }

    #[test]
    fn a_value_that_is_not_a_table_is_refused() {
        assert!(look("mcp_servers = 1\n", &server()).is_err());
        assert!(look("mcp_servers = [\n", &server()).is_err());
        assert_eq!(look("[mcp_servers]\nbacktrail = 1\n", &server()), Ok(Present::SomethingElse));
    }
}
