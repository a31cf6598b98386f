//! Adds patterns to the text of a settings file, and keeps every other byte.

use toml_edit::{Array, DocumentMut, Item, RawString, Table, Value};

use crate::error::Result;

/// The mark that some editors put in front of UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// The indentation of a line in a list, if nothing shows how its author indents.
const INDENT: &str = "    ";

/// Returns the text with these patterns in it, and all patterns that it has then.
pub(crate) fn with_patterns(before: &str, patterns: &[String]) -> Result<(String, Vec<String>), String> {
    let text = before.strip_prefix(BYTE_ORDER_MARK).unwrap_or(before);
    let parsed = |text: &str| text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned());
    let mut document: DocumentMut = parsed(text)?;
    if !document.contains_key("scan") {
        document = parsed(&with_table(text))?;
    }
    let scan = document.entry("scan").or_insert_with(|| Item::Table(Table::new()));
    let scan = scan.as_table_like_mut().ok_or("[scan] is not a table")?;
    let exclude = scan.entry("exclude").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let exclude = exclude.as_array_mut().ok_or("[scan] exclude is not a list")?;
    for pattern in patterns {
        if !exclude.iter().any(|value| value.as_str() == Some(pattern)) {
            push(exclude, pattern);
        }
    }
    let all = exclude.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
    let after = with_line_endings(text, &document.to_string());
    let mark = before.strip_suffix(text).unwrap_or_default();
    Ok((format!("{mark}{after}"), all))
}

/// Returns the text with an empty table at its end, after an empty line.
fn with_table(text: &str) -> String {
    let end = match text {
        _ if text.trim().is_empty() => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{end}[scan]\n")
}

/// Adds a pattern to a list. A list over several lines gets a new line. Any other grows at its end. Comments stay on
/// their lines.
fn push(list: &mut Array, pattern: &str) {
    let indent = list.iter().last().and_then(|last| indent(raw(last.decor().prefix())).map(str::to_owned));
    let gap = take_gap(list);
    // Text on the lines before that of the closing bracket stays before the new value.
    let (above, closing) = gap.split_at(gap.rfind('\n').unwrap_or(0));
    let prefix = match indent {
        _ if list.is_empty() && !gap.contains('\n') => gap.clone(),
        None if !gap.contains('\n') => " ".to_owned(),
        indent => format!("{above}\n{}", indent.as_deref().unwrap_or(INDENT)),
    };
    list.push_formatted(Value::from(pattern).decorated(prefix, ""));
    list.set_trailing(closing);
}

/// Removes and returns the text between the last value, or its comma, and the closing bracket.
fn take_gap(list: &mut Array) -> String {
    let trailing = raw(Some(list.trailing())).to_owned();
    let has_comma = list.trailing_comma();
    let last = if has_comma { None } else { list.iter_mut().last() };
    let suffix = last.map(|last| {
        let suffix = raw(last.decor().suffix()).to_owned();
        last.decor_mut().set_suffix("");
        suffix
    });
    list.set_trailing("");
    suffix.unwrap_or_default() + &trailing
}

fn raw(text: Option<&RawString>) -> &str {
    text.and_then(RawString::as_str).unwrap_or_default()
}

/// Returns the indentation of a value that starts a line.
fn indent(prefix: &str) -> Option<&str> {
    prefix.rsplit_once('\n').map(|(_, indent)| indent)
}

/// Returns the text with the line endings that it had. New lines end like the lines around them.
fn with_line_endings(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let same = |(old, new): &(&&str, &&str)| bare(old) == bare(new);
    let first = old.iter().zip(&new).take_while(same).count();
    let last = old[first..].iter().rev().zip(new[first..].iter().rev()).take_while(same).count();
    let around = old[..old.len().min(first + 1)].iter().rev().find(|line| line.ends_with('\n'));
    let ending = if around.is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let mut text = old[..first].concat();
    let mut changed = &old[first..old.len() - last];
    for line in &new[first..new.len() - last] {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(ending);
        }
        if let Some(at) = changed.iter().position(|old| bare(old) == bare(line)) {
            text.push_str(changed[at]);
            changed = &changed[at + 1..];
        } else {
            text.push_str(bare(line));
            text.push_str(if line.ends_with('\n') { ending } else { "" });
        }
    }
    text + &old[old.len() - last..].concat()
}

/// Returns a line without its ending.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(before: &str) -> String {
        with_patterns(before, &["b".to_owned()]).unwrap().0
    }

    #[test]
    fn a_list_grows_as_its_writer_would_have_it() {
        for (before, after) in [
            ("", "[scan]\nexclude = [\"b\"]\n"),
            ("[scan]\n", "[scan]\nexclude = [\"b\"]\n"),
            ("[state]\nprogress = \"p\"\n", "[state]\nprogress = \"p\"\n\n[scan]\nexclude = [\"b\"]\n"),
            ("scan.exclude = [\"a\"]\n", "scan.exclude = [\"a\", \"b\"]\n"),
            ("scan = { exclude = [] }\n", "scan = { exclude = [\"b\"] }\n"),
            ("[scan]\nexclude = [ \"a\" ] # why\n", "[scan]\nexclude = [ \"a\", \"b\" ] # why\n"),
            ("[scan]\nexclude = [\n  \"a\"\n]\n", "[scan]\nexclude = [\n  \"a\",\n  \"b\"\n]\n"),
            ("[scan]\nexclude = [\n  \"a\",\n]\n", "[scan]\nexclude = [\n  \"a\",\n  \"b\",\n]\n"),
            (
                "[scan]\nexclude = [\n\t\"a\" # why\n\t# end\n]\n",
                "[scan]\nexclude = [\n\t\"a\", # why\n\t# end\n\t\"b\"\n]\n",
            ),
            ("[scan]\nexclude = [\n  \"a\", # why\n  ]\n", "[scan]\nexclude = [\n  \"a\", # why\n  \"b\",\n  ]\n"),
            ("[scan]\nexclude = [\n  # none\n]\n", "[scan]\nexclude = [\n  # none\n    \"b\"\n]\n"),
            ("[scan]\nexclude = [\"a\",\n  \"c\"]\n", "[scan]\nexclude = [\"a\",\n  \"c\",\n  \"b\"]\n"),
            ("[scan]\nexclude = [\"b\"\n]", "[scan]\nexclude = [\"b\"\n]"),
        ] {
            assert_eq!(added(before), after, "{before:?}");
        }
    }

    #[test]
    fn line_endings_and_a_mark_in_front_stay() {
        let windows = "\u{feff}# mine\r\n[scan]\r\nexclude = [\r\n  \"a\"\r\n]\r\n\r\n[retention]\r\nstep = 3";
        assert_eq!(added(windows), windows.replace("\"a\"", "\"a\",\r\n  \"b\""));
        let mixed = "# one\n# two\r\n[scan]\r\nexclude = [\"a\"]\n# three\r\n# four\n";
        assert_eq!(added(mixed), mixed.replace("\"a\"", "\"a\", \"b\""));
        let mixed = "[scan]\r\nexclude = [\r\n  \"a\"\n\n # end\r\n]\r\n";
        let longer = "[scan]\r\nexclude = [\r\n  \"a\",\n\n # end\r\n  \"b\"\n]\r\n";
        assert_eq!(added(mixed), longer);
        let without_list = "[state]\r\nprogress = \"p\"\r\n";
        assert_eq!(added(without_list), format!("{without_list}\r\n[scan]\r\nexclude = [\"b\"]\r\n"));
        assert_eq!(added("# x"), "# x\n\n[scan]\nexclude = [\"b\"]\n");
        assert_eq!(added("[state]\r\n# x"), "[state]\r\n# x\r\n\r\n[scan]\r\nexclude = [\"b\"]\r\n");
        assert_eq!(added("[state]\r\n\r\n[scan]"), "[state]\r\n\r\n[scan]\r\nexclude = [\"b\"]\r\n");
        let has_it = "\u{feff}[scan]\r\nexclude = [\"b\"]\n";
        assert_eq!(added(has_it), has_it);
    }
}
