//! The agents that are known by name.

use std::{fmt, str::FromStr};

/// An agent whose hooks are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Agent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Cursor,
    Copilot,
    Cline,
    Opencode,
}

/// The word names no agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownAgent(pub(crate) String);

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no agent that is known; agents are {}", self.0, Agent::ALL.map(Agent::name).join(", "))
    }
}

impl std::error::Error for UnknownAgent {}

impl Agent {
    /// All of them.
    pub(crate) const ALL: [Self; 8] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Cursor, Self::Copilot, Self::Cline, Self::Opencode];

    /// The word on the command line, and in a checkpoint.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
            Self::Opencode => "opencode",
        }
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Cursor => "Cursor",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Cline => "Cline",
            Self::Opencode => "opencode",
        }
    }

    /// Does it take nothing but JSON from a hook?
    pub(crate) fn wants_json(self) -> bool {
        matches!(self, Self::Gemini | Self::Cursor | Self::Cline)
    }

    /// The version that the whole way was run with; none where only its documentation was followed.
    pub(crate) fn version_run(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("2.1.325"),
            Self::Codex => Some("0.166.0"),
            Self::Gemini => Some("0.61.0"),
            _ => None,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(word: &str) -> Result<Self, UnknownAgent> {
        let known = match word {
            "claude-code" => Some(Self::Claude),
            "codex-cli" => Some(Self::Codex),
            "gemini-cli" => Some(Self::Gemini),
            "qwen-code" => Some(Self::Qwen),
            "copilot-cli" => Some(Self::Copilot),
            _ => Self::ALL.into_iter().find(|agent| agent.name() == word),
        };
        known.ok_or_else(|| UnknownAgent(word.to_owned()))
    }
}
