"""A real agent of praisonaiagents with a wrapped tool. A local server takes the place of the model."""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

asked: list[list[str]] = []


class Model(BaseHTTPRequestHandler):
    """Requests a call of the tool first, and ends the conversation once it has the answer of the tool."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        roles = [message["role"] for message in request["messages"]]
        asked.append([*roles, *(tool["function"]["name"] for tool in request.get("tools", []))])
        arguments = json.dumps({"path": "a", "content": "2"})
        call = {"id": "call_1", "type": "function", "function": {"name": "put_note", "arguments": arguments}}
        wants = {"role": "assistant", "content": None, "tool_calls": [call]}
        done = {"role": "assistant", "content": "written"}
        choice = {"message": done, "finish_reason": "stop"} if "tool" in roles else {"message": wants, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": request["model"], "usage": usage}
        body = json.dumps({**answer, "choices": [{"index": 0, **choice}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
# All other network access of the packages fails.
nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address, "OPENAI_API_BASE": address, "DO_NOT_TRACK": "1", **nowhere}

from praisonaiagents import Agent  # noqa: E402

from backtrail.compat.praisonai import CheckpointEvent, CheckpointService  # noqa: E402

workspace = Path(sys.argv[1])
service = CheckpointService(str(workspace), sys.argv[2])
told: list[str] = []
service.on(CheckpointEvent.CHECKPOINT_CREATED, lambda checkpoint: told.append(checkpoint.message))
asyncio.run(service.initialize())


def put_note(path: str, content: str) -> str:
    """Writes a file."""
    (workspace / path).write_text(content)
    return "done"


(workspace / "a").write_text("1")
agent = Agent(instructions="You write files.", llm="gpt-4o-mini", tools=[service.wrap_tool(put_note)])
answer = agent.chat("Write 2 into the file a.", stream=False)
changed = (workspace / "a").read_text()
checkpoints = asyncio.run(service.list())
asyncio.run(service.restore(checkpoints[-1].id))
seen = {
    "asked": asked,
    "answer": str(answer),
    "the agent changed it": changed,
    "checkpoints": [one.message for one in checkpoints],
    "told": told[:1],
    "restored": (workspace / "a").read_text(),
}
print(json.dumps(seen))
