"""`CheckpointService`, implemented with `backtrail.Workspace`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, List, TypeVar, cast

from ... import aio, results
from ...errors import BacktrailError, NotFoundError, ProtectedDirectoryError
from ...workspace import Workspace
from .types import (
    STEP_TAG,
    USUAL_FILE_SIZE,
    Checkpoint,
    CheckpointConfig,
    CheckpointDiff,
    CheckpointEvent,
    CheckpointResult,
    FileDiff,
    step_in,
)

_Tool = TypeVar("_Tool", bound=Callable[..., Any])
_log = logging.getLogger("backtrail.compat.praisonai")

_AGENT = "praisonai"
"""The agent name of the checkpoints that a service takes. A service prunes only these."""

_LARGEST_CONTENT = 1024 * 1024

PROTECTED_PATHS = [
    *(os.path.expanduser(path) for path in ("~", "~/Desktop", "~/Documents", "~/Downloads")),
    *("/", "/tmp", "/var", "/etc"),
]
"""Directories that are refused. The list is only informative: Backtrail itself refuses them."""

_HEAD = re.compile(r"HEAD(?:~(\d+)|(\^))?")

Handler = Callable[[Any], Any]


class CheckpointService:
    """The checkpoints of a directory, stored outside of it."""

    def __init__(
        self,
        workspace_dir: str | None = None,
        storage_dir: str | None = None,
        enabled: bool = True,
        auto_checkpoint: bool = True,
        max_checkpoints: int = 100,
        user_name: str = "PraisonAI Checkpoints",
        user_email: str = "checkpoints@praison.ai",
        max_file_size: int = USUAL_FILE_SIZE,
        exclude_patterns: Iterable[str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if config is None:
            config = CheckpointConfig(
                workspace_dir if workspace_dir is not None else ".",
                storage_dir,
                enabled,
                auto_checkpoint,
                max_checkpoints,
                user_name,
                user_email,
                max_file_size,
            )
        elif workspace_dir is not None:
            config.workspace_dir = os.path.expanduser(workspace_dir)
            config.storage_dir = storage_dir or config.storage_dir
        if exclude_patterns is not None:
            config.exclude_patterns = list(exclude_patterns)
        self.config = config
        self._is_initialized = False
        self._telling: asyncio.Task[None] | None = None
        self._handlers: dict[CheckpointEvent, list[Handler]] = {event: [] for event in CheckpointEvent}

    @property
    def workspace_dir(self) -> str:
        """The directory."""
        return self.config.workspace_dir

    @property
    def checkpoint_dir(self) -> str:
        """The directory of the checkpoints: a bare git repository."""
        return self.config.get_checkpoint_dir()

    @property
    def git_dir(self) -> str:
        """The same as `checkpoint_dir`."""
        return self.config.get_checkpoint_dir()

    @property
    def is_initialized(self) -> bool:
        """True after a successful `initialize`, until `cleanup` or `delete_all`."""
        return self._is_initialized

    def on(self, event: CheckpointEvent, handler: Handler) -> None:
        """Calls `handler`, a function or a coroutine function, for each event of this kind."""
        self._handlers[CheckpointEvent(event)].append(handler)

    async def initialize(self) -> bool:
        """Prepares the service. Returns False if it is disabled, or if the directory is protected or missing."""
        if not self.config.enabled:
            return False
        try:
            await aio.run(lambda: self.config._workspace().init())
        except (BacktrailError, OSError) as problem:
            kind = logging.INFO if isinstance(problem, ProtectedDirectoryError) else logging.ERROR
            _log.log(kind, "can't take checkpoints of %s: %s", self.workspace_dir, problem)
            await self._emit(CheckpointEvent.ERROR, {"error": str(problem)})
            return False
        self._is_initialized = True
        await self._emit(CheckpointEvent.INITIALIZED, {"workspace": self.workspace_dir})
        return True

    async def save(
        self,
        message: str,
        allow_empty: bool = False,
        step: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CheckpointResult:
        """Takes a checkpoint. If nothing changed, fails unless `allow_empty` is set."""
        if not self._is_initialized:
            return CheckpointResult.fail("Service not initialized")
        if step is not None:
            if not _is_number(step) or step < 0:
                return CheckpointResult.fail("step must be a non-negative integer")
            message = f"[step-{step}] {STEP_TAG.sub('', message)}"
        try:
            saved = await aio.run(self._save, message, allow_empty, step, metadata)
            if saved is None:
                return CheckpointResult.fail("No changes to checkpoint")
            checkpoint = Checkpoint._of(saved)
            await self._emit(CheckpointEvent.CHECKPOINT_CREATED, checkpoint)
            removed = await aio.run(self._prune)
        except BacktrailError as problem:
            return await self._failed(problem)
        if removed:
            await self._emit(CheckpointEvent.CHECKPOINTS_PRUNED, {"action": "pruned", "removed_count": removed})
        return CheckpointResult.ok(checkpoint)

    def _save(
        self, message: str, allow_empty: bool, step: int | None, metadata: dict[str, Any] | None
    ) -> results.Checkpoint | None:
        workspace = self.config._workspace()
        step = step if step is not None else step_in(message)
        saved = workspace.save(
            message or None,
            step=step,
            agent=_AGENT,
            metadata=metadata,
            allow_empty=allow_empty,
            # Without this, Backtrail would record a step or metadata even if nothing changed.
            if_changed=not allow_empty,
        )
        return saved.checkpoint if saved.created else None

    def _prune(self) -> int:
        """Deletes the service's own oldest checkpoints above `max_checkpoints`, except pinned ones and the current one.

        Returns the number of deleted checkpoints.
        """
        workspace = self.config._workspace()
        standing = workspace.current()
        own = [
            checkpoint
            for checkpoint in workspace.list(kind="manual")
            if checkpoint.agent == _AGENT and not checkpoint.pinned
        ]
        going = [one.id for one in own[self.config.max_checkpoints :] if standing is None or one.id != standing.id]
        return len(workspace.delete(*going)) if going else 0

    async def restore(
        self, checkpoint_id: str | Checkpoint | CheckpointResult | None = None, step: int | None = None
    ) -> CheckpointResult:
        """Restores the directory to a checkpoint. The state before is kept in a safety checkpoint."""
        if not self._is_initialized:
            return CheckpointResult.fail("Service not initialized")
        if checkpoint_id is not None and step is not None:
            return CheckpointResult.fail("Provide either checkpoint_id or step, not both")
        if step is not None:
            if not _is_number(step) or step < 0:
                return CheckpointResult.fail("step must be a non-negative integer")
            found = await self.get_checkpoint_by_step(step)
            if found is None:
                return CheckpointResult.fail(f"No checkpoint found for step {step}")
            checkpoint_id = found.id
        if checkpoint_id is None:
            return CheckpointResult.fail("No checkpoint id or step provided")
        return await self._restore(_word(checkpoint_id))

    async def _restore(self, word: str) -> CheckpointResult:
        def restore() -> tuple[results.Checkpoint, results.Checkpoint | None]:
            workspace = self.config._workspace()
            # Looked up first: if the target is a safety checkpoint, retention may delete it once the restore takes the
            # next one.
            target = workspace.get(word)
            # As in the original, the event tells about work that no checkpoint had.
            has_unsaved_work = bool(workspace.status())
            restored = workspace.restore(target)
            has_event = has_unsaved_work and restored.safety is not None
            return target, workspace.get(str(restored.safety)) if has_event else None

        try:
            target, safety = await aio.run(restore)
        except BacktrailError as problem:
            return await self._failed(problem)
        if safety is not None:
            await self._emit(CheckpointEvent.CHECKPOINT_CREATED, Checkpoint._of(safety))
        checkpoint = Checkpoint._of(target)
        await self._emit(CheckpointEvent.CHECKPOINT_RESTORED, checkpoint)
        return CheckpointResult.ok(checkpoint)

    async def rewind(self, steps: int = 1) -> CheckpointResult:
        """Restores the checkpoint that lies `steps` checkpoints before the one that the directory stands on."""
        if not self._is_initialized:
            return CheckpointResult.fail("Service not initialized")
        if not _is_number(steps) or steps < 1:
            return CheckpointResult.fail("steps must be >= 1")
        try:
            await aio.run(lambda: self.config._workspace().get(f"@~{steps}"))
        except NotFoundError:
            available = await aio.run(self._depth)
            return CheckpointResult.fail(f"Cannot rewind {steps} step(s): only {available} checkpoint(s) available")
        return await self._restore(f"@~{steps}")

    def _depth(self) -> int:
        workspace = self.config._workspace()
        depth = 0
        try:
            while True:
                workspace.get(f"@~{depth}")
                depth += 1
        except NotFoundError:
            return depth

    async def diff(self, from_id: str | None = None, to_id: str | None = None) -> CheckpointDiff:
        """Returns the differences between two checkpoints, or between a checkpoint and the files on disk.

        `from_id` defaults to the last checkpoint but one, and `to_id` to the files on disk.
        """
        return await aio.run(self._diff, _word_or_none(from_id), _word_or_none(to_id))

    def _diff(self, from_word: str | None, to_word: str | None) -> CheckpointDiff:
        workspace = self.config._workspace()
        if from_word is None:
            try:
                from_word = workspace.get("@~1").id
            except NotFoundError:
                current = workspace.current()
                from_word = None if current is None else current.id
        diff = workspace.diff(from_word, to_word)
        files = [self._file(workspace, diff, change) for change in diff.changes if not change.path.endswith("/")]
        from_id, to_id = diff.from_id or "", diff.to_id
        return CheckpointDiff(
            from_id[:8], None if to_id is None else to_id[:8], files, 0, 0, from_id, to_id, diff.patch
        )

    def _file(self, workspace: Workspace, diff: results.Diff, change: results.Change) -> FileDiff:
        absolute = os.path.join(workspace.path, change.path)
        status = change.status if change.status in ("added", "deleted") else "modified"
        file = FileDiff(change.path, absolute, status, change.insertions, change.deletions)
        if not change.binary:
            if status != "added" and diff.from_id is not None:
                file.before_content = _text(lambda: workspace.read(diff.from_id or "", change.path))
            if status != "deleted":
                file.after_content = _text(lambda: _after(workspace, diff.to_id, change.path, absolute))
        return file

    async def list_checkpoints(self, limit: int = 50) -> List[Checkpoint]:
        """Returns the checkpoints, newest first, including checkpoints that are newer than the last restored one."""
        return [Checkpoint._of(one) for one in await aio.run(self._list, limit)]

    def _list(self, limit: int | None) -> List[results.Checkpoint]:
        return self.config._workspace().list(limit, safety=False)

    async def get_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Returns one checkpoint by its id or the first characters of it, or `None`. The newest match wins."""
        word = _word(checkpoint_id)

        def find() -> results.Checkpoint | None:
            for checkpoint in self.config._workspace().list():
                if word and checkpoint.id.startswith(word):
                    return checkpoint
            return None

        found = await aio.run(find)
        return None if found is None else Checkpoint._of(found)

    async def get_checkpoint_by_step(self, step: int) -> Checkpoint | None:
        """Returns the newest checkpoint of this step, or `None` if there is none."""
        for checkpoint in await self.list():
            if checkpoint.step == step:
                return checkpoint
        return None

    async def list(self) -> List[Checkpoint]:
        """Returns all checkpoints, newest first."""
        return [Checkpoint._of(one) for one in await aio.run(self._list, None)]

    async def get(self, checkpoint_id: str) -> Checkpoint | None:
        """Returns one checkpoint by its id or the first characters of it, or `None`."""
        return await self.get_checkpoint(checkpoint_id)

    async def delete(self, checkpoint_id: str) -> bool:
        """Deletes one checkpoint. Returns False if it does not exist."""
        word = _word(checkpoint_id)
        try:
            await aio.run(lambda: self.config._workspace().delete(word))
        except NotFoundError:
            return False
        return True

    async def delete_all(self) -> bool:
        """Deletes all checkpoints of the directory. Returns whether that succeeded."""
        try:
            await aio.run(lambda: self.config._workspace().forget(yes=True))
        except BacktrailError as problem:
            await self._failed(problem)
            return False
        self._is_initialized = False
        return True

    async def cleanup(self) -> None:
        """Ends the use of the service. The checkpoints are kept."""
        self._is_initialized = False

    # Automatic checkpoints

    def wrap_tool(self, tool: _Tool, message: str | None = None) -> _Tool:
        """Returns a tool that takes a checkpoint of the directory before each call, if ``auto_checkpoint`` is set.

        The name, the signature and the docstring stay the same, because an agent sees these.
        """
        label = message or f"before {getattr(tool, '__name__', 'a tool')}"

        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def call_async(*arguments: Any, **named: Any) -> Any:
                saved = await aio.run(self._auto_save, label)
                if saved is not None:
                    await self._emit(CheckpointEvent.CHECKPOINT_CREATED, saved)
                return await cast(Awaitable[Any], tool(*arguments, **named))

            return cast(_Tool, call_async)

        @functools.wraps(tool)
        def call(*arguments: Any, **named: Any) -> Any:
            self.auto_save(label)
            return tool(*arguments, **named)

        return cast(_Tool, call)

    def wrap_tools(self, tools: Iterable[Callable[..., Any]]) -> List[Callable[..., Any]]:
        """Wraps each tool with `wrap_tool`."""
        return [self.wrap_tool(tool) for tool in tools]

    def auto_save(self, message: str) -> Checkpoint | None:
        """Takes a checkpoint if ``auto_checkpoint`` is set and something changed. `wrap_tool` calls this before a tool.

        Returns `None` if no checkpoint was taken.
        """
        saved = self._auto_save(message)
        if saved is not None:
            telling = self._emit(CheckpointEvent.CHECKPOINT_CREATED, saved)
            try:
                # Inside an event loop this function can't wait: handlers are called when the loop continues.
                self._telling = asyncio.get_running_loop().create_task(telling)
            except RuntimeError:
                asyncio.run(telling)
        return saved

    def _auto_save(self, message: str) -> Checkpoint | None:
        if not (self.config.enabled and self.config.auto_checkpoint):
            return None
        saved = self._save(message, False, None, None)
        if saved is not None:
            self._prune()
        return None if saved is None else Checkpoint._of(saved)

    async def _failed(self, problem: BacktrailError) -> CheckpointResult:
        await self._emit(CheckpointEvent.ERROR, {"error": str(problem)})
        return CheckpointResult.fail(str(problem))

    async def _emit(self, event: CheckpointEvent, data: Any) -> None:
        for handler in tuple(self._handlers[event]):
            try:
                outcome = handler(data)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                _log.exception("a handler for %s raised", event.value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _word(checkpoint: str | Checkpoint | CheckpointResult) -> str:
    if isinstance(checkpoint, CheckpointResult | Checkpoint):
        return str(checkpoint.id)
    if not isinstance(checkpoint, str):
        raise TypeError(f"checkpoint_id must be a str, not {type(checkpoint).__name__}")
    # Git's names for the last checkpoint and earlier ones.
    head = _HEAD.fullmatch(checkpoint)
    return f"@~{head[1] or (1 if head[2] else 0)}" if head else checkpoint


def _word_or_none(checkpoint: str | None) -> str | None:
    return None if checkpoint is None else _word(checkpoint)


def _after(workspace: Workspace, to_id: str | None, path: str, absolute: str) -> bytes:
    if to_id is not None:
        return workspace.read(to_id, path)
    if os.path.islink(absolute):
        return os.fsencode(os.readlink(absolute))
    with open(absolute, "rb") as file:
        return file.read(_LARGEST_CONTENT + 1)


def _text(read: Callable[[], bytes]) -> str | None:
    """Returns the text of a file, or `None` if it is large, is not text, or was removed meanwhile."""
    try:
        content = read()
        return content.decode() if len(content) <= _LARGEST_CONTENT else None
    except (BacktrailError, OSError, UnicodeDecodeError):
        return None
