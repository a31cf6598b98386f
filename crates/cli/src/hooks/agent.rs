//! The agents that are supported by name.

use std::{fmt, str::FromStr};

/// An agent whose hooks are supported.
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
    Kilo,
    Kimi,
    Pi,
    Droid,
    /// Any other program that sends the documented small payload.
    Generic,
}

/// A word that is not the name of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownAgent(pub(crate) String);

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown agent {:?}; the agents are {}", self.0, Agent::ALL.map(Agent::name).join(", "))
    }
}

impl std::error::Error for UnknownAgent {}

impl Agent {
    /// The agents that can be installed.
    pub(crate) const ALL: [Self; 12] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Cursor,
        Self::Copilot,
        Self::Cline,
        Self::Opencode,
        Self::Kilo,
        Self::Kimi,
        Self::Pi,
        Self::Droid,
    ];

    /// Returns the name that the command line and the records of checkpoints use.
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
            Self::Kilo => "kilo",
            Self::Kimi => "kimi",
            Self::Pi => "pi",
            Self::Droid => "droid",
            Self::Generic => "generic",
        }
    }

    /// Returns the name that the agent's vendor uses.
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
            Self::Kilo => "Kilo Code",
            Self::Kimi => "Kimi Code",
            Self::Pi => "pi",
            Self::Droid => "Factory Droid",
            Self::Generic => "an agent",
        }
    }

    /// Returns whether the agent accepts only JSON as the output of a hook.
    pub(crate) fn wants_json(self) -> bool {
        matches!(self, Self::Gemini | Self::Cursor | Self::Cline)
    }

    /// Returns the version of the agent that was tested end to end. Returns `None` if the support was only written from
    /// the agent's documentation.
    pub(crate) fn version_run(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("2.1.325"),
            Self::Codex => Some("0.166.0"),
            Self::Gemini => Some("0.61.0"),
            Self::Qwen => Some("0.24.4"),
            Self::Copilot => Some("1.0.102"),
            Self::Cline => Some("3.0.65"),
            Self::Opencode => Some("1.18.33"),
            Self::Kilo => Some("7.7.7"),
            Self::Kimi => Some("2.1.0"),
            Self::Pi => Some("0.73.1"),
            Self::Cursor | Self::Droid | Self::Generic => None,
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
            "kimi-code" => Some(Self::Kimi),
            "generic" => Some(Self::Generic),
            _ => Self::ALL.into_iter().find(|agent| agent.name() == word),
        };
        known.ok_or_else(|| UnknownAgent(word.to_owned()))
    }
}
