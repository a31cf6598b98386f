"""Checkpoints for Pydantic AI.

>>> turns = Checkpoints("path/to/project")
>>> agent = Agent(model, tools=tools, capabilities=[turns])
>>> done = await agent.run("add tests", message_history=history)
>>> history = turns.messages(await turns.arewind())     # files and messages as before that prompt
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from .. import aio
from .turns import Rewound, Turns

__all__ = ["Checkpoints"]


class Checkpoints(Turns, AbstractCapability[Any]):
    """A capability that takes a checkpoint for each run, and before and after each tool."""

    agent: str = "pydantic-ai"

    async def before_run(self, ctx: Any) -> None:
        """Takes the checkpoint of the prompt."""
        prompt = ctx.prompt if isinstance(ctx.prompt, str) else str(ctx.prompt or "")
        history = ModelMessagesTypeAdapter.dump_python(list(ctx.messages), mode="json")
        await aio.run(self.begin_turn, prompt, history)

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Takes a checkpoint before and after a tool."""
        async with self.around_tool_async(call.tool_name):
            return await handler(args)

    def messages(self, rewound: Rewound) -> list[ModelMessage]:
        """Returns the conversation of a rewind as Pydantic AI's messages."""
        messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_json(json.dumps(rewound.conversation or []))
        return messages
