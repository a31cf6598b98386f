//! Checks `ARCHITECTURE.md` against the source tree.
//!
//! A heading that names a folder, such as ``### `store/`: …``, opens the section of that folder. The tables in a section
//! name its files in their first column.

use std::collections::{BTreeMap, BTreeSet};

use backtrail_testkit::{names_in, repository, repository_files, repository_text};

const PAGE: &str = "ARCHITECTURE.md";

/// The source folders that the page describes file by file.
const DESCRIBED: [&str; 3] = ["crates/core/src", "crates/cli/src", "crates/server/src"];

/// The folder that paths are relative to if the section has none.
const DEFAULT_FOLDER: &str = "crates/core/src";

/// One section of the page: everything from a heading to the next one.
struct Section {
    /// The folder that the heading names.
    folder: Option<String>,
    lines: Vec<String>,
}

#[test]
fn every_source_file_has_a_row() {
    let files = DESCRIBED.into_iter().flat_map(repository_files);
    let expected: BTreeSet<String> = files.filter(|path| is_source(path)).collect();
    assert!(expected.len() > 100, "the sources were not found");
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for row in sections(&repository_text(PAGE)).iter().flat_map(rows_of) {
        *rows.entry(row).or_default() += 1;
    }
    let missing: Vec<&String> = expected.iter().filter(|file| !rows.contains_key(*file)).collect();
    assert!(missing.is_empty(), "source files without a row in {PAGE}: {missing:#?}");
    let stale: Vec<&String> = rows.keys().filter(|row| !expected.contains(*row)).collect();
    assert!(stale.is_empty(), "rows in {PAGE} without a source file: {stale:#?}");
    let repeated: Vec<&String> = rows.iter().filter(|(_, count)| **count > 1).map(|(row, _)| row).collect();
    assert!(repeated.is_empty(), "source files with more than one row in {PAGE}: {repeated:#?}");
}

#[test]
fn a_file_has_its_row_in_the_section_of_its_folder() {
    let sections = sections(&repository_text(PAGE));
    let folders: Vec<&String> = sections.iter().filter_map(|section| section.folder.as_ref()).collect();
    for section in &sections {
        let Some(folder) = &section.folder else { continue };
        for row in rows_of(section) {
            let nearest = folders.iter().filter(|other| row.starts_with(&format!("{other}/"))).max_by_key(|f| f.len());
            assert_eq!(nearest, Some(&folder), "{row} is in the section of {folder}");
        }
    }
}

#[test]
fn every_path_on_the_page_exists() {
    let mut checked = 0;
    for section in sections(&repository_text(PAGE)) {
        let folder = section.folder.as_deref().unwrap_or(DEFAULT_FOLDER);
        for name in section.lines.iter().flat_map(|line| quoted(line)).filter(|name| is_path(name)) {
            let candidates = [name.to_owned(), format!("{folder}/{name}")];
            let exists = |path: &String| {
                let path = repository().join(path);
                if name.ends_with('/') { path.is_dir() } else { path.is_file() }
            };
            assert!(candidates.iter().any(exists), "{PAGE} names {name}, which does not exist");
            checked += 1;
        }
    }
    assert!(checked > DESCRIBED.len(), "no paths were found");
}

#[test]
fn the_diagram_shows_every_module_and_operation() {
    let page = repository_text(PAGE);
    let (_, library) = page.split_once("\n## The library").expect("a section about the library");
    let (_, rest) = library.split_once("```text\n").expect("a diagram");
    let (diagram, _) = rest.split_once("```").expect("the end of the diagram");
    let shown: BTreeSet<&str> = diagram.split_whitespace().collect();
    let not_a_layer = ["lib", "fuzzing", "mod"];
    for folder in [DEFAULT_FOLDER.to_owned(), format!("{DEFAULT_FOLDER}/operations")] {
        for name in names_in(&folder) {
            let label = name.strip_suffix(".rs").map_or_else(|| format!("{name}/"), str::to_owned);
            let is_shown = shown.contains(label.as_str()) || not_a_layer.contains(&label.as_str());
            assert!(is_shown, "the diagram in {PAGE} lacks {label}");
        }
    }
}

#[test]
fn lines_are_wrapped() {
    let page = repository_text(PAGE);
    let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "lines with more than 100 columns in {PAGE}: {long:#?}");
}

#[test]
fn sections_and_rows_are_found() {
    let text = "## The library: `crates/core/src/`\n\n| `lib.rs` | names |\n### `store/`: git\n| `packs/pack.rs` | \
                `PackWriter` |\n## A save\n`store/` and `x`\n";
    let sections = sections(text);
    let folders: Vec<Option<&str>> = sections.iter().map(|section| section.folder.as_deref()).collect();
    assert_eq!(folders, [None, Some("crates/core/src"), Some("crates/core/src/store"), None]);
    let rows: Vec<String> = sections.iter().flat_map(rows_of).collect();
    assert_eq!(rows, ["crates/core/src/lib.rs", "crates/core/src/store/packs/pack.rs"]);
    assert_eq!(quoted("`store/` and `x`, ``"), ["store/", "x", ""]);
    assert!(is_path("store/") && is_path("a.rs") && is_path("docs/json.md") && !is_path("PackWriter"));
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections = vec![Section { folder: None, lines: Vec::new() }];
    let mut outer: Option<String> = None;
    for line in text.lines() {
        let depth = line.chars().take_while(|character| *character == '#').count();
        if depth > 1 {
            let named = quoted(line).into_iter().find(|name| name.ends_with('/'));
            let named = named.map(|name| name.trim_end_matches('/').to_owned());
            let folder = match (depth, &outer, named) {
                (2, _, named) => named,
                (_, Some(outer), Some(named)) => Some(format!("{outer}/{named}")),
                (..) => None,
            };
            if depth == 2 {
                outer.clone_from(&folder);
            }
            sections.push(Section { folder, lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push(line.to_owned());
        }
    }
    sections
}

/// Returns the source files in the first column of the tables of a section. The paths start at the top of the
/// repository.
fn rows_of(section: &Section) -> Vec<String> {
    let Some(folder) = &section.folder else { return Vec::new() };
    let cells = section.lines.iter().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(name, _)| format!("{folder}/{name}")).filter(|path| is_source(path)).collect()
}

/// Returns the texts between backticks.
fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn is_path(name: &str) -> bool {
    !name.contains(' ') && [".rs", ".md", "/"].iter().any(|end| name.ends_with(end))
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs")
}
