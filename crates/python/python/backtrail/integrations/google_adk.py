"""Checkpoints for Google's Agent Development Kit.

>>> turns = CheckpointPlugin("path/to/project")
>>> runner = Runner(app_name="app", agent=agent, session_service=sessions, plugins=[turns])
>>> async for event in runner.run_async(user_id="u", session_id="s", new_message=message): ...
>>> await turns.rewind_runner(runner, user_id="u", session_id="s")   # files and session as before that prompt
"""

from __future__ import annotations

from typing import Any

from google.adk.plugins.base_plugin import BasePlugin

from .. import aio
from ..workspace import StrPath, Workspace
from .turns import Rewound, Turns

__all__ = ["CheckpointPlugin"]


class CheckpointPlugin(Turns, BasePlugin):
    """A plugin that takes a checkpoint for each invocation, and before and after each tool."""

    agent: str = "google-adk"

    def __init__(self, workspace: Workspace | StrPath, **named: Any) -> None:
        BasePlugin.__init__(self, name="backtrail")
        Turns.__init__(self, workspace, **named)

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Takes the checkpoint of the prompt."""
        content = invocation_context.user_content
        prompt = " ".join(part.text for part in (content.parts if content else None) or [] if part.text)
        events = [event.model_dump(mode="json", exclude_none=True) for event in invocation_context.session.events]
        earlier = [event for event in events if event.get("invocation_id") != invocation_context.invocation_id]
        told = {"invocation": invocation_context.invocation_id}
        await aio.run(self.begin_turn, prompt, earlier, told)

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Takes a checkpoint before a tool."""
        await aio.run(self.before_tool, tool.name)

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        """Takes a checkpoint after a tool."""
        await aio.run(self.after_tool, tool.name)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> None:
        """Takes a checkpoint after a tool that failed."""
        await aio.run(self.after_tool, tool.name)

    async def rewind_runner(self, runner: Any, *, user_id: str, session_id: str, turns: int = 1) -> Rewound:
        """Goes back to before a prompt: the files, and the session's state with ``Runner.rewind_async``."""
        target = await aio.run(self.checkpoint_of_turn, turns)
        rewound = await self.arewind(turns)
        await runner.rewind_async(
            user_id=user_id, session_id=session_id, rewind_before_invocation_id=target.metadata["invocation"]
        )
        return rewound
