//! Knows which entries each agent needs in which files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{json::Wish, toml::Server, toml_hooks::TomlHooks};
use crate::{hooks::Agent, output::shell_words};

/// The scope of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The user's own files, for every project.
    User,
    /// Files of this project that are not committed, if the agent has any.
    Project,
    /// Files of this project that are committed, for all users of it.
    Shared,
}

/// The directories that contain the agents' files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The home directory.
    pub(crate) home: PathBuf,
    /// The user's configuration directory.
    pub(crate) config_home: PathBuf,
    /// Claude Code's configuration directory, if it was moved.
    pub(crate) claude: Option<PathBuf>,
    /// Codex's configuration directory, if it was moved.
    pub(crate) codex: Option<PathBuf>,
    /// Copilot's configuration directory, if it was moved.
    pub(crate) copilot: Option<PathBuf>,
    /// Kimi Code's directory, if it was moved.
    pub(crate) kimi: Option<PathBuf>,
    /// The project's root.
    pub(crate) root: PathBuf,
}

/// The command that agents use to start this program: usually one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program(pub(crate) Vec<String>);

impl Program {
    /// Returns the command line with these arguments.
    fn words<'w>(&'w self, rest: &[&'w str]) -> Vec<&'w str> {
        self.0.iter().map(String::as_str).chain(rest.iter().copied()).collect()
    }

    /// Returns the shell command line of an agent's hook.
    pub(crate) fn hook(&self, agent: Agent) -> String {
        shell_words(self.words(&["hook", agent.name()]))
    }

    /// Returns the program and the arguments that start the MCP server.
    fn server_words(&self) -> (String, Vec<String>) {
        let mut words = self.words(&["mcp"]).into_iter().map(str::to_owned);
        (words.next().unwrap_or_default(), words.collect())
    }

    fn server(&self) -> Value {
        let (command, args) = self.server_words();
        json!({ "command": command, "args": args })
    }
}

/// A file, and its required content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The part of the file that belongs to this installation. Set if several installations share the file.
    pub(crate) part: Option<String>,
    /// The required content.
    pub(crate) content: Content,
}

/// The required content of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// Entries of a JSON document that other programs write to as well.
    Json(Vec<Wish>),
    /// A server in a TOML document that other programs write to as well.
    Toml(Server),
    /// Hooks in a TOML document that other programs write to as well.
    TomlHooks(TomlHooks),
    /// The complete file.
    Whole {
        /// The text of the file.
        text: String,
        /// Set if the file is a script.
        is_executable: bool,
    },
}

/// The time after which an agent stops waiting for a hook. The hook itself stops waiting earlier.
const PATIENCE_SECONDS: u64 = 20;

/// Variables with the locations of the stores and the settings. Codex passes only the listed variables to a server, and
/// the hooks and the server must use the same store.
const PLACES: &[&str] = &["BACKTRAIL_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// The tools of Claude Code that change files or might change them.
const CLAUDE_TOOLS: &str = "^(Write|Edit|MultiEdit|NotebookEdit|Bash|PowerShell|mcp__.*)$";

/// Returns the files of an agent, with their required content.
pub(crate) fn wanted(agent: Agent, reach: Reach, places: &Places, program: &Program) -> Vec<Wanted> {
    let hook = program.hook(agent);
    match agent {
        Agent::Claude => claude(reach, places, program, &hook),
        Agent::Codex => codex(reach, places, program, &hook),
        Agent::Gemini => vec![with_both(place(reach, places, ".gemini/settings.json"), gemini_hooks(&hook), program)],
        Agent::Qwen => vec![with_both(place(reach, places, ".qwen/settings.json"), qwen_hooks(&hook), program)],
        Agent::Cursor => cursor(reach, places, program, &hook),
        Agent::Copilot => copilot(reach, places, program, &hook),
        Agent::Cline => cline(reach, places, program, &hook),
        Agent::Opencode => opencode(reach, places, program),
        Agent::Kilo => kilo(reach, places, program),
        Agent::Kimi => kimi(reach, places, program, &hook),
        Agent::Pi => vec![pi(reach, places, program)],
        Agent::Droid => droid(reach, places, program, &hook),
        // Nothing is known about its files: the command line does not offer it.
        Agent::Generic => Vec::new(),
    }
}

/// Returns whether the agent has project files that are not committed.
pub(crate) fn has_uncommitted_files(agent: Agent) -> bool {
    agent == Agent::Claude
}

fn place(reach: Reach, places: &Places, below: &str) -> PathBuf {
    let top = if reach == Reach::User { &places.home } else { &places.root };
    top.join(below)
}

fn json(path: PathBuf, wishes: Vec<Wish>) -> Wanted {
    Wanted { path, part: None, content: Content::Json(wishes) }
}

fn keys(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}

fn member(path: &[&str], key: &str, value: Value) -> Wish {
    Wish::Member { path: keys(path), key: key.to_owned(), value }
}

fn server_in(path: &[&str], value: Value) -> Wish {
    member(path, "backtrail", value)
}

fn with_both(path: PathBuf, mut hooks: Vec<Wish>, program: &Program) -> Wanted {
    hooks.push(server_in(&["mcpServers"], program.server()));
    json(path, hooks)
}

/// Returns entries of the form `{"hooks": {EVENT: [{"matcher": …, "hooks": [HOOK]}]}}`.
fn grouped(events: &[(&str, Option<&str>)], hook: &Value) -> Vec<Wish> {
    let group = |(event, matcher): &(&str, Option<&str>)| {
        let value = match matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
            None => json!({ "hooks": [hook] }),
        };
        Wish::Element { path: keys(&["hooks", event]), value }
    };
    events.iter().map(group).collect()
}

/// Returns entries of the form `{"version": 1, "hooks": {EVENT: [HOOK]}}`.
fn flat(events: &[&str], hook: &Value) -> Vec<Wish> {
    let element = |event: &&str| Wish::Element { path: keys(&["hooks", event]), value: hook.clone() };
    std::iter::once(member(&[], "version", json!(1))).chain(events.iter().map(element)).collect()
}

fn claude(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    let tools = Some(CLAUDE_TOOLS);
    let events = [
        ("SessionStart", None),
        ("UserPromptSubmit", None),
        ("PreToolUse", tools),
        ("PostToolUse", tools),
        ("PostToolUseFailure", tools),
        ("Stop", None),
        ("SubagentStop", None),
        ("SessionEnd", None),
    ];
    let hooks = grouped(&events, &json!({ "type": "command", "command": hook, "timeout": PATIENCE_SECONDS }));
    let own = places.claude.clone().unwrap_or_else(|| places.home.join(".claude"));
    let document = places.claude.as_deref().unwrap_or(&places.home).join(".claude.json");
    let (command, args) = program.server_words();
    let server = json!({ "type": "stdio", "command": command, "args": args });
    let project = places.root.to_string_lossy();
    match reach {
        Reach::User => {
            vec![json(own.join("settings.json"), hooks), json(document, vec![server_in(&["mcpServers"], server)])]
        }
        Reach::Project => vec![
            json(places.root.join(".claude/settings.local.json"), hooks),
            Wanted {
                part: Some(project.clone().into_owned()),
                ..json(document, vec![server_in(&["projects", &project, "mcpServers"], server)])
            },
        ],
        Reach::Shared => vec![
            json(places.root.join(".claude/settings.json"), hooks),
            json(places.root.join(".mcp.json"), vec![server_in(&["mcpServers"], server)]),
        ],
    }
}

fn codex(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    let events =
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionEnd"];
    let hooks = events.iter().flat_map(|event| {
        // Codex does not wait longer for this hook, and warns at every start if the timeout is higher.
        let timeout = if *event == "SessionEnd" { 3 } else { PATIENCE_SECONDS };
        grouped(&[(*event, None)], &json!({ "type": "command", "command": hook, "timeout": timeout }))
    });
    let hooks = hooks.collect();
    let own = match (reach, &places.codex) {
        (Reach::User, Some(moved)) => moved.clone(),
        _ => place(reach, places, ".codex"),
    };
    let (command, args) = program.server_words();
    let server = Server { table: "mcp_servers", key: "backtrail", command, args, env_vars: PLACES };
    vec![
        json(own.join("hooks.json"), hooks),
        Wanted { path: own.join("config.toml"), part: None, content: Content::Toml(server) },
    ]
}

fn gemini_hooks(hook: &str) -> Vec<Wish> {
    let events = ["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"];
    // Gemini CLI expects milliseconds.
    let hook = json!({ "type": "command", "name": "backtrail", "command": hook, "timeout": PATIENCE_SECONDS * 1_000 });
    grouped(&events.map(|event| (event, None)), &hook)
}

fn qwen_hooks(hook: &str) -> Vec<Wish> {
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    ];
    let hook = json!({ "type": "command", "name": "backtrail", "command": hook, "timeout": PATIENCE_SECONDS });
    grouped(&events.map(|event| (event, None)), &hook)
}

fn cursor(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    let events = [
        "sessionStart",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "subagentStart",
        "subagentStop",
        "stop",
        "sessionEnd",
    ];
    let hooks = flat(&events, &json!({ "command": hook, "timeout": PATIENCE_SECONDS }));
    vec![
        json(place(reach, places, ".cursor/hooks.json"), hooks),
        json(place(reach, places, ".cursor/mcp.json"), vec![server_in(&["mcpServers"], program.server())]),
    ]
}

fn copilot(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    // Capitalized events have the same payloads as Claude Code's.
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    ];
    let hooks = flat(&events, &json!({ "type": "command", "bash": hook, "timeoutSec": PATIENCE_SECONDS }));
    let own = places.copilot.clone().unwrap_or_else(|| places.home.join(".copilot"));
    match reach {
        Reach::User => {
            let (command, args) = program.server_words();
            let server = json!({ "type": "local", "command": command, "args": args, "tools": ["*"] });
            let servers = json(own.join("mcp-config.json"), vec![server_in(&["mcpServers"], server)]);
            vec![json(own.join("hooks/backtrail.json"), hooks), servers]
        }
        // Copilot has no MCP servers per project.
        Reach::Project | Reach::Shared => vec![json(places.root.join(".github/hooks/backtrail.json"), hooks)],
    }
}

fn cline(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    let events =
        ["TaskStart", "TaskResume", "UserPromptSubmit", "PreToolUse", "PostToolUse", "TaskComplete", "TaskCancel"];
    let hooks = match reach {
        Reach::User => places.home.join(".cline/hooks"),
        Reach::Project | Reach::Shared => places.root.join(".clinerules/hooks"),
    };
    let text = format!("#!/bin/sh\n# {OWN_MARK}: takes checkpoints\nexec {hook}\n");
    let script = |event: &str| Wanted {
        path: hooks.join(event),
        part: None,
        content: Content::Whole { text: text.clone(), is_executable: true },
    };
    let mut wanted: Vec<Wanted> = events.into_iter().map(script).collect();
    if reach == Reach::User {
        let servers = places.home.join(".cline/data/settings/cline_mcp_settings.json");
        wanted.push(json(servers, vec![server_in(&["mcpServers"], program.server())]));
    }
    wanted
}

/// A mark in files that contain nothing but our text.
pub(crate) const OWN_MARK: &str = "Installed by backtrail";

/// The plugin that forwards events. Contains the name of the program.
const OPENCODE_PLUGIN: &str = include_str!("opencode.ts");

fn opencode(reach: Reach, places: &Places, program: &Program) -> Vec<Wanted> {
    let (own, plugins) = match reach {
        Reach::User => (places.config_home.join("opencode"), places.config_home.join("opencode/plugins")),
        Reach::Project | Reach::Shared => (places.root.clone(), places.root.join(".opencode/plugins")),
    };
    let document = ["opencode.jsonc", "opencode.json"].map(|name| own.join(name));
    let document = document.iter().find(|path| path.exists()).unwrap_or(&document[1]);
    plugin_and_server(OPENCODE_PLUGIN, plugins, document, program)
}

/// Kilo Code has opencode's plugins and configuration under other names.
fn kilo(reach: Reach, places: &Places, program: &Program) -> Vec<Wanted> {
    let own = match reach {
        Reach::User => places.config_home.join("kilo"),
        Reach::Project | Reach::Shared => places.root.join(".kilo"),
    };
    let text = OPENCODE_PLUGIN.replacen("@opencode-ai/plugin", "@kilocode/plugin", 1).replace("opencode", "kilo");
    let document = ["kilo.jsonc", "kilo.json"].map(|name| own.join(name));
    let document = document.iter().find(|path| path.exists()).unwrap_or(&document[1]);
    plugin_and_server(&text, own.join("plugins"), document, program)
}

fn plugin_and_server(plugin: &str, plugins: PathBuf, document: &Path, program: &Program) -> Vec<Wanted> {
    let server = json!({ "type": "local", "command": program.words(&["mcp"]), "enabled": true });
    vec![
        with_program(plugin, plugins.join("backtrail.ts"), program),
        json(document.to_owned(), vec![server_in(&["mcp"], server)]),
    ]
}

/// Returns a file of TypeScript that starts this program.
fn with_program(text: &str, path: PathBuf, program: &Program) -> Wanted {
    let text = text.replacen("[\"backtrail\"]", &json!(program.0).to_string(), 1);
    Wanted { path, part: None, content: Content::Whole { text, is_executable: false } }
}

/// The extension that forwards events of pi. Contains the name of the program.
const PI_EXTENSION: &str = include_str!("pi.ts");

fn pi(reach: Reach, places: &Places, program: &Program) -> Wanted {
    let own = match reach {
        Reach::User => places.home.join(".pi/agent/extensions"),
        Reach::Project | Reach::Shared => places.root.join(".pi/extensions"),
    };
    with_program(PI_EXTENSION, own.join("backtrail.ts"), program)
}

fn kimi(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    const EVENTS: &[&str] = &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "StopFailure",
        "Interrupt",
        "SubagentStop",
        "SessionEnd",
    ];
    let own = match reach {
        Reach::User => places.kimi.clone().unwrap_or_else(|| places.home.join(".kimi-code")),
        Reach::Project | Reach::Shared => places.root.join(".kimi-code"),
    };
    let servers = json(own.join("mcp.json"), vec![server_in(&["mcpServers"], program.server())]);
    // Kimi Code reads hooks from the user's own configuration alone.
    if reach != Reach::User {
        return vec![servers];
    }
    let hooks = TomlHooks { events: EVENTS, command: hook.to_owned(), seconds: PATIENCE_SECONDS };
    vec![Wanted { path: own.join("config.toml"), part: None, content: Content::TomlHooks(hooks) }, servers]
}

fn droid(reach: Reach, places: &Places, program: &Program, hook: &str) -> Vec<Wanted> {
    let events =
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionEnd"];
    let hook = json!({ "type": "command", "command": hook, "timeout": PATIENCE_SECONDS });
    let (command, args) = program.server_words();
    let server = json!({ "type": "stdio", "command": command, "args": args });
    vec![
        json(place(reach, places, ".factory/settings.json"), grouped(&events.map(|event| (event, None)), &hook)),
        json(place(reach, places, ".factory/mcp.json"), vec![server_in(&["mcpServers"], server)]),
    ]
}

/// Returns the command line of an entry. Returns `None` if the entry starts no program, or has an unclosed quote.
pub(crate) fn call(value: &Value) -> Option<Vec<String>> {
    let object = value.as_object()?;
    let line = object.get("command").or_else(|| object.get("bash"));
    let words = match (line, object.get("args").and_then(Value::as_array)) {
        (Some(Value::String(program)), Some(args)) => {
            let args = args.iter().filter_map(Value::as_str);
            std::iter::once(program.as_str()).chain(args).map(str::to_owned).collect()
        }
        (Some(Value::String(line)), None) => shlex::split(line)?,
        (Some(Value::Array(words)), _) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    Some(words)
}

/// Returns whether an installation made this entry, with this program or another copy of it.
pub(crate) fn is_ours(value: &Value, agent: Agent, program: &Program) -> bool {
    let Some(words) = call(value) else { return false };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let calls = [program.words(&["mcp"]), program.words(&["hook", agent.name()])];
    let rest = words.split_first().map_or(&[][..], |(_, rest)| rest);
    let is_copy = words.first().is_some_and(|first| is_named_like_us(first));
    calls.contains(&words) || (is_copy && (rest == ["mcp"] || rest == ["hook", agent.name()]))
}

fn is_named_like_us(word: &str) -> bool {
    let name = Path::new(word).file_name();
    name.is_some_and(|name| name == "backtrail" || name == "backtrail.exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_entries_are_recognized_by_every_spelling_of_the_program() {
        let program = Program(vec!["/opt/my tools/bt's".into(), "-m".into()]);
        for program in [&program, &Program(vec!["backtrail".into()]), &Program(vec!["/usr/bin/backtrail".into()])] {
            let hook = json!({ "type": "command", "command": program.hook(Agent::Claude), "timeout": 5 });
            assert!(is_ours(&hook, Agent::Claude, program), "{hook}");
            assert!(!is_ours(&hook, Agent::Codex, program), "{hook}");
            assert!(is_ours(&program.server(), Agent::Claude, program));
        }
        let foreign = [
            json!({ "command": "echo backtrail hook claude" }),
            json!({ "command": "backtrail hook claude && rm x" }),
            json!({ "command": "backtrail hook 'claude" }),
            json!({ "command": "backtrail status" }),
            json!({ "command": "backtrail", "args": ["mcp", "--http", "127.0.0.1:1"] }),
            json!("backtrail hook claude"),
        ];
        for value in foreign {
            assert!(!is_ours(&value, Agent::Claude, &program), "{value}");
        }
    }

    #[test]
    fn every_agent_gets_a_hook_and_a_server() {
        let places = Places {
            home: "/h".into(),
            config_home: "/h/.config".into(),
            claude: None,
            codex: None,
            copilot: None,
            kimi: None,
            root: "/w".into(),
        };
        for agent in Agent::ALL {
            for reach in [Reach::User, Reach::Project, Reach::Shared] {
                let wanted = format!("{:?}", wanted(agent, reach, &places, &Program(vec!["backtrail".into()])));
                let has_servers_only_for_the_user =
                    matches!(agent, Agent::Cline | Agent::Copilot) && reach != Reach::User;
                let lacks_servers = has_servers_only_for_the_user || agent == Agent::Pi;
                assert!(wanted.contains("\"mcp\"") || lacks_servers, "{agent}: {wanted}");
                let has_hooks_only_for_the_user = agent == Agent::Kimi && reach != Reach::User;
                let is_typescript = matches!(agent, Agent::Opencode | Agent::Kilo | Agent::Pi);
                let has_hook = wanted.contains(&format!("hook {agent}")) || is_typescript;
                assert!(has_hook || has_hooks_only_for_the_user, "{agent}: {wanted}");
            }
        }
    }
}
