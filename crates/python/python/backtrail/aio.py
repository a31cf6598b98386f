"""The same for asyncio: each operation runs in a thread, and the event loop goes on.

A task that is cancelled stops its operation as long as that only reads; one that has begun to write is finished first,
so that nothing goes on behind the caller's back.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, List, ParamSpec, TypeVar

from . import workspace as blocking
from ._native import Call, NativeSurvey
from .errors import NotFoundError, UsageError
from .results import (
    Checkpoint,
    Diff,
    Event,
    EventName,
    Exported,
    Kind,
    Pruned,
    Restored,
    Saved,
    Shown,
    Skipped,
    Status,
    Stepped,
    Verdict,
    Verification,
    Version,
    WorkspaceInfo,
)
from .workspace import CheckpointRef, Only, StrPath

__all__ = ["AsyncCallback", "Guard", "Workspace"]

AsyncCallback = Callable[[Event], object | Awaitable[object]]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "backtrail_loop", default=None
)


async def run(function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
    """Runs a function of the blocking half in a thread, and stops what it calls if the task is cancelled."""
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
        # Its failure, most often that it was stopped, has been waited for and is not news.
        if not work.cancelled():
            work.exception()
        raise


async def _ended(work: asyncio.Future[Any]) -> bool:
    """Waits for the end, whoever cancels; says whether somebody did."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


class _Calls(List[Call]):
    """The calls that a function makes, to be stopped together."""

    stopped = False

    def append(self, call: Call) -> None:
        super().append(call)
        if self.stopped:
            call.stop()

    def stop(self) -> None:
        self.stopped = True
        for call in tuple(self):
            call.stop()


class Workspace:
    """A directory under protection, for asyncio. See `backtrail.Workspace`."""

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
        """The workspace that `path` lies in."""
        return cls._of(blocking.Workspace.around(path, store, settings, exclude=exclude, wait=wait, force=force))

    @classmethod
    def _of(cls, workspace: blocking.Workspace) -> Workspace:
        made = cls.__new__(cls)
        made._blocking = workspace
        return made

    @property
    def path(self) -> Path:
        """The directory under protection."""
        return self._blocking.path

    @property
    def store(self) -> Path:
        """Its store: a bare git repository, made by the first save."""
        return self._blocking.store

    def __repr__(self) -> str:
        return f"aio.{self._blocking!r}"

    async def init(self) -> bool:
        """Makes the store without a checkpoint; says whether it was missing."""
        return await run(self._blocking.init)

    async def save(
        self,
        message: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        kind: Kind = "manual",
        step: int | None = None,
        session: str | None = None,
        session_number: int | None = None,
        tokens: int | None = None,
        agent: str | None = None,
        turn: int | None = None,
        prompt: str | None = None,
        tool: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes | str] | None = None,
        conversation: Any = None,
        include: Iterable[StrPath] = (),
        allow_empty: bool = False,
        if_changed: bool = False,
    ) -> Saved:
        """Takes a checkpoint. When this returns, it survives a power cut."""
        return await run(
            self._blocking.save,
            message,
            name=name,
            description=description,
            kind=kind,
            step=step,
            session=session,
            session_number=session_number,
            tokens=tokens,
            agent=agent,
            turn=turn,
            prompt=prompt,
            tool=tool,
            metadata=metadata,
            attachments=attachments,
            conversation=conversation,
            include=include,
            allow_empty=allow_empty,
            if_changed=if_changed,
        )

    async def step(
        self,
        session: str | None = None,
        touching: Iterable[StrPath] = (),
        *,
        message: str | None = None,
        agent: str | None = None,
        turn: int | None = None,
        prompt: str | None = None,
        tool: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Stepped:
        """Says that a step of an agent is about to happen."""
        return await run(
            self._blocking.step,
            session,
            touching,
            message=message,
            agent=agent,
            turn=turn,
            prompt=prompt,
            tool=tool,
            metadata=metadata,
        )

    async def list(
        self,
        limit: int | None = None,
        *,
        kind: Kind | None = None,
        session: str | None = None,
        path: StrPath | None = None,
        grep: str | None = None,
        since: datetime | timedelta | None = None,
        safety: bool = True,
    ) -> List[Checkpoint]:
        """The checkpoints, newest first."""
        return await run(
            self._blocking.list,
            limit,
            kind=kind,
            session=session,
            path=path,
            grep=grep,
            since=since,
            safety=safety,
        )

    async def current(self) -> Checkpoint | None:
        """The checkpoint that the workspace stands on; none before the first."""
        return await run(self._blocking.current)

    async def get(self, checkpoint: CheckpointRef) -> Checkpoint:
        """One checkpoint."""
        return await run(self._blocking.get, checkpoint)

    async def show(self, checkpoint: CheckpointRef) -> Shown:
        """One checkpoint with what it changed."""
        return await run(self._blocking.show, checkpoint)

    async def status(self, since: CheckpointRef | None = None) -> Status:
        """What changed on disk since a checkpoint, or since the one that the workspace stands on."""
        return await run(self._blocking.status, since)

    async def diff(
        self,
        from_checkpoint: CheckpointRef | None = None,
        to_checkpoint: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
    ) -> Diff:
        """What differs between two checkpoints, or between one and the files on disk."""
        return await run(self._blocking.diff, from_checkpoint, to_checkpoint, paths)

    async def patch(self, checkpoint: CheckpointRef, paths: StrPath | Iterable[StrPath] | None = None) -> Diff:
        """What a checkpoint changed: the difference against the one before it, or against nothing."""
        return await run(self._blocking.patch, checkpoint, paths)

    async def read(self, checkpoint: CheckpointRef, path: StrPath) -> bytes:
        """The bytes of one file at a checkpoint; of a symlink, its target."""
        return await run(self._blocking.read, checkpoint, path)

    async def attachment(self, checkpoint: CheckpointRef, name: str) -> bytes:
        """The bytes of an attachment."""
        return await run(self._blocking.attachment, checkpoint, name)

    async def conversation(self, checkpoint: CheckpointRef) -> Any:
        """What was saved with the checkpoint as its conversation; none where nothing was."""
        return await run(self._blocking.conversation, checkpoint)

    async def history(self, path: StrPath) -> List[Version]:
        """Every version of one path, newest first, deletions included."""
        return await run(self._blocking.history, path)

    async def export(self, checkpoint: CheckpointRef, directory: StrPath) -> Exported:
        """Writes a checkpoint's files into a new or empty directory elsewhere."""
        return await run(self._blocking.export, checkpoint, directory)

    async def events(self) -> List[Event]:
        """What happened to this workspace so far, oldest first."""
        return await run(self._blocking.events)

    async def plan(
        self,
        checkpoint: CheckpointRef,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        only: Only = "all",
        exact: bool = False,
        skip_conflicts: bool = False,
        git: bool = False,
    ) -> Restored:
        """What `restore` would do with the same arguments. Touches nothing."""
        return await run(
            self._blocking.plan,
            checkpoint,
            paths,
            only=only,
            exact=exact,
            skip_conflicts=skip_conflicts,
            git=git,
        )

    async def restore(
        self,
        checkpoint: CheckpointRef,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        plan: Restored | str | None = None,
        only: Only = "all",
        exact: bool = False,
        skip_conflicts: bool = False,
        git: bool = False,
    ) -> Restored:
        """Makes the workspace, or just some paths, equal to a checkpoint."""
        return await run(
            self._blocking.restore,
            checkpoint,
            paths,
            plan=plan,
            only=only,
            exact=exact,
            skip_conflicts=skip_conflicts,
            git=git,
        )

    async def rewind(self, steps: int = 1, *, turn: bool = False) -> Restored:
        """Goes back so many checkpoints from where the workspace stands."""
        return await run(self._blocking.rewind, steps, turn=turn)

    async def undo(self) -> Restored:
        """Takes back the last restore."""
        return await run(self._blocking.undo)

    async def redo(self) -> Restored:
        """Takes back the last undo."""
        return await run(self._blocking.redo)

    def guard(self, message: str | None = None) -> Guard:
        """A checkpoint around a block: ``async with workspace.guard("try it"):`` rolls back if the block raises."""
        return Guard(self, message)

    async def delete(
        self,
        *checkpoints: CheckpointRef,
        older_than: datetime | timedelta | None = None,
        kind: Kind | None = None,
        force: bool = False,
    ) -> List[str]:
        """Forgets checkpoints, those named or all that are older; feature ones only by force. Gives their ids."""
        return await run(self._blocking.delete, *checkpoints, older_than=older_than, kind=kind, force=force)

    async def pin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Keeps a checkpoint from retention."""
        return await run(self._blocking.pin, checkpoint)

    async def unpin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Leaves a checkpoint to retention again."""
        return await run(self._blocking.unpin, checkpoint)

    async def plan_prune(self) -> List[Verdict]:
        """What retention says of every checkpoint, newest first. Touches nothing."""
        return await run(self._blocking.plan_prune)

    async def prune(self) -> Pruned:
        """Applies the retention policy now, and reclaims space."""
        return await run(self._blocking.prune)

    async def verify(self) -> Verification:
        """Checks every object, ref and record of the store."""
        return await run(self._blocking.verify)

    async def forget(self, *, yes: bool) -> None:
        """Removes the store with all its checkpoints. The workspace itself is not touched."""
        await run(self._blocking.forget, yes=yes)

    @staticmethod
    async def all(stores: StrPath | None = None) -> List[WorkspaceInfo]:
        """Every workspace that has a store, by path."""
        return await run(blocking.Workspace.all, stores)

    def on(self, event: EventName, callback: AsyncCallback) -> Callable[[], None]:
        """Calls `callback`, a function or a coroutine function, with each `Event` of this name.

        It runs in the event loop, before the operation that caused the event returns.
        """
        if not callable(callback):
            raise TypeError(f"a callback is a function, not {type(callback).__name__}")

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
        self.message = message
        self.restored: Restored | None = None
        """What rolling back did; none as long as nothing was rolled back."""
        self.not_taken_back: List[str] = []
        """What rolling back left as the block made it. See `backtrail.Guard`."""
        self.dropped: List[Skipped] = []
        """Paths that the checkpoint could not capture any more. See `backtrail.Guard`."""
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

    async def rollback(self) -> Restored:
        """Brings the workspace back to the beginning of the block, without an exception."""
        self.restored = await self.workspace.restore(self.checkpoint)
        if self._survey is not None:
            self.not_taken_back = await run(
                self.workspace._blocking._not_taken_back, self._survey, self.restored
            )
        return self.restored

    async def __aenter__(self) -> Guard:
        saved = await self.workspace.save(self.message, kind="automatic", allow_empty=True)
        self._checkpoint = saved.checkpoint
        self.dropped = saved.dropped
        try:
            self._survey = await run(self.workspace._blocking._survey)
            # Only the last few automatic checkpoints are kept, and the block may take more than that.
            self._checkpoint = await self.workspace.pin(saved)
        except BaseException:
            await self._unpin()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A task that is cancelled again, by a timeout for instance, must not leave half of this undone.
        ending = asyncio.ensure_future(self._end(kind is not None))
        cancelled = await _ended(ending)
        ending.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _end(self, failed: bool) -> None:
        if failed:
            # Where this fails, the checkpoint stays pinned: it is the way back.
            await self.rollback()
        await self._unpin()

    async def _unpin(self) -> None:
        try:
            await self.workspace.unpin(self.checkpoint)
        except NotFoundError:
            # The block deleted it.
            pass
