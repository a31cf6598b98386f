"""The checkpoints of an agent's session: one for each prompt, and one before and after each tool."""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from .. import aio
from ..errors import UsageError
from ..results import Checkpoint, Restored
from ..workspace import StrPath, Workspace

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rewound:
    """The outcome of `Turns.rewind`."""

    restored: Restored
    """The changes of the files."""
    prompt: str | None
    """The prompt that was taken back."""
    conversation: Any
    """The conversation before that prompt, in the types of JSON. `None` if none was given."""
    checkpoint: Checkpoint
    """The checkpoint of that prompt."""


class Turns:
    """Takes the checkpoints of one session of an agent.

    `tools` has the names of the tools that can change files; `None` means all. `session` is any text that identifies the
    session. It is made up if it is missing.
    """

    agent: str = "agent"
    """The agent in the record of the checkpoints."""

    def __init__(
        self, workspace: Workspace | StrPath, *, session: str | None = None, tools: Collection[str] | None = None
    ) -> None:
        self.workspace: Workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        """The workspace whose files are saved."""
        self.session: str = session or uuid.uuid4().hex
        """The session in the record of the checkpoints."""
        self.changing: frozenset[str] | None = None if tools is None else frozenset(tools)
        """The names of the tools that can change files. `None` means all."""
        self._prompt: str | None = None
        self._turn: int | None = None

    # Taking checkpoints

    def begin_turn(self, prompt: str, conversation: Any = None, metadata: dict[str, Any] | None = None) -> Checkpoint:
        """Takes the checkpoint of a prompt, before the agent works for it. `conversation` is the one before it."""
        earlier = self._turns_behind()
        self._prompt, self._turn = prompt, 1 + (earlier[0].turn or 0 if earlier else 0)
        saved = self.workspace.save(
            prompt.strip().split("\n", 1)[0][:200] or "a prompt",
            kind="turn",
            author="other",
            conversation=conversation,
            metadata=metadata,
            allow_empty=True,
            **self._words(),
        )
        return saved.checkpoint

    def before_tool(self, tool: str) -> None:
        """Takes a checkpoint of what changed since the last one, if the tool can change files."""
        self._save(tool, "before", "other")

    def after_tool(self, tool: str) -> None:
        """Takes a checkpoint of what the tool changed."""
        self._save(tool, "after", "agent")

    def _save(self, tool: str, when: str, author: str) -> None:
        if self.changing is None or tool in self.changing:
            words = self._words()
            self.workspace.save(f"{when} {tool}", kind="step", tool=tool, author=author, if_changed=True, **words)

    def _words(self) -> dict[str, Any]:
        return {"session": self.session, "agent": self.agent, "turn": self._turn, "prompt": self._prompt}

    @contextmanager
    def around_tool(self, tool: str) -> Iterator[None]:
        """Takes a checkpoint before and after a block that runs a tool, also if the tool fails."""
        self.before_tool(tool)
        try:
            yield
        finally:
            self.after_tool(tool)

    @asynccontextmanager
    async def around_tool_async(self, tool: str) -> AsyncIterator[None]:
        """The asyncio form of `around_tool`."""
        await aio.run(self.before_tool, tool)
        try:
            yield
        finally:
            await aio.run(self.after_tool, tool)

    # Going back

    def checkpoint_of_turn(self, turns: int = 1) -> Checkpoint:
        """Returns the checkpoint of the prompt that is the `turns`-th from the last."""
        found = self._turns_behind()
        if not 1 <= turns <= len(found):
            raise UsageError(f"turns is {turns}, but the number of prompts to go back to is {len(found)}")
        return found[turns - 1]

    def _turns_behind(self) -> list[Checkpoint]:
        """Returns the checkpoints of the prompts that led to where the workspace stands, newest first. A prompt that was
        taken back and followed by another one with its number is left out."""
        found: list[Checkpoint] = []
        for one in map(self.workspace.get, self.workspace._turns_behind()):
            if one.session == self.session and (not found or (one.turn or 0) < (found[-1].turn or 0)):
                found.append(one)
        return found

    def rewind(self, turns: int = 1) -> Rewound:
        """Restores the files to before the prompt that is the `turns`-th from the last, and returns the conversation
        before it. `Workspace.undo` takes the restore back."""
        target = self.checkpoint_of_turn(turns)
        restored = self.workspace.restore(target)
        return Rewound(restored, target.prompt, restored.conversation, target)

    async def arewind(self, turns: int = 1) -> Rewound:
        """The asyncio form of `rewind`."""
        return await aio.run(self.rewind, turns)


def checkpointed_tool(turns: Turns, name: str | None = None) -> Callable[[_Function], _Function]:
    """Decorates a tool of any framework, so that a checkpoint is taken before and after each call.

    `name` defaults to the name of the function. ``async`` functions are supported. The decorated function has the same
    signature, from which most frameworks make the description of the tool.
    """

    def decorate(function: _Function) -> _Function:
        tool = name or str(getattr(function, "__name__", type(function).__name__))
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator runs after its call; use turns.around_tool() inside it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*arguments: Any, **named: Any) -> Any:
                async with turns.around_tool_async(tool):
                    return await function(*arguments, **named)

            return cast(_Function, run_async)

        @functools.wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            with turns.around_tool(tool):
                return function(*arguments, **named)

        return cast(_Function, run)

    return decorate
