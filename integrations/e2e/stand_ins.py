"""Loopback stand-ins for the model services of agents.

All answer from the same script: the next action of the model depends on the last prompt and on the number of tools that
have run since. The requests are kept, so that a test can check the conversation that the agent really sent.
"""

import http.server
import json
import re
import threading

# The actions of the model for a prompt that contains a word: tools one after another, then a text.
SCRIPT = {
    "FIRST": ["make", "delete"],
    "SECOND": ["write"],
    "THIRD": [],
    "FOURTH": ["save"],
    "FIFTH": ["background"],
    "SIXTH": ["delegate"],
    "SEVENTH": ["delegated write"],
    "EIGHTH": ["left"],
    "NINTH": ["right"],
}

EDITED = "changed by the agent\n"
MADE = "made by the agent\n"
DELETE = "echo changed by the agent > app.txt; rm doomed.txt .env lib/a.txt private/notes.txt && rmdir lib"
WRITTEN = "written for the second prompt\n"
SAVED = "asked for by the model"
BACKGROUND = "sleep 2; echo made in the background > background.txt"

WRITES = {
    "make": ("made.txt", MADE),
    "write": ("second.txt", WRITTEN),
    "delegated write": ("delegated.txt", "written by a subagent\n"),
    "left": ("left.txt", "written by one session\n"),
    "right": ("right.txt", "written by the other session\n"),
}

# The names that agents give to their tools.
WRITERS = ["Write", "write", "write_file", "write_to_file", "create", "create_file", "editor"]
SHELLS = ["Bash", "bash", "run_shell_command", "shell", "run_commands", "execute_command"]
DELEGATES = ["Agent", "agent", "Task", "task", "subagent"]
SAVERS = re.compile(r"^[\w.\-/]*backtrail[\w.\-/]*checkpoint_save$")

# The names that tools give to their arguments.
PATHS = ["file_path", "filePath", "path", "absolute_path", "target_file"]
CONTENTS = ["content", "file_text", "contents", "new_text", "text"]
COMMANDS = ["command", "commands", "cmd"]
PROMPTS = ["prompt", "task", "instructions"]


class StandIn:
    """A service on its own port."""

    def __init__(self, project):
        self.project = project
        self.requests = []
        self.bodies = []
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, kind, body):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_HEAD(self):
                self.answer("application/json", b"")

            def do_GET(self):
                self.answer("application/json", b'{"data":[],"models":[]}')

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                try:
                    body = json.loads(raw)
                except ValueError:
                    body = {}
                stand_in.bodies.append(json.dumps(body))
                self.answer(*stand_in.reply(self.path, body))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()

    def next_step(self, prompts, tools_since):
        """Returns the next action of the script for the last prompt that it knows."""
        word = next((word for text in reversed(prompts) for word in SCRIPT if word in text), None)
        steps = SCRIPT.get(word, [])
        return steps[tools_since] if tools_since < len(steps) else None

    def was_told(self, words):
        """Returns whether any request contained these words, wherever the agent puts the output of hooks."""
        return any(words in body for body in self.bodies)

    def prompts_of_last_request(self):
        """Returns the words of the script in the conversation of the last request, in order."""
        return [word for text in self.requests[-1] for word in SCRIPT if word in text]

    def call(self, step, tools):
        """Returns the name and the arguments of the tool that carries out a step, or None if the agent has none.

        `tools` has the schema of the arguments under each tool's name.
        """
        if step == "save":
            name = next((name for name in tools if SAVERS.match(name)), None)
            if name is None and "tool_call" in tools:
                # Qwen Code calls the tools that it does not list through another one.
                return "tool_call", {"name": "mcp__backtrail__checkpoint_save", "arguments": {"message": SAVED}}
            return name and (name, {"message": SAVED})
        if step in WRITES:
            file, text = WRITES[step]
            return self.fill(WRITERS, tools, [(PATHS, f"{self.project}/{file}"), (CONTENTS, text), (["command"], "create")])
        if step == "delegate":
            return self.fill(DELEGATES, tools, [(PROMPTS, "SEVENTH prompt"), (["subagent_type", "agent_type"], "general-purpose")])
        command = [(COMMANDS, DELETE if step == "delete" else BACKGROUND)]
        if step == "background":
            command.append((["run_in_background", "is_background"], True))
        return self.fill(SHELLS, tools, command)

    def fill(self, names, tools, values):
        """Returns the first of these tools that the agent has, with all required arguments."""
        name = next((name for name in names if name in tools), None)
        if name is None:
            return None
        properties = tools[name].get("properties", {})
        told = {}
        for keys, value in values:
            key = next((key for key in keys if key in properties), None)
            if key:
                told[key] = [value] if properties[key].get("type") == "array" else value
        for key in tools[name].get("required", []):
            empty = {"string": "as asked", "boolean": False, "array": [], "integer": 0, "number": 0, "object": {}}
            choices = properties.get(key, {}).get("enum")
            told.setdefault(key, choices[0] if choices else empty.get(properties.get(key, {}).get("type"), "as asked"))
        return name, told


def events(rows):
    return "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows).encode()


def is_of_script(text):
    return any(word in text for word in SCRIPT)


def texts_of(content):
    """Returns the texts in the content of a message, which may be one text or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content or [] if isinstance(part, dict) and "text" in part]


class Anthropic(StandIn):
    """The messages interface of Anthropic."""

    def reply(self, path, body):
        if "/messages" not in path or "count_tokens" in path:
            return "application/json", b'{"input_tokens":10}'
        tools = {tool.get("name"): tool.get("input_schema", {}) for tool in body.get("tools", [])}
        messages = body.get("messages", [])
        blocks = [
            (message["role"], block)
            for message in messages
            for block in (
                [{"type": "text", "text": message["content"]}]
                if isinstance(message["content"], str)
                else message["content"]
            )
        ]
        prompts = [block["text"] for role, block in blocks if role == "user" and block["type"] == "text"]
        last = max((n for n, (role, b) in enumerate(blocks) if role == "user" and b["type"] == "text"
                    and is_of_script(b["text"])), default=-1)
        done = sum(1 for _, block in blocks[last + 1:] if block["type"] == "tool_result")
        content, stop = [{"type": "text", "text": "Done."}], "end_turn"
        if "Bash" in tools:
            self.requests.append(prompts)
            step = self.next_step(prompts, done)
            if step:
                content, stop = [self.tool(step, len(self.requests), tools, body)], "tool_use"
        return self.stream(body, content, stop)

    def tool(self, step, number, tools, body):
        # A tool that the agent offers only on request is not in the list.
        if step == "save" and not self.call(step, tools):
            save = re.search(r"mcp__\w*backtrail__checkpoint_save", json.dumps(body))
            name, told = save and save[0], {"message": SAVED}
        else:
            name, told = self.call(step, tools)
        return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": told}

    def stream(self, body, content, stop):
        number = len(self.requests)
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model", "m"),
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        if not body.get("stream"):
            return "application/json", json.dumps(dict(message, content=content, stop_reason=stop)).encode()
        rows = [{"type": "message_start", "message": message}]
        for index, block in enumerate(content):
            if block["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = dict(block, input={})
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            rows += [
                {"type": "content_block_start", "index": index, "content_block": start},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        rows += [
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
        return "text/event-stream", events(rows)


class Chat(StandIn):
    """The chat interface of OpenAI, which most agents can use."""

    def reply(self, path, body):
        if "chat/completions" not in path:
            return "application/json", b'{"data":[],"models":[]}'
        tools = {
            tool["function"]["name"]: tool["function"].get("parameters", {})
            for tool in body.get("tools", []) if "function" in tool
        }
        messages = body.get("messages", [])
        texts = [
            (number, text) for number, message in enumerate(messages) if message.get("role") == "user"
            for text in texts_of(message.get("content"))
        ]
        last = max((number for number, text in texts if is_of_script(text)), default=-1)
        done = sum(message.get("role") == "tool" for message in messages[last + 1:])
        call = None
        if any(name in tools for name in SHELLS + WRITERS):
            self.requests.append([text for _, text in texts])
            step = self.next_step([text for _, text in texts], done)
            call = step and self.call(step, tools)
        return self.answer(body, call)

    def answer(self, body, call):
        number = len(self.bodies)
        message, finish = {"role": "assistant", "content": "Done."}, "stop"
        if call:
            name, told = call
            function = {"name": name, "arguments": json.dumps(told)}
            tool = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            message, finish = {"role": "assistant", "content": None, "tool_calls": [tool]}, "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        about = {"id": f"chat_{number}", "created": 1, "model": body.get("model", "m")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(whole).encode()
        about["object"] = "chat.completion.chunk"
        rows = [
            {**about, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**about, "choices": [], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(row)}\n\n" for row in rows) + "data: [DONE]\n\n"
        return "text/event-stream", text.encode()


class Responses(StandIn):
    """The responses interface of OpenAI, for Codex CLI."""

    def reply(self, path, body):
        items = body.get("input", [])
        texts = [
            (number, part.get("text", ""))
            for number, item in enumerate(items)
            if item.get("type") == "message" and item.get("role") == "user" and isinstance(item.get("content"), list)
            for part in item["content"]
        ]
        last = max((number for number, text in texts if is_of_script(text)), default=-1)
        done = sum(1 for item in items[last + 1:] if item.get("type", "").endswith("_output"))
        self.requests.append([text for _, text in texts])
        step = self.next_step([text for _, text in texts], done)
        number = len(self.requests)
        item = step and self.tool(step, number, body.get("tools", []))
        if not item:
            content = [{"type": "output_text", "text": "Done."}]
            item = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": content}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        return "text/event-stream", events([
            {"type": "response.created", "response": {"id": f"r_{number}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": f"r_{number}", "usage": usage}},
        ])

    def tool(self, step, number, tools):
        if step == "save":
            told = json.dumps({"message": SAVED})
            return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "namespace": "mcp__backtrail", "name": "checkpoint_save", "arguments": told}
        names = {tool.get("name") or tool.get("type"): tool.get("type") for tool in tools}
        if step == "delegate":
            return None
        file, text = WRITES.get(step, (None, None))
        patch = f"*** Begin Patch\n*** Add File: {file}\n+{text}*** End Patch\n"
        if text and names.get("apply_patch") == "custom":
            return {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": "apply_patch", "input": patch}
        # Without a tool for patches, Codex reads a patch from a shell command.
        lines = {"delete": DELETE, "background": f"({BACKGROUND}) >/dev/null 2>&1 &"}
        command = lines.get(step, f"apply_patch <<'END'\n{patch}END\n")
        shell = next(name for name in ("exec_command", "shell_command", "shell") if name in names)
        told = {"exec_command": {"cmd": command}, "shell_command": {"command": command}, "shell": {"command": ["sh", "-c", command]}}
        return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": shell, "arguments": json.dumps(told[shell])}


class Google(StandIn):
    """The interface of Google's models, for Gemini CLI."""

    def reply(self, path, body):
        if "countTokens" in path:
            return "application/json", b'{"totalTokens":5}'
        contents = body.get("contents", [])
        texts = [
            (number, part["text"])
            for number, content in enumerate(contents)
            if content.get("role") == "user"
            for part in content.get("parts", [])
            if "text" in part
        ]
        last = max((number for number, text in texts if is_of_script(text)), default=-1)
        done = sum("functionResponse" in part for content in contents[last + 1:] for part in content.get("parts", []))
        declared = [f for tool in body.get("tools", []) for f in tool.get("functionDeclarations", [])]
        tools = {f["name"]: f.get("parametersJsonSchema") or f.get("parameters", {}) for f in declared}
        part = {"text": "Done."}
        if "run_shell_command" in tools:
            self.requests.append([text for _, text in texts])
            step = self.next_step([text for _, text in texts], done)
            call = step and self.call(step, tools)
            if call:
                part = {"functionCall": {"name": call[0], "args": call[1]}}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "stand-in",
        }
        if "stream" in path:
            return "text/event-stream", f"data: {json.dumps(answer)}\r\n\r\n".encode()
        return "application/json", json.dumps(answer).encode()
