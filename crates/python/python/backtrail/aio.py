"""`Workspace` and `Guard` for asyncio: each operation runs in a thread, so that the event loop is not blocked.

If a task is cancelled, its operation is stopped as long as it only reads. An operation that has begun to write is
finished before the task ends, so that nothing changes after the caller has seen the cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, List, ParamSpec, TypeVar

from . import guard as guards
from . import workspace as blocking
from ._native import Call
from ._signals import Signals
from .results import Checkpoint, Event, EventName, Restored, Skipped, WorkspaceInfo
from .workspace import StrPath

__all__ = ["AsyncCallback", "Guard", "Workspace"]

AsyncCallback = Callable[[Event], object | Awaitable[object]]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "backtrail_loop", default=None
)


async def run(
    function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Runs a blocking function in a thread. If the task is cancelled, stops the operations of the function."""
    loop = asyncio.get_running_loop()
    started = _Calls()
    context = contextvars.copy_context()
    context.run(blocking.calls.set, started)
    context.run(_loop.set, loop)
    work = loop.run_in_executor(None, functools.partial(context.run, function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        started.stop()
        await _ended(work)
        # Marks the exception as retrieved, so that asyncio does not log it. Most often it only says that the operation
        # was stopped.
        if not work.cancelled():
            work.exception()
        raise


async def _ended(work: asyncio.Future[Any]) -> bool:
    """Waits until `work` is done, even if the task is cancelled meanwhile. Returns whether it was cancelled."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


class _Calls(List[Call]):
    """The calls that a function has started. They are stopped together."""

    stopped = False

    def append(self, call: Call) -> None:
        super().append(call)
        if self.stopped:
            call.stop()

    def stop(self) -> None:
        self.stopped = True
        for call in tuple(self):
            call.stop()


def _in_thread(
    method: Callable[Concatenate[blocking.Workspace, _Parameters], _Result],
) -> Callable[Concatenate[Workspace, _Parameters], Coroutine[Any, Any, _Result]]:
    """Turns a method of the blocking workspace into a coroutine method with the same name, signature and docstring."""

    @functools.wraps(method)
    async def call(self: Workspace, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        # Looked up by name, because a subclass of the blocking workspace may override the method.
        own: Callable[_Parameters, _Result] = getattr(self._blocking, method.__name__)
        return await run(own, *args, **kwargs)

    return call


class Workspace:
    """A protected directory, for asyncio. See `backtrail.Workspace`."""

    def __init__(
        self,
        path: StrPath,
        store: StrPath | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        exclude: Iterable[str] = (),
        wait: float = 30.0,
        force: bool = False,
    ) -> None:
        self._blocking = blocking.Workspace(path, store, settings, exclude=exclude, wait=wait, force=force)

    @classmethod
    def around(
        cls,
        path: StrPath = ".",
        store: StrPath | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        exclude: Iterable[str] = (),
        wait: float = 30.0,
        force: bool = False,
    ) -> Workspace:
        """Returns the workspace that contains `path`. See `backtrail.Workspace.around`."""
        return cls._of(blocking.Workspace.around(path, store, settings, exclude=exclude, wait=wait, force=force))

    @classmethod
    def _of(cls, workspace: blocking.Workspace) -> Workspace:
        made = cls.__new__(cls)
        made._blocking = workspace
        return made

    @property
    def path(self) -> Path:
        """The protected directory."""
        return self._blocking.path

    @property
    def store(self) -> Path:
        """The directory of the store: a bare git repository, which the first save creates."""
        return self._blocking.store

    def __repr__(self) -> str:
        return f"aio.{self._blocking!r}"

    init = _in_thread(blocking.Workspace.init)
    save = _in_thread(blocking.Workspace.save)
    step = _in_thread(blocking.Workspace.step)
    list = _in_thread(blocking.Workspace.list)
    current = _in_thread(blocking.Workspace.current)
    get = _in_thread(blocking.Workspace.get)
    show = _in_thread(blocking.Workspace.show)
    status = _in_thread(blocking.Workspace.status)
    diff = _in_thread(blocking.Workspace.diff)
    patch = _in_thread(blocking.Workspace.patch)
    read = _in_thread(blocking.Workspace.read)
    attachment = _in_thread(blocking.Workspace.attachment)
    conversation = _in_thread(blocking.Workspace.conversation)
    history = _in_thread(blocking.Workspace.history)
    blame = _in_thread(blocking.Workspace.blame)
    bisect = _in_thread(blocking.Workspace.bisect)
    export = _in_thread(blocking.Workspace.export)
    events = _in_thread(blocking.Workspace.events)
    plan = _in_thread(blocking.Workspace.plan)
    restore = _in_thread(blocking.Workspace.restore)
    rewind = _in_thread(blocking.Workspace.rewind)
    hunks = _in_thread(blocking.Workspace.hunks)
    plan_revert = _in_thread(blocking.Workspace.plan_revert)
    revert = _in_thread(blocking.Workspace.revert)
    fork = _in_thread(blocking.Workspace.fork)
    forks = _in_thread(blocking.Workspace.forks)
    plan_adopt = _in_thread(blocking.Workspace.plan_adopt)
    adopt = _in_thread(blocking.Workspace.adopt)
    undo = _in_thread(blocking.Workspace.undo)
    redo = _in_thread(blocking.Workspace.redo)
    delete = _in_thread(blocking.Workspace.delete)
    pin = _in_thread(blocking.Workspace.pin)
    unpin = _in_thread(blocking.Workspace.unpin)
    plan_prune = _in_thread(blocking.Workspace.plan_prune)
    prune = _in_thread(blocking.Workspace.prune)
    verify = _in_thread(blocking.Workspace.verify)
    forget = _in_thread(blocking.Workspace.forget)

    def guard(self, message: str | None = None) -> Guard:
        """Returns a guard: ``async with workspace.guard("try it"):`` rolls back if the block raises an exception."""
        return Guard(self, message)

    @staticmethod
    async def all(stores: StrPath | None = None) -> List[WorkspaceInfo]:
        """Returns every workspace that has a store, sorted by path. See `backtrail.Workspace.all`."""
        return await run(blocking.Workspace.all, stores)

    def on(self, event: EventName, callback: AsyncCallback) -> Callable[[], None]:
        """Calls `callback`, a function or a coroutine function, with each `Event` of this name.

        The callback runs in the event loop, before the operation that caused the event returns. Returns a function that
        removes the callback.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")

        async def call(event: Event) -> None:
            outcome = callback(event)
            if inspect.isawaitable(outcome):
                await outcome

        def call_in_loop(event: Event) -> None:
            loop = _loop.get()
            if loop is not None:
                asyncio.run_coroutine_threadsafe(call(event), loop).result()

        return self._blocking.on(event, call_in_loop)


class Guard:
    """A checkpoint around a block, for asyncio. See `backtrail.Guard`."""

    def __init__(self, workspace: Workspace, message: str | None = None) -> None:
        self.workspace = workspace
        """The workspace that is rolled back."""
        self._guard = guards.Guard(workspace._blocking, message)
        # asyncio turns Ctrl-C into a cancellation, and the rollback ignores those.
        self._guard._signals = Signals((signal.SIGTERM,), lambda frame: self._guard._is_ending)

    @property
    def message(self) -> str | None:
        """The message of the checkpoint."""
        return self._guard.message

    @property
    def restored(self) -> Restored | None:
        """The outcome of the rollback. `None` if nothing was rolled back."""
        return self._guard.restored

    @property
    def failure(self) -> BaseException | None:
        """The exception of a rollback that failed. `None` if none did."""
        return self._guard.failure

    @property
    def not_taken_back(self) -> List[str]:
        """Paths that the rollback left as the block made them. See `backtrail.Guard`."""
        return self._guard.not_taken_back

    @property
    def dropped(self) -> List[Skipped]:
        """Paths that the checkpoint could no longer capture. See `backtrail.Guard`."""
        return self._guard.dropped

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint at the start of the block."""
        return self._guard.checkpoint

    @property
    def rolled_back(self) -> bool:
        """True if the block was rolled back."""
        return self._guard.rolled_back

    async def rollback(self) -> Restored:
        """Restores the workspace to the start of the block, without an exception."""
        return await run(self._guard.rollback)

    async def __aenter__(self) -> Guard:
        self._guard._signals.install()
        try:
            await run(self._guard._begin)
        except BaseException as problem:
            await _finished(self._guard._release)
            self._guard._signals.remove(problem)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guard._is_ending = True
        try:
            cancelled = await _finished(self._guard._end, problem)
        finally:
            self._guard._signals.remove(problem)
        if cancelled and not isinstance(problem, asyncio.CancelledError):
            raise asyncio.CancelledError


async def _finished(function: Callable[..., object], *arguments: object) -> bool:
    """Runs a function in a thread, to its end. Returns whether the task was cancelled meanwhile."""
    context = contextvars.copy_context()
    context.run(_loop.set, asyncio.get_running_loop())
    # This is no task, because asyncio cancels all tasks when the loop ends, for instance after Ctrl-C.
    work = asyncio.get_running_loop().run_in_executor(None, functools.partial(context.run, function, *arguments))
    cancelled = await _ended(work)
    work.result()
    return cancelled
