//! `docs/cli.md` is the help text of the program and of its commands.

use std::{fs, path::Path};

use crate::place::Place;

#[test]
fn the_reference_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let reference = reference(&Place::new());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &reference).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == reference, "docs/cli.md is stale: run UPDATE_DOCS=1 cargo test -p backtrail-cli reference");
}

fn reference(place: &Place) -> String {
    let program = place.ok(["--help"]);
    let mut page = String::from(
        "# The command line\n\n<!-- Made by UPDATE_DOCS=1 cargo test -p backtrail-cli reference; don't edit. -->\n\n",
    );
    page.push_str(&section("backtrail", &program));
    for command in commands(&program) {
        let help = place.ok([command, "--help"]);
        let own = help.split("\nGlobal options:\n").next().unwrap_or_default();
        page.push_str(&section(&format!("backtrail {command}"), own));
    }
    page
}

/// Returns the commands that the help of the program lists.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let words = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    words.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "help")
}

fn section(title: &str, help: &str) -> String {
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("## `{title}`\n\n```text\n{}\n```\n\n", help.join("\n"))
}
