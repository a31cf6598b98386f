//! Checks that the texts of the repository are plain English.
//!
//! A sentence names its actor: the user, the agent, another process. A doc comment is a statement that starts with a
//! verb or with the noun that it defines, not a question.

use backtrail_testkit::{names_in, repository, repository_files};

/// Words that hide the actor, or how sure a statement is.
const VAGUE_WORDS: &[&str] = &["somebody", "nobody", "whoever", "perhaps"];

/// First words of a doc comment that is a question, or half of one.
const QUESTION_WORDS: &[&str] =
    &["What", "Who", "Where", "Which", "How", "Is", "Does", "Has", "Did", "Are", "Was", "Can", "May"];

const DIRECTORIES: &[&str] = &["bench", "breaks", "crates", "docs", "examples", "fuzz", "integrations"];

/// A file that may contain these words.
struct Exception {
    file: &'static str,
    words: &'static [&'static str],
    #[expect(dead_code, reason = "for the reader of the list")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "crates/testkit/tests/plain_english.rs",
        words: VAGUE_WORDS,
        reason: "lists the words, and tests that they are found",
    },
    Exception { file: "bench/counts", words: VAGUE_WORDS, reason: "counts the words" },
];

#[test]
fn no_text_uses_vague_words() {
    let mut found = Vec::new();
    let mut unused: Vec<(&str, &str)> =
        EXCEPTIONS.iter().flat_map(|exception| exception.words.iter().map(|word| (exception.file, *word))).collect();
    for (file, text) in texts() {
        for (line, word) in vague_words(&text) {
            let is_exception = |exception: &Exception| exception.file == file && exception.words.contains(&word);
            if EXCEPTIONS.iter().any(is_exception) {
                unused.retain(|exception| *exception != (file.as_str(), word));
            } else {
                found.push(format!("{file}:{line}: {word}"));
            }
        }
    }
    assert!(found.is_empty(), "name the user, the agent or the process instead:\n  {}", found.join("\n  "));
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
}

#[test]
fn no_doc_comment_starts_like_a_question() {
    let mut found = Vec::new();
    for (file, text) in texts() {
        let openings = if file.ends_with(".rs") {
            rust_openings(&text)
        } else if is_python(&file, &text) {
            python_openings(&text)
        } else {
            continue;
        };
        let questions = openings.into_iter().filter(|(_, opening)| is_question(opening));
        found.extend(questions.map(|(line, opening)| format!("{file}:{line}: {opening}")));
    }
    assert!(found.is_empty(), "start with a verb or with the noun it defines:\n  {}", found.join("\n  "));
}

#[test]
fn the_texts_are_those_that_people_write() {
    let files: Vec<String> = texts().into_iter().map(|(file, _)| file).collect();
    for expected in ["README.md", "check", "bench/compare", "crates/core/src/lib.rs", "docs/cli.md", "fuzz/run"] {
        assert!(files.iter().any(|file| file == expected), "{expected} is not checked");
    }
    for generated in ["Cargo.lock", "LICENSE", "target/", "fuzz/corpus/"] {
        assert!(!files.iter().any(|file| file.contains(generated)), "{generated} is checked");
    }
}

#[test]
fn a_vague_word_is_seen_in_any_case_and_within_names() {
    let text = "Nobody's\nfn is_somebody_else() {}\nperhapsy bodies\n// whoever, PERHAPS\n";
    assert_eq!(vague_words(text), [(1, "nobody"), (2, "somebody"), (4, "whoever"), (4, "perhaps")]);
}

#[test]
fn the_first_words_of_a_doc_comment_are_seen() {
    let rust = "//! The module.\n//! What follows is no opening.\n\n/// Is it so?\n/// Second line.\n#[x]\n    /// Wholly\n\
                // Where\n//// How\n";
    let expected = [(1, "The module."), (4, "Is it so?"), (7, "Wholly")];
    assert_eq!(rust_openings(rust), expected.map(|(line, text)| (line, text.to_owned())));
    let python = "\"\"\"What it is.\"\"\"\ndef f():\n    r\"\"\"\n    How it is done.\n    \"\"\"\n    x = \"\"\"Is\n\"\"\"\n\
                  \"\"\"Says\nmore.\"\"\"\n";
    let expected = [(1, "What it is."), (3, "How it is done."), (8, "Says")];
    assert_eq!(python_openings(python), expected.map(|(line, text)| (line, text.to_owned())));
    assert!(is_question("What it is.") && is_question("Is it so?") && is_question("How"));
    assert!(!is_question("Whatever") && !is_question("Issues") && !is_question("The what"));
}

/// Returns the texts of the repository that people write: their paths and contents.
fn texts() -> Vec<(String, String)> {
    let top = names_in("").into_iter().filter(|name| repository().join(name).is_file());
    let below = DIRECTORIES.iter().flat_map(|directory| repository_files(directory));
    let is_ours = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        !name.ends_with(".lock") && !name.starts_with("LICENSE")
    };
    let read = |path: String| {
        // A compiled module may be among the sources.
        let text = String::from_utf8(std::fs::read(repository().join(&path)).expect("a readable file")).ok()?;
        Some((path, text))
    };
    top.chain(below).filter(is_ours).filter_map(read).collect()
}

/// Returns the vague words of a text, with the numbers of their lines. The parts of a name in snake case count as words.
fn vague_words(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
        let vague = words.filter_map(|word| VAGUE_WORDS.iter().find(|vague| word.eq_ignore_ascii_case(vague)));
        found.extend(vague.map(|word| (number, *word)));
    }
    found
}

fn is_question(opening: &str) -> bool {
    let first = opening.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    QUESTION_WORDS.contains(&first)
}

/// Returns the first line of each doc comment, with its number.
fn rust_openings(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut previous = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker) && !line.starts_with("////"));
        if let Some(marker) = marker.filter(|_| marker != previous) {
            found.push((number, line[marker.len()..].trim().to_owned()));
        }
        previous = marker;
    }
    found
}

/// Returns the first line with text of each docstring, with the number of the line that opens it.
fn python_openings(text: &str) -> Vec<(usize, String)> {
    const QUOTES: &str = "\"\"\"";
    let mut found = Vec::new();
    let mut is_inside = false;
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let start = line.trim_start().trim_start_matches(['r', 'R']);
        if let Some(opening) = start.strip_prefix(QUOTES).filter(|_| !is_inside) {
            let next = lines.peek().map_or("", |(_, next)| next);
            let opening = if opening.trim().is_empty() { next } else { opening };
            found.push((number, opening.trim().trim_end_matches(QUOTES).to_owned()));
        }
        is_inside ^= line.matches(QUOTES).count() % 2 == 1;
    }
    found
}

fn is_python(file: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    file.ends_with(".py") || file.ends_with(".pyi") || first.starts_with("#!") && first.contains("python")
}
