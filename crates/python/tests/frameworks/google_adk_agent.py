"""Google's Agent Development Kit with a scripted model."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from scenario import CALLS, PROMPTS, check, delete_file, root, write_file

from backtrail.integrations.google_adk import CheckpointPlugin


def scripted() -> Any:
    for name, arguments in [*CALLS, CALLS[1]]:
        yield types.Part.from_function_call(name=name, args=arguments)
        yield types.Part(text="done")


script = scripted()
seen: list[int] = []


class Scripted(BaseLlm):
    async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
        seen.append(len(request.contents))
        yield LlmResponse(content=types.Content(role="model", parts=[next(script)]))


def remember(tool_context: Any) -> None:
    tool_context.state["tools"] = (tool_context.state.get("tools") or 0) + 1


turns = CheckpointPlugin(root)
sessions = InMemorySessionService()
agent = LlmAgent(
    name="agent",
    model=Scripted(model="scripted"),
    tools=[write_file, delete_file],
    after_tool_callback=lambda tool, args, tool_context, tool_response: remember(tool_context),
)
runner = Runner(app_name="app", agent=agent, session_service=sessions, plugins=[turns])


async def session() -> Any:
    return await sessions.get_session(app_name="app", user_id="u", session_id="s")


def state() -> Any:
    # What the session remembers: the number of tools that ran.
    return ["x"] * (asyncio.run(session()).state.get("tools") or 0)


async def run_async(prompt: str) -> None:
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
        pass


asyncio.run(sessions.create_session(app_name="app", user_id="u", session_id="s"))
states = [state()]
for prompt in PROMPTS:
    asyncio.run(run_async(prompt))
    states.append(state())
check(
    turns,
    states,
    lambda number: asyncio.run(turns.rewind_runner(runner, user_id="u", session_id="s", turns=number)),
    state,
    lambda: asyncio.run(run_async(PROMPTS[1])),
)
assert seen[0] == seen[-6] == 1, seen
