"""Loopback stand-ins for the model services of three agents.

All answer from the same script: the next action of the model depends on the last prompt and on the number of tools that
have run since. The requests are kept, so that a test can check the conversation that the agent really sent.
"""

import http.server
import json
import re
import threading

# The actions of the model for a prompt that contains a word: tools one after another, then a text.
SCRIPT = {
    "FIRST": ["edit", "delete"],
    "SECOND": ["write"],
    "THIRD": [],
    "FOURTH": ["save"],
}

EDITED = "greeting = 'changed by the agent'\n"
DELETE = "rm doomed.txt .env lib/a.txt && rmdir lib"
WRITTEN = "written for the second prompt\n"
SAVED = "asked for by the model"


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


def events(rows):
    return "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows).encode()


class Anthropic(StandIn):
    """For Claude Code."""

    def reply(self, path, body):
        if "/messages" not in path or "count_tokens" in path:
            return "application/json", b'{"input_tokens":10}'
        tools = [tool.get("name") for tool in body.get("tools", [])]
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
                    and any(word in b["text"] for word in SCRIPT)), default=-1)
        done = sum(1 for _, block in blocks[last + 1:] if block["type"] == "tool_result")
        content, stop = [{"type": "text", "text": "Done."}], "end_turn"
        if "Bash" in tools:
            self.requests.append(prompts)
            step = self.next_step(prompts, done)
            if step:
                content, stop = [self.tool(step, len(self.requests), body)], "tool_use"
        return self.stream(body, content, stop)

    def tool(self, step, number, body):
        # The name contains that of the plugin if the server belongs to a plugin.
        save = re.search(r"mcp__\w*backtrail__checkpoint_save", json.dumps(body))
        name, told = {
            "edit": ("Write", {"file_path": f"{self.project}/app.txt", "content": EDITED}),
            "delete": ("Bash", {"command": DELETE, "description": "clean up"}),
            "write": ("Write", {"file_path": f"{self.project}/second.txt", "content": WRITTEN}),
            "save": (save and save[0], {"message": SAVED}),
        }[step]
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


class OpenAI(StandIn):
    """For Codex CLI: the responses interface."""

    def reply(self, path, body):
        items = body.get("input", [])
        texts = [
            (number, part.get("text", ""))
            for number, item in enumerate(items)
            if item.get("type") == "message" and item.get("role") == "user" and isinstance(item.get("content"), list)
            for part in item["content"]
        ]
        last = max((number for number, text in texts if any(word in text for word in SCRIPT)), default=-1)
        done = sum(1 for item in items[last + 1:] if item.get("type", "").endswith("_output"))
        self.requests.append([text for _, text in texts])
        step = self.next_step([text for _, text in texts], done)
        number = len(self.requests)
        if step:
            item = self.tool(step, number, body.get("tools", []))
        else:
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
        text = {"edit": EDITED, "write": WRITTEN}.get(step)
        file = {"edit": "app.txt", "write": "second.txt"}.get(step)
        head = f"*** Update File: {file}\n@@\n-greeting = 'hello'\n" if step == "edit" else f"*** Add File: {file}\n"
        patch = f"*** Begin Patch\n{head}+{text}*** End Patch\n"
        if text and names.get("apply_patch") == "custom":
            return {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": "apply_patch", "input": patch}
        # Without a tool for patches, Codex reads a patch from a shell command.
        command = DELETE if step == "delete" else f"apply_patch <<'END'\n{patch}END\n"
        shell = next(name for name in ("exec_command", "shell_command", "shell") if name in names)
        told = {"exec_command": {"cmd": command}, "shell_command": {"command": command}, "shell": {"command": ["sh", "-c", command]}}
        return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": shell, "arguments": json.dumps(told[shell])}


class Google(StandIn):
    """For Gemini CLI."""

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
        last = max((number for number, text in texts if any(word in text for word in SCRIPT)), default=-1)
        done = sum("functionResponse" in part for content in contents[last + 1:] for part in content.get("parts", []))
        tools = [f["name"] for tool in body.get("tools", []) for f in tool.get("functionDeclarations", [])]
        part = {"text": "Done."}
        if "run_shell_command" in tools:
            self.requests.append([text for _, text in texts])
            step = self.next_step([text for _, text in texts], done)
            if step:
                part = {"functionCall": self.tool(step)}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "stand-in",
        }
        if "stream" in path:
            return "text/event-stream", f"data: {json.dumps(answer)}\r\n\r\n".encode()
        return "application/json", json.dumps(answer).encode()

    def tool(self, step):
        name, told = {
            "edit": ("write_file", {"file_path": f"{self.project}/app.txt", "content": EDITED}),
            "delete": ("run_shell_command", {"command": DELETE, "description": "clean up"}),
            "write": ("write_file", {"file_path": f"{self.project}/second.txt", "content": WRITTEN}),
            "save": ("mcp_backtrail_checkpoint_save", {"message": SAVED}),
        }[step]
        return {"name": name, "args": told}
