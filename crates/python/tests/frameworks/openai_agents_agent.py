"""The OpenAI Agents SDK with a scripted model."""

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, SQLiteSession, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from scenario import CALLS, PROMPTS, check, delete_file, root, write_file

from backtrail.integrations.openai_agents import CheckpointHooks

set_tracing_disabled(True)


class Scripted(Model):
    def __init__(self) -> None:
        self.script = self.scripted()

    def scripted(self) -> Any:
        for number, (name, arguments) in enumerate([*CALLS, CALLS[1]]):
            yield ResponseFunctionToolCall(
                arguments=json.dumps(arguments), call_id=f"call-{number}", name=name, type="function_call", id=f"f-{number}"
            )
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            yield ResponseOutputMessage(id=f"m-{number}", content=[text], role="assistant", status="completed", type="message")

    async def get_response(self, *arguments: Any, **named: Any) -> ModelResponse:
        return ModelResponse(output=[next(self.script)], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError


turns = CheckpointHooks(root)
agent = Agent(name="agent", model=Scripted(), tools=[function_tool(write_file), function_tool(delete_file)])
session = SQLiteSession("work")


def state() -> Any:
    return asyncio.run(session.get_items())


def run(prompt: str) -> None:
    asyncio.run(turns.run(agent, prompt, session=session))


states = [state()]
for prompt in PROMPTS:
    run(prompt)
    states.append(state())
check(turns, states, lambda number: asyncio.run(turns.rewind_session(session, number)), state, lambda: run(PROMPTS[1]))
