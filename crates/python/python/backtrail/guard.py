"""Blocks and functions that leave no trace when they fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from ._native import NativeSurvey
from .errors import NotFoundError, UsageError
from .results import Checkpoint, Restored, Skipped
from .workspace import StrPath, Workspace

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Guard:
    """A checkpoint around a block. If the block raises, the workspace is as it was, and the exception goes on.

    Where the workspace can't be brought back, that is the exception, and the checkpoint stays pinned.
    """

    def __init__(self, workspace: Workspace, message: str | None = None) -> None:
        self.workspace = workspace
        self.message = message
        self.restored: Restored | None = None
        """What rolling back did; none as long as nothing was rolled back."""
        self.not_taken_back: list[str] = []
        """What the block changed, created or removed and no checkpoint holds, so that it is still there after rolling
        back; a new or removed directory is one path. Empty as long as nothing was rolled back."""
        self.dropped: list[Skipped] = []
        """Paths that the checkpoint could not capture any more, although the one before it held them."""
        self._checkpoint: Checkpoint | None = None
        self._survey: NativeSurvey | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint at the beginning of the block."""
        if self._checkpoint is None:
            raise UsageError("the guarded block has not started")
        return self._checkpoint

    @property
    def rolled_back(self) -> bool:
        return self.restored is not None

    def rollback(self) -> Restored:
        """Brings the workspace back to the beginning of the block, without an exception."""
        self.restored = self.workspace.restore(self.checkpoint)
        if self._survey is not None:
            self.not_taken_back = self.workspace._not_taken_back(self._survey, self.restored)
        return self.restored

    def __enter__(self) -> Guard:
        saved = self.workspace.save(self.message, kind="automatic", allow_empty=True)
        self._checkpoint = saved.checkpoint
        self.dropped = saved.dropped
        try:
            self._survey = self.workspace._survey()
            # Only the last few automatic checkpoints are kept, and the block may take more than that.
            self._checkpoint = self.workspace.pin(saved)
        except BaseException:
            self._unpin()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # Where this fails, the checkpoint stays pinned: it is the way back.
            self.rollback()
        self._unpin()

    def _unpin(self) -> None:
        try:
            self.workspace.unpin(self.checkpoint)
        except NotFoundError:
            # The block deleted it.
            pass


@overload
def checkpointed(function: Callable[_Parameters, _Result], /) -> Callable[_Parameters, _Result]: ...


@overload
def checkpointed(
    *, workspace: Workspace | StrPath | None = None, message: str | None = None
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]: ...


def checkpointed(
    function: Callable[..., Any] | None = None,
    /,
    *,
    workspace: Workspace | StrPath | None = None,
    message: str | None = None,
) -> Any:
    """Makes a function leave no trace when it raises: it runs in a guarded block of the workspace.

    Without a `workspace`, it is the one around the current directory at the time of the call. Works for ``async``
    functions, too, but not for generators: what they do, they do when nobody guards them any more.
    """
    if function is None:
        return functools.partial(_checkpointed, workspace=workspace, message=message)
    return _checkpointed(function, workspace=workspace, message=message)


def _checkpointed(
    function: Callable[..., Any], *, workspace: Workspace | StrPath | None, message: str | None
) -> Callable[..., Any]:
    if not callable(function):
        what = type(function).__name__
        if isinstance(function, classmethod):
            raise TypeError("checkpointed goes between @classmethod and the function")
        raise TypeError(f"checkpointed is for functions, not {what}; a workspace is named by workspace=")
    if any(_is_generator(each) for each in (function, _call_of(function))):
        raise TypeError("a generator goes on after its call: guard the block in it with workspace.guard()")
    label = message or f"before {getattr(function, '__name__', 'a call')}"

    def guarded() -> Workspace:
        if isinstance(workspace, Workspace):
            return workspace
        return Workspace.around() if workspace is None else Workspace(workspace)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(_call_of(function)):

        @functools.wraps(function)
        async def run_async(*arguments: Any, **named: Any) -> Any:
            from . import aio

            async with aio.Workspace._of(guarded()).guard(label):
                return await cast(Awaitable[Any], function(*arguments, **named))

        return run_async

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        with guarded().guard(label):
            return function(*arguments, **named)

    return run


def _call_of(function: Callable[..., Any]) -> object:
    """What an object that can be called runs."""
    return getattr(type(function), "__call__", None)


def _is_generator(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
