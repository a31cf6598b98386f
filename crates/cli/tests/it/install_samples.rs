//! Sample configuration files of agents.

/// Agent, path and text of each file. The text must be the same after an install and an uninstall.
pub(crate) const SAMPLES: &[(&str, &str, &str)] = &[
    (
        "claude",
        "home/.claude/settings.json",
        r"{}
",
    ),
    ("claude", "home/.claude/settings.json", r""),
    (
        "claude",
        "home/.claude/settings.json",
        r"{
}
",
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "model": "opus",
  "permissions": {
    "allow": [
      "Bash(npm run lint)",
      "Bash(npm run test:*)",
      "Read(~/.zshrc)"
    ],
    "deny": ["Bash(curl:*)"]
  }
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
    "env": {"CLAUDE_CODE_ENABLE_TELEMETRY": "1"},
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {"type": "command", "command": "jq -r '.tool_input.command' >> ~/.claude/bash.log"}
                ]
            }
        ]
    }
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
	"hooks": {
		"Stop": [],
		"SessionStart": [{"hooks": [{"type": "command", "command": "date"}]}]
	},
	"statusLine": {"type": "command", "command": "~/.claude/statusline.sh"}
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
  // team defaults
  "cleanupPeriodDays": 30, /* a month */
  "includeCoAuthoredBy": false, // no
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{ "model": "sonnet", "hooks": { "Stop": [ { "hooks": [ { "type": "command", "command": "say done" } ] } ] } }
"#,
    ),
    ("claude", "home/.claude/settings.json", r#"{"model":"haiku"}"#),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
      "model" : "opus",
  "hooks":{ "PreToolUse" :[
     {"matcher":"Bash",   "hooks":[ {"type":"command","command":"echo \"mine\" é" , "timeout": 5} ] } ] ,
	"Notification": [] },
   "permissions": {"allow": ["Bash(ls:*)"]}, "empty": {}
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
  "hooks": {
    "UserPromptSubmit": [
      {
        "hooks": [
          { "type": "command", "command": "~/bin/log-prompt" } // keep
        ]
      },
    ],
    // the end
  },
}
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"// settings: "hooks" come below
{
  "theme": "dark" // not light
  , "verbose": true
  /* nothing more */
}
// bye
"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{


  "hooks": {

  },

  "model": "opus"

}


"#,
    ),
    (
        "claude",
        "home/.claude/settings.json",
        r#"{
   "a\u0022b{": "}],[{",
   "hooks": {"PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "prettier --write \"$FILE\" # }"}]}]}
}
"#,
    ),
    (
        "claude",
        "home/.claude.json",
        r#"{
  "numStartups": 214,
  "installMethod": "native",
  "projects": {
    "/home/dev/app": {
      "allowedTools": [],
      "mcpServers": {},
      "hasTrustDialogAccepted": true
    }
  },
  "oauthAccount": {"emailAddress": "dev@example.org"},
  "bypassPermissionsModeAccepted": true
}"#,
    ),
    (
        "claude",
        "home/.claude.json",
        r#"{"mcpServers":{"docs":{"command":"docs-server","args":[]}},"other":[1,2.50,1e3]}"#,
    ),
    (
        "claude",
        "home/.claude.json",
        r#"{
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.org/mcp/"
    }
  },
  "tipsHistory": {}
}
"#,
    ),
    (
        "codex",
        "home/.codex/hooks.json",
        r#"{
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.py", "timeout": 30}]}
    ]
  }
}
"#,
    ),
    ("codex", "home/.codex/hooks.json", r#"{"hooks":{}}"#),
    (
        "codex",
        "home/.codex/config.toml",
        r#"# codex
model   =  "gpt-5"   # odd spacing
[mcp_servers.docs]
command = 'docs-server'
args = [ "a" ,
  "b" ]  # two

[profiles."with space"]
approval = "never"
"#,
    ),
    (
        "codex",
        "home/.codex/config.toml",
        r#"model = "o4"
model_reasoning_effort = "high"

[features]
hooks = true
"#,
    ),
    (
        "codex",
        "home/.codex/config.toml",
        r#"mcp_servers = { docs = { command = "d", args = ["x"] } } # in one line

[tui]
notifications = true
"#,
    ),
    (
        "codex",
        "home/.codex/config.toml",
        r#"[projects."/home/dev/app"]
trust_level = "trusted"

[[skills.config]]
path = "/x"
enabled = false"#,
    ),
    (
        "codex",
        "home/.codex/config.toml",
        r"

# nothing but a comment
",
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        r#"// settings of the team: "hooks" below
{
  /* look */ "theme": "dark",   // not "light"
    "hooks": {
      // ours
      "BeforeTool": [ { "matcher": "write_.*", "hooks": [ { "type": "command", "command": "./lint.sh // no" } ] } ]
    },
  "mcpServers": { "docs": { "command": "docs-server", "args": ["--url", "http://localhost/*"] } } }

"#,
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        r#"{
  "security": {
    "auth": {
      "selectedType": "oauth-personal"
    }
  },
  "ui": {
    "theme": "GitHub"
  }
}
"#,
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        r#"{
  "general": { "vimMode": true, },
  "mcpServers": {
    // none yet
  },
}
"#,
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        r#"{
 "hooks": {
  "AfterAgent": [
   {
    "sequential": true,
    "hooks": [
     {
      "type": "command",
      "command": "notify-send done"
     }
    ]
   }
  ]
 }
}"#,
    ),
    (
        "qwen",
        "home/.qwen/settings.json",
        r#"{
  "$version": 3,
  "model": { "name": "qwen3-coder-plus" },
  "tools": { "approvalMode": "auto-edit" }
}
"#,
    ),
    (
        "qwen",
        "home/.qwen/settings.json",
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]},"mcpServers":{}}
"#,
    ),
    (
        "cursor",
        "home/.cursor/hooks.json",
        r#"{ // cursor
 "version": 1,
   "hooks": { "preToolUse": [ { "command": "./mine.sh" }],
              "afterFileEdit":[{"command":"./fmt.sh"}] } }
"#,
    ),
    (
        "cursor",
        "home/.cursor/hooks.json",
        r#"{
  "version": 1,
  "hooks": {}
}
"#,
    ),
    ("cursor", "home/.cursor/hooks.json", r"{}"),
    (
        "cursor",
        "home/.cursor/mcp.json",
        r#"{
  "mcpServers": {
    "linear": {
      "url": "https://mcp.example.org/sse"
    },
  }
}
"#,
    ),
    (
        "cursor",
        "home/.cursor/mcp.json",
        r#"{
	"mcpServers": {
		"a": { "command": "npx", "args": ["-y", "a@latest"], "env": { "KEY": "${env:KEY}" } }
	}
}"#,
    ),
    (
        "kimi",
        "home/.kimi-code/config.toml",
        r#"default_model = "kimi-for-coding"   # mine

[providers.kimi]
type = "kimi"
api_key = ""

[[hooks]]
event = "Stop"
command = "notify-send done"
"#,
    ),
    (
        "droid",
        "home/.factory/settings.json",
        r#"{
  "model": "x", // comment
  "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "notify-send done" }] }] }
}
"#,
    ),
    (
        "copilot",
        "home/.copilot/mcp-config.json",
        r#"{
  "mcpServers": {}
}
"#,
    ),
    (
        "cline",
        "home/.cline/data/settings/cline_mcp_settings.json",
        r#"{
  "mcpServers": {
    "local": { "command": "node", "args": ["/srv/x.js"], "disabled": false, "autoApprove": [] }
  }
}"#,
    ),
    (
        "opencode",
        "home/.config/opencode/opencode.json",
        r#"{
  "$schema": "https://opencode.ai/config.json",
  "theme": "opencode",
  "plugin": ["opencode-helper"],
  "mcp": {
    "jira": { "type": "remote", "url": "https://jira.example.org/mcp" }
  }
}
"#,
    ),
    (
        "opencode",
        "home/.config/opencode/opencode.jsonc",
        r#"{
  // models
  "model": "anthropic/claude",
  /* servers */ "mcp": {},
}
"#,
    ),
];
