"""Checkpoints for the OpenAI Agents SDK.

>>> turns = CheckpointHooks("path/to/project")
>>> session = SQLiteSession("work")
>>> turns.begin_turn(prompt, await session.get_items())
>>> await Runner.run(agent, prompt, session=session, hooks=turns)
>>> await turns.rewind_session(session)                 # files and session as before that prompt
"""

from __future__ import annotations

from typing import Any

from agents import RunHooks

from .. import aio
from .turns import Rewound, Turns

__all__ = ["CheckpointHooks"]


class CheckpointHooks(Turns, RunHooks[Any]):
    """Hooks that take a checkpoint for each run, and before and after each tool."""

    agent: str = "openai-agents"

    async def run(self, agent: Any, prompt: str, *, session: Any, **named: Any) -> Any:
        """Runs an agent for a prompt, like ``Runner.run`` with these hooks. Takes the checkpoint of the prompt first."""
        from agents import Runner

        await aio.run(self.begin_turn, prompt, await session.get_items())
        return await Runner.run(agent, prompt, session=session, hooks=self, **named)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Takes a checkpoint before a tool."""
        await aio.run(self.before_tool, tool.name)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        """Takes a checkpoint after a tool."""
        await aio.run(self.after_tool, tool.name)

    async def rewind_session(self, session: Any, turns: int = 1) -> Rewound:
        """Goes back to before a prompt: the files, and the items of the session."""
        rewound = await self.arewind(turns)
        await session.clear_session()
        if rewound.conversation:
            await session.add_items(rewound.conversation)
        return rewound
