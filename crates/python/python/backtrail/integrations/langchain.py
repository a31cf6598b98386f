"""Checkpoints for LangChain's ``create_agent`` and for deepagents.

>>> turns = CheckpointMiddleware("path/to/project")
>>> agent = create_agent(model, tools, middleware=[turns], checkpointer=InMemorySaver())
>>> agent.invoke({"messages": [{"role": "user", "content": "add tests"}]}, config)
>>> turns.rewind_agent(agent, config)                   # files and messages as before that prompt
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, messages_from_dict, messages_to_dict
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from .. import aio
from .turns import Rewound, Turns

__all__ = ["CheckpointMiddleware"]


class CheckpointMiddleware(Turns, AgentMiddleware[Any, Any]):
    """A middleware that takes a checkpoint for each prompt, and before and after each tool."""

    agent: str = "langchain"

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Takes the checkpoint of the prompt."""
        before, prompt = _split(state["messages"])
        self.begin_turn(prompt, messages_to_dict(before))

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """The asyncio form of `before_agent`."""
        await aio.run(self.before_agent, state, runtime)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Takes a checkpoint before and after a tool."""
        with self.around_tool(request.tool_call["name"]):
            return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The asyncio form of `wrap_tool_call`."""
        async with self.around_tool_async(request.tool_call["name"]):
            return await handler(request)

    def messages(self, rewound: Rewound) -> list[BaseMessage]:
        """Returns the conversation of a rewind as LangChain's messages."""
        return messages_from_dict(rewound.conversation or [])

    def rewind_agent(self, agent: Any, config: Any, turns: int = 1) -> Rewound:
        """Goes back to before a prompt: the files, and the messages that the agent's checkpointer has."""
        rewound = self.rewind(turns)
        kept = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *self.messages(rewound)]
        agent.update_state(config, {"messages": kept}, as_node="__start__" if "__start__" in agent.nodes else None)
        return rewound


def _split(messages: list[BaseMessage]) -> tuple[list[BaseMessage], str]:
    """Returns the messages before the prompt, and the prompt."""
    at = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    return messages[:at], str(messages[at].text) if messages else ""
