"""Checkpoints for Strands Agents.

>>> turns = CheckpointPlugin("path/to/project")
>>> agent = Agent(model=model, tools=tools, plugins=[turns])
>>> agent("add tests")
>>> turns.rewind_agent(agent)                           # files and messages as before that prompt
"""

from __future__ import annotations

import copy
from typing import Any

from strands.hooks import AfterToolCallEvent, BeforeInvocationEvent, BeforeToolCallEvent
from strands.plugins import Plugin

from ..workspace import StrPath, Workspace
from .turns import Rewound, Turns

__all__ = ["CheckpointPlugin"]


class CheckpointPlugin(Turns, Plugin):
    """A plugin that takes a checkpoint for each prompt, and before and after each tool."""

    agent: str = "strands"
    name = "backtrail"

    def __init__(self, workspace: Workspace | StrPath, **named: Any) -> None:
        Plugin.__init__(self)
        Turns.__init__(self, workspace, **named)

    def init_agent(self, agent: Any) -> None:
        """Adds the hooks to an agent. Strands calls this."""
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(lambda event: self.before_tool(event.tool_use["name"]), BeforeToolCallEvent)
        agent.add_hook(lambda event: self.after_tool(event.tool_use["name"]), AfterToolCallEvent)

    def _begin(self, event: Any) -> None:
        texts = [block["text"] for message in event.messages or [] for block in message["content"] if "text" in block]
        self.begin_turn(" ".join(texts), event.agent.messages)

    def rewind_agent(self, agent: Any, turns: int = 1) -> Rewound:
        """Goes back to before a prompt: the files, and the messages of the agent."""
        rewound = self.rewind(turns)
        agent.messages[:] = copy.deepcopy(rewound.conversation or [])
        return rewound
