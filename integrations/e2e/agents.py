"""The agents: where they come from, how they are told to use a stand-in, and how they are started."""

import json

import stand_ins


class Agent:
    """An agent of the npm registry. One instance plays in one scene."""

    name = ""
    package = ""
    version = ""
    interface = stand_ins.Chat
    # Whether a session can be continued without a terminal.
    resumes = True
    # The parts of the table that the agent lacks, with the reason.
    lacks = {}

    def prepare(self, scene):
        """Writes the configuration that leads to the stand-in. Returns environment variables."""
        return {}

    def first(self, scene):
        """Returns arguments for a start that only writes the configuration, if the agent needs one."""
        return []

    def words(self, scene, prompt, session):
        """Returns the arguments that run one prompt, in a new session or in this one."""
        raise NotImplementedError

    def prompt_text(self, prompt):
        """Returns the prompt as the hooks report it."""
        return prompt

    def adopt(self, scene, forked):
        """Does what the answer says before the conversation can be continued."""

    def file(self, scene, path, text):
        path = scene.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))


class Claude(Agent):
    name, package, version = "claude", "@anthropic-ai/claude-code", "2.1.325"
    interface = stand_ins.Anthropic

    def prepare(self, scene):
        return {
            "ANTHROPIC_BASE_URL": scene.service.url, "ANTHROPIC_API_KEY": "sk-none", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
        }

    def words(self, scene, prompt, session):
        resume = ["--resume", session] if session else []
        tools = "Write,Edit,Bash,Agent,Task,mcp__backtrail,mcp__plugin_backtrail_backtrail"
        return [*scene.plugin_words, "-p", prompt, "--allowedTools", tools, "--permission-mode", "acceptEdits", *resume]


class Codex(Agent):
    name, package, version = "codex", "@openai/codex", "0.166.0"
    interface = stand_ins.Responses
    lacks = {"subagent": "the stand-in for Codex CLI starts none"}

    def prepare(self, scene):
        self.file(scene, ".codex/config.toml", (
            'model = "gpt-5"\nmodel_provider = "stand_in"  # on this machine\n\n[model_providers.stand_in]\n'
            f'name = "stand-in"\nbase_url = "{scene.service.url}/v1"\nwire_api = "responses"\n'
            "\n[analytics]\nenabled = false\n"
        ))
        return {}

    def words(self, scene, prompt, session):
        options = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"]
        return ["exec", *(["resume", *options, session] if session else options), prompt]


class Gemini(Agent):
    name, package, version = "gemini", "@google/gemini-cli", "0.61.0"
    interface = stand_ins.Google

    def prepare(self, scene):
        self.file(scene, ".gemini/settings.json", (
            '{\n  // no browser\n  "security": {"auth": {"selectedType": "gemini-api-key"}},\n'
            '  "privacy": {"usageStatisticsEnabled": false}\n}\n'
        ))
        return {"GOOGLE_GEMINI_BASE_URL": scene.service.url, "GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def words(self, scene, prompt, session):
        resume = ["--resume", session] if session else []
        # Without a named model, Gemini CLI asks a model which model to use.
        return ["--approval-mode", "yolo", "-m", "gemini-2.5-flash", *resume, "-p", prompt]


class Qwen(Agent):
    name, package, version = "qwen", "@qwen-code/qwen-code", "0.24.4"
    lacks = {"background": "in prompt mode, Qwen Code ends its background commands when it ends"}

    def prepare(self, scene):
        self.file(scene, ".qwen/settings.json", {
            "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True}, "model": {"name": "stand-in"},
        })
        return {"OPENAI_BASE_URL": f"{scene.service.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "stand-in"}

    def words(self, scene, prompt, session):
        return ["--approval-mode", "yolo", *(["--resume", session] if session else []), "-p", prompt]


class Copilot(Agent):
    name, package, version = "copilot", "@github/copilot", "1.0.102"

    def prepare(self, scene):
        return {
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{scene.service.url}/v1", "COPILOT_MODEL": "gpt-5",
            "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_AUTO_UPDATE": "false", "COPILOT_ALLOW_ALL": "true",
        }

    def words(self, scene, prompt, session):
        return ["-p", prompt, "--allow-all-tools", "--allow-all-paths", *([f"--resume={session}"] if session else [])]


class Cline(Agent):
    name, package, version = "cline", "cline", "3.0.65"

    def prepare(self, scene):
        return {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"}

    resumes = False
    lacks = {
        "conversation": "Backtrail does not store the conversations of this agent",
        "agent is told": "without a terminal, Cline continues no session",
    }

    def prompt_text(self, prompt):
        return ""

    def first(self, scene):
        return ["auth", "-p", "openai-compatible", "-k", "none", "-m", "stand-in", "-b", f"{scene.service.url}/v1"]

    def words(self, scene, prompt, session):
        return ["--auto-approve", "true", *(["--id", session] if session else []), prompt]


class Opencode(Agent):
    name, package, version = "opencode", "opencode-ai", "1.18.33"
    config = ".config/opencode/opencode.json"
    lacks = {
        "conversation": "Backtrail does not store the conversations of this agent",
        "agent is told": "the plugin has no channel to the model",
    }

    def prepare(self, scene):
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "stand-in",
            "options": {"baseURL": f"{scene.service.url}/v1", "apiKey": "none"},
            "models": {"m": {"name": "m", "limit": {"context": 100000, "output": 4000}}},
        }
        self.file(scene, self.config, {
            "provider": {"stand-in": provider}, "model": "stand-in/m", "small_model": "stand-in/m",
            "autoupdate": False, "share": "disabled", "permission": {"edit": "allow", "bash": "allow"},
        })
        return {"OPENCODE_DISABLE_MODELS_FETCH": "true", "OPENCODE_DISABLE_AUTOUPDATE": "true", "OPENCODE_DISABLE_LSP_DOWNLOAD": "true"}

    def words(self, scene, prompt, session):
        return ["run", "--auto", *(["--session", session] if session else []), prompt]

    def prompt_text(self, prompt):
        # `run` quotes a prompt of several words.
        return f'"{prompt}"'


class Kilo(Opencode):
    name, package, version = "kilo", "@kilocode/cli", "7.7.7"
    config = ".config/kilo/kilo.json"

    def prepare(self, scene):
        disabled = {f"KILO_{name}": "true" for name in ("DISABLE_MODELS_FETCH", "DISABLE_AUTOUPDATE", "DISABLE_LSP_DOWNLOAD")}
        return {**super().prepare(scene), **disabled, "KILO_TELEMETRY_LEVEL": "off"}


class Kimi(Agent):
    name, package, version = "kimi", "@moonshot-ai/kimi-code", "2.1.0"
    lacks = {"conversation": "Backtrail does not store the conversations of this agent"}

    def prepare(self, scene):
        self.file(scene, ".kimi-code/config.toml", (
            'default_model = "stand-in"\ntelemetry = false\n\n[providers.stand_in]\ntype = "openai"\n'
            f'base_url = "{scene.service.url}/v1"\napi_key = "none"\n\n'
            '[models.stand-in]\nprovider = "stand_in"\nmodel = "stand-in"\nmax_context_size = 100000\n'
        ))
        return {"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_CLI_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"}

    def words(self, scene, prompt, session):
        return ["-p", prompt, *(["--session", session] if session else [])]


class Pi(Agent):
    name, package, version = "pi", "@mariozechner/pi-coding-agent", "0.73.1"
    lacks = {"subagent": "pi has no subagents", "MCP": "pi has no MCP client"}

    def prepare(self, scene):
        provider = {
            "baseUrl": f"{scene.service.url}/v1", "api": "openai-completions", "apiKey": "none",
            "models": [{"id": "m"}],
        }
        self.file(scene, ".pi/agent/models.json", {"providers": {"stand-in": provider}})
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}

    def words(self, scene, prompt, session):
        return ["--provider", "stand-in", "--model", "m", *(["--session", session] if session else []), "-p", prompt]


ALL = {agent.name: agent for agent in (Claude, Codex, Gemini, Qwen, Copilot, Cline, Opencode, Kilo, Kimi, Pi)}
