"""Blocks and functions whose changes are rolled back if they raise an exception."""

from __future__ import annotations

import functools
import inspect
import shlex
import signal
from collections.abc import Awaitable, Callable
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from ._native import NativeSurvey
from ._signals import Signals
from .errors import NotFoundError, UsageError
from .results import Checkpoint, Restored, Skipped
from .workspace import StrPath, Workspace

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Guard:
    """A checkpoint around a block. If the block raises an exception, the workspace is restored, and the exception is
    raised again, with a note.

    Ctrl-C and SIGTERM end the block like an exception. If they arrive during the rollback, it is finished first. If the
    rollback fails, the note of the exception names the checkpoint, which then stays pinned.
    """

    def __init__(self, workspace: Workspace, message: str | None = None) -> None:
        self.workspace = workspace
        """The workspace that is rolled back."""
        self.message = message
        """The message of the checkpoint."""
        self.restored: Restored | None = None
        """The outcome of the rollback. `None` if nothing was rolled back."""
        self.failure: BaseException | None = None
        """The exception of a rollback that failed. `None` if none did."""
        self.not_taken_back: list[str] = []
        """Paths that the block changed, created or removed, and that the rollback left as they are because no
        checkpoint holds them. A new or removed directory is one path. Empty if nothing was rolled back."""
        self.dropped: list[Skipped] = []
        """Paths that the checkpoint could no longer capture, although the previous one held them."""
        self._checkpoint: Checkpoint | None = None
        self._survey: NativeSurvey | None = None
        self._is_ending = False
        self._signals = Signals((signal.SIGINT, signal.SIGTERM), self._ends_in)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint at the start of the block."""
        if self._checkpoint is None:
            raise UsageError("the guarded block has not started")
        return self._checkpoint

    @property
    def rolled_back(self) -> bool:
        """True if the block was rolled back."""
        return self.restored is not None

    def rollback(self) -> Restored:
        """Restores the workspace to the start of the block, without an exception."""
        self.restored = self.workspace.restore(self.checkpoint)
        if self._survey is not None:
            self.not_taken_back = self.workspace._not_taken_back(self._survey, self.restored)
        return self.restored

    def __enter__(self) -> Guard:
        self._signals.install()
        try:
            self._begin()
        except BaseException as problem:
            self._signals.remove(problem)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A signal that arrives before the first statement is recognised by its frame.
        self._is_ending = True
        try:
            self._end(problem)
        finally:
            self._signals.remove(problem)

    def _ends_in(self, frame: FrameType | None) -> bool:
        return self._is_ending or (frame is not None and frame.f_code is Guard.__exit__.__code__)

    def _begin(self) -> None:
        saved = self.workspace.save(self.message, kind="automatic", allow_empty=True)
        self._checkpoint = saved.checkpoint
        self.dropped = saved.dropped
        try:
            self._survey = self.workspace._survey()
            # Retention keeps only the last few automatic checkpoints, and the block may take more than that.
            self._checkpoint = self.workspace.pin(saved)
        except BaseException:
            self._is_ending = True
            self._release()
            raise

    def _release(self) -> None:
        """Unpins the checkpoint, if there is one."""
        if self._checkpoint is not None:
            self._unpin()

    def _end(self, problem: BaseException | None) -> None:
        if problem is None:
            self._unpin()
            return
        at, short = self.checkpoint.id, self.checkpoint.short_id
        root = str(self.workspace.path)
        try:
            self.rollback()
        except Exception as failure:
            self.failure = failure
            _add_note(
                problem,
                f"backtrail: {root} could not be rolled back: {failure}. The checkpoint {short} has the files and stays"
                f" pinned. Bring them back with: backtrail -w {shlex.quote(root)} restore {short}, or in Python:"
                f" Workspace({root!r}).restore({at!r})",
            )
            return
        _add_note(problem, f"backtrail: {root} was rolled back to the checkpoint {short}")
        try:
            self._unpin()
        except Exception as failure:
            _add_note(problem, f"backtrail: the checkpoint {short} stays pinned: {failure}")

    def _unpin(self) -> None:
        try:
            self.workspace.unpin(self.checkpoint)
        except NotFoundError:
            # The block deleted the checkpoint.
            pass


def _add_note(problem: BaseException, note: str) -> None:
    if hasattr(problem, "add_note"):
        problem.add_note(note)
        return
    # Python 3.10 has no method for it. Later versions show this attribute.
    notes = [*getattr(problem, "__notes__", []), note]
    setattr(problem, "__notes__", notes)


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
    """Decorates a function so that it runs in a guarded block: if it raises an exception, the workspace is rolled back.

    `workspace` defaults to the one that contains the current directory at the time of the call. ``async`` functions are
    supported. Generators are refused, because their code runs after the call has returned and the guard has ended.
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
            raise TypeError("@checkpointed must be below @classmethod")
        raise TypeError(f"checkpointed takes a function, not {what}; pass a workspace as workspace=...")
    if any(_is_generator(each) for each in (function, _call_of(function))):
        raise TypeError("a generator runs after its call and can't be guarded; use workspace.guard() inside it")
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
    """Returns the ``__call__`` method of a callable object."""
    return getattr(type(function), "__call__", None)


def _is_generator(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
