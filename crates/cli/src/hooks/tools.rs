//! Finds out whether a tool call may change files, and which files it names.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    event::ToolCall,
    shell_commands::{self, WordPiece},
};
use crate::output::shell_words;

/// Tools of all agents that only read. The names are reduced to lower-case letters and digits. An unknown tool may
/// change files.
const READERS: &[&str] = &[
    "activateskill",
    "agent",
    "askfollowupquestion",
    "askquestion",
    "askuser",
    "askuserquestion",
    "attemptcompletion",
    "bashoutput",
    "browseraction",
    "codebasesearch",
    "enterplanmode",
    "exitplanmode",
    "filesearch",
    "getinternaldocs",
    "glob",
    "googlewebsearch",
    "grep",
    "grepsearch",
    "killshell",
    "list",
    "listcodedefinitionnames",
    "listdir",
    "listdirectory",
    "listfiles",
    "listmcpresources",
    "ls",
    "lsp",
    "notebookread",
    "planmoderespond",
    "question",
    "read",
    "readfile",
    "readfiles",
    "readlints",
    "readmanyfiles",
    "readmcpresource",
    "ripgrep",
    "searchfilecontent",
    "searchfiles",
    "semsearch",
    "skill",
    "task",
    "taskoutput",
    "todoread",
    "todowrite",
    "toolsearch",
    "updateplan",
    "updatetodos",
    "view",
    "viewimage",
    "webfetch",
    "websearch",
    "writetodos",
];

/// Returns whether a call may change files. Returns `false` for the tools of our own MCP server, which takes its own
/// checkpoints.
pub(crate) fn may_change_files(call: &ToolCall) -> bool {
    !is_own(&call.name) && READERS.binary_search(&plain_name(call).as_str()).is_err()
}

/// The prefixes that agents put before the tools of our server, also if it comes with a plugin.
const OWN_SERVER: &[&str] = &[
    "mcp__backtrail__",
    "mcp__plugin_backtrail_backtrail__",
    "mcp_backtrail_",
    "backtrail__",
    "backtrail_",
    "backtrail-",
    "backtrail.",
    "backtrail/",
];

/// Returns whether this is a tool of our own server, under the name that `install` gives it. Tools of other servers may
/// also have "backtrail" in their names.
fn is_own(name: &str) -> bool {
    let tools = OWN_SERVER.iter().filter_map(|server| name.strip_prefix(server));
    tools.into_iter().any(|tool| backtrail_server::TOOL_NAMES.contains(&tool))
}

/// Keys that hold a file name in the input of a tool.
const FILE_KEYS: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "target_file",
    "targetFile",
    "file",
    "old_path",
    "new_path",
    "source",
    "destination",
];

/// The maximum number of paths that are taken from one call.
pub(super) const MAX_PATHS: usize = 64;

/// Returns the files that a call names as about to change, in the call's own spelling.
pub(crate) fn named_files(call: &ToolCall) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(input) = call.input.as_object() {
        for key in FILE_KEYS {
            found.extend(input.get(*key).and_then(Value::as_str).map(PathBuf::from));
        }
        for key in ["paths", "files", "file_paths", "edits"] {
            for entry in input.get(key).and_then(Value::as_array).into_iter().flatten() {
                let inner = entry.as_object().and_then(|entry| FILE_KEYS.iter().find_map(|key| entry.get(*key)));
                found.extend(inner.unwrap_or(entry).as_str().map(PathBuf::from));
            }
        }
    }
    for text in texts(&call.input) {
        if text.contains("*** Begin Patch") {
            found.extend(patched_files(text));
        }
    }
    for line in several_lines(&call.input) {
        found.extend(files_in_line(&line));
    }
    for key in ["command", "cmd", "script"] {
        match call.input.get(key) {
            Some(Value::String(line)) => found.extend(files_in_line(line)),
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                match words[..] {
                    // A shell that runs a script.
                    [_, "-c" | "-lc" | "-ic", script, ..] => found.extend(files_in_line(script)),
                    _ => {
                        let command: Vec<WordPiece> =
                            words.iter().map(|word| WordPiece::Word((*word).to_owned())).collect();
                        found.extend(files_in_command(&command));
                    }
                }
            }
            _ => {}
        }
    }
    found.retain(|path| !path.as_os_str().is_empty());
    found.sort();
    found.dedup();
    found.truncate(MAX_PATHS);
    found
}

/// Parts of the names of tools that run a shell, reduced to lower-case letters and digits.
const SHELLS: &[&str] = &["bash", "shell", "terminal", "command", "exec"];

/// Returns the command line that a call runs. Returns `None` if the tool is not a shell.
pub(crate) fn command_line(call: &ToolCall) -> Option<String> {
    if !SHELLS.iter().any(|shell| plain_name(call).contains(shell)) {
        return None;
    }
    let line = ["command", "cmd", "script"].iter().find_map(|key| match call.input.get(*key)? {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(match words[..] {
                [_, "-c" | "-lc" | "-ic", script] => script.to_owned(),
                _ => shell_words(words),
            })
        }
        _ => None,
    });
    let several = several_lines(&call.input);
    let line = line.or_else(|| (!several.is_empty()).then(|| several.join("; ")))?;
    let is_patch = line.contains("*** Begin Patch");
    (!line.trim().is_empty() && !is_patch).then_some(line)
}

fn plain_name(call: &ToolCall) -> String {
    let letters = call.name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns the shell commands of a call that runs several. Cline writes their list as an array, or as a text that holds
/// one.
fn several_lines(input: &Value) -> Vec<String> {
    let lines = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match input.get("commands") {
        Some(Value::Array(list)) => lines(list),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => lines(&list),
            _ => vec![text.clone()],
        },
        _ => Vec::new(),
    }
}

fn texts(input: &Value) -> Vec<&str> {
    match input {
        Value::String(text) => vec![text],
        Value::Object(members) => members.values().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the files that a patch in Codex's format changes.
fn patched_files(patch: &str) -> impl Iterator<Item = PathBuf> {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    patch
        .lines()
        .filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head)))
        .map(|name| name.trim().into())
}

/// Programs that remove or overwrite the files in their arguments.
const WRITERS: &[&str] =
    &["cp", "dd", "install", "ln", "mv", "perl", "rm", "sed", "shred", "tee", "truncate", "unlink"];

/// Words that may stand before the name of a program.
const BEFORE_PROGRAMS: &[&str] = &["!", "command", "do", "else", "sudo", "then", "{"];

/// Returns the files that a shell command removes or overwrites, as far as its words name them. All other changes are
/// found once the command has finished. This is only for files that no rule would capture.
fn files_in_line(line: &str) -> Vec<PathBuf> {
    shell_commands::commands(line).iter().flat_map(|command| files_in_command(command)).collect()
}

fn files_in_command(command: &[WordPiece]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut words = Vec::new();
    let mut before: Option<&WordPiece> = None;
    for piece in command {
        match (piece, before) {
            (WordPiece::Word(word), Some(WordPiece::Into)) => found.push(PathBuf::from(word)),
            (WordPiece::Word(word), Some(WordPiece::Word(_)) | None) => words.push(word.as_str()),
            _ => {}
        }
        before = Some(piece);
    }
    let mut words = words.into_iter().skip_while(|word| word.contains('=') || BEFORE_PROGRAMS.contains(word));
    let program = words.next().and_then(|program| Path::new(program).file_name()?.to_str());
    if program.is_some_and(|program| WRITERS.binary_search(&program).is_ok()) {
        let named = words.filter(|word| !word.starts_with('-') && *word != "}");
        found.extend(named.map(|word| PathBuf::from(word.strip_prefix("of=").unwrap_or(word))));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, input: Value) -> ToolCall {
        ToolCall { name: name.into(), id: None, input }
    }

    fn named(name: &str, input: Value) -> Vec<String> {
        named_files(&call(name, input)).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn reading_tools_are_recognized_in_every_spelling() {
        assert!(READERS.is_sorted() && WRITERS.is_sorted());
        for name in ["Read", "read_file", "readFile", "TodoWrite", "google_web_search"] {
            assert!(!may_change_files(&call(name, Value::Null)), "{name}");
        }
        for name in ["Write", "Bash", "apply_patch", "write_file", "run_shell_command", "mcp__db__drop", "Tool of 2030"]
        {
            assert!(may_change_files(&call(name, Value::Null)), "{name}");
        }
    }

    /// Regression: tools of other servers with "backtrail" in their names got no checkpoint.
    #[test]
    fn tools_of_our_own_server_are_recognized_by_its_name() {
        for name in [
            "mcp__backtrail__restore_apply",
            "mcp__plugin_backtrail_backtrail__undo",
            "mcp_backtrail_checkpoint_save",
            "backtrail_restore_plan",
            "backtrail-checkpoint_list",
        ] {
            assert!(!may_change_files(&call(name, Value::Null)), "{name}");
        }
        for name in [
            "mcp__fs-backtrail-files__write_file",
            "mcp__backtrail-files__write_file",
            "mcp__my-backtrail__undo",
            "mcp__backtrail_2__undo",
            "backtrail_files_write",
            "backtrail",
        ] {
            assert!(may_change_files(&call(name, Value::Null)), "{name}");
        }
    }

    #[test]
    fn files_are_found_under_every_key() {
        assert_eq!(named("Write", json!({ "file_path": "/w/a", "content": "x" })), ["/w/a"]);
        assert_eq!(named("edit", json!({ "filePath": "a" })), ["a"]);
        assert_eq!(named("MultiEdit", json!({ "files": ["a", { "path": "b" }] })), ["a", "b"]);
        assert_eq!(named("x", json!([1, 2])), [""; 0]);
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n*** Move to: src/b.rs\n*** Delete File: .secret\n*** End Patch";
        assert_eq!(named("apply_patch", json!({ "command": patch })), [".secret", "src/a.rs", "src/b.rs"]);
        assert_eq!(named("apply_patch", json!(patch)), [".secret", "src/a.rs", "src/b.rs"]);
    }

    #[test]
    fn the_command_line_of_a_shell_is_found() {
        let line = |name: &str, input: Value| command_line(&call(name, input));
        assert_eq!(line("Bash", json!({ "command": "make all" })).as_deref(), Some("make all"));
        assert_eq!(line("run_shell_command", json!({ "command": "ls" })).as_deref(), Some("ls"));
        assert_eq!(line("shell", json!({ "command": ["bash", "-lc", "rm x"] })).as_deref(), Some("rm x"));
        assert_eq!(line("local_shell", json!({ "command": ["rm", "a b"] })).as_deref(), Some("rm \"a b\""));
        assert_eq!(line("exec_command", json!({ "cmd": "x" })).as_deref(), Some("x"));
        assert_eq!(line("str_replace_based_edit_tool", json!({ "command": "create" })), None);
        assert_eq!(line("shell", json!({ "command": "*** Begin Patch" })), None);
        assert_eq!(line("Bash", json!({})), None);
        assert_eq!(line("run_commands", json!({ "commands": ["a", "b c"] })).as_deref(), Some("a; b c"));
    }

    #[test]
    fn files_that_a_shell_command_names_are_found() {
        let command = |line: &str| named("Bash", json!({ "command": line }));
        assert_eq!(command("rm -f 'private/notes' b"), ["b", "private/notes"]);
        assert_eq!(command("make && sudo /bin/rm -rf build.log; echo x"), ["build.log"]);
        assert_eq!(command("echo secret > out/token 2>/dev/null"), ["/dev/null", "out/token"]);
        assert_eq!(command("FOO=1 mv a b"), ["a", "b"]);
        assert_eq!(command("cat private/notes"), [""; 0]);
        assert_eq!(named("shell", json!({ "command": ["bash", "-lc", "rm x"] })), ["x"]);
        // Regression: the commands of Cline were not read, so that ignored files were lost.
        assert_eq!(named("run_commands", json!({ "commands": ["ls", "rm x", "rm y"] })), ["x", "y"]);
        assert_eq!(named("run_commands", json!({ "commands": "[\"cd a && rm x\",\"rm y\"]" })), ["x", "y"]);
        // Regression: a name with a space was split.
        assert_eq!(command("rm 'my file.secret' \"b c\" d\\ e"), ["b c", "d e", "my file.secret"]);
        assert_eq!(command("echo x > 'out put' 2>&1; { rm a; }"), ["a", "out put"]);
        assert_eq!(named("shell", json!({ "command": ["rm", "my file", "b;c"] })), ["b;c", "my file"]);
        assert_eq!(command("if true; then rm a; fi; wc <b | tee -a c"), ["a", "c"]);
    }
}
