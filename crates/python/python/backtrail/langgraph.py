"""Saves and restores the files of a workspace together with the state of a LangGraph graph.

`FileCheckpointSaver` wraps any checkpointer. Each checkpoint of the graph then has a checkpoint of the files:

>>> saver = FileCheckpointSaver(InMemorySaver(), Workspace("path/to/project"))
>>> graph = builder.compile(checkpointer=saver)
>>> graph.invoke(state, config)
>>> graph.invoke(None, earlier_config)                      # restores the files, and continues from there

The files are captured at the end of each step, whatever the ``durability`` of the run is. They are restored before the
first step of a run, if they are not those of the checkpoint that the run begins with. This module needs the extra
``backtrail[langgraph]``.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from . import _graph_runs as runs
from . import aio
from .errors import BacktrailError, UnknownCheckpointError
from .results import Checkpoint as FilesCheckpoint
from .results import Restored
from .workspace import StrPath, Workspace

__all__ = ["FileCheckpointSaver", "METADATA_KEY"]

METADATA_KEY = "backtrail"
"""The key in the metadata of the graph's checkpoint that holds the id of the files' checkpoint."""

_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""The id that LangGraph gives to writes that belong to no task."""


class FileCheckpointSaver(BaseCheckpointSaver[Any]):
    """A checkpointer that takes a checkpoint of a workspace with each checkpoint of the graph.

    The inner checkpointer stores the state, and the workspace stores the files. Checkpoints of a thread share a
    checkpoint of the files if no file changed between them. They have the kind ``thread`` and the thread's id as their
    session.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any], workspace: Workspace | StrPath) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner
        """The checkpointer that stores the state."""
        self.workspace: Workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        """The workspace that stores the files."""

    # Saving

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Returns the next version of a channel. LangGraph calls this once at the end of each step, so that the files
        are captured before the next step begins."""
        version = self.inner.get_next_version(current, channel)
        run = runs.running(self.workspace)
        if run is not None:
            run.files[version] = run.save("langgraph step")
        return version

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint of the graph, with the files as they were at the end of its step."""
        files = self._files_of_step(checkpoint, metadata)
        if files is None:
            siblings = list(self.inner.list(_namespace_of(config))) if _is_copy(metadata) else []
            files = self._files_of_parent(config, checkpoint, self._parent(config), siblings)
        self._note(checkpoint, files)
        return self.inner.put(config, checkpoint, _with_files(metadata, files), new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The asyncio form of `put`."""
        files = self._files_of_step(checkpoint, metadata)
        if files is None:
            parent = await self.inner.aget_tuple(config) if _checkpoint_id(config) else None
            siblings = [one async for one in self.inner.alist(_namespace_of(config))] if _is_copy(metadata) else []
            files = await aio.run(self._files_of_parent, config, checkpoint, parent, siblings)
        self._note(checkpoint, files)
        return await self.inner.aput(config, checkpoint, _with_files(metadata, files), new_versions)

    def _note(self, checkpoint: Checkpoint, files: str) -> None:
        run = runs.running(self.workspace)
        if run is not None:
            run.at[checkpoint["id"]] = files

    def _parent(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.inner.get_tuple(config) if _checkpoint_id(config) else None

    def _files_of_step(self, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> str | None:
        """Returns the files' checkpoint that was taken at the end of a step. An update of the state is no step."""
        run = runs.running(self.workspace)
        versions = checkpoint["channel_versions"].values()
        if run is None or not versions or metadata.get("source") in ("update", "fork"):
            return None
        return run.files.get(max(versions))

    def _files_of_parent(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        parent: CheckpointTuple | None,
        siblings: Sequence[CheckpointTuple],
    ) -> str:
        """Returns the files' checkpoint for a state that no step led to. It takes one if there is no earlier state."""
        # A copy of a checkpoint has the same versions and the same parent as the original.
        same = [one for one in siblings if one.checkpoint["channel_versions"] == checkpoint["channel_versions"]]
        origin = next((one for one in same if _files_in(one)), parent)
        if origin is None or not _files_in(origin):
            return runs.save(self.workspace, _thread_of(config), "langgraph update", author="other").id
        if origin is parent and _finishes_tasks(parent.checkpoint, checkpoint):
            return self._after_tasks(_thread_of(config), parent)
        return cast(str, _files_in(origin))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves the writes of a task. If the task succeeded, the files are captured first, for the case that another
        task of the same step fails."""
        self._save_task(config, writes, task_id)
        self.inner.put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The asyncio form of `put_writes`."""
        await aio.run(self._save_task, config, writes, task_id)
        await self.inner.aput_writes(config, writes, task_id, task_path)

    def _save_task(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str) -> None:
        run = runs.running(self.workspace)
        if run is None or not _succeeded([(task_id, channel, value) for channel, value in writes]):
            return
        told = {"graph_checkpoint": _checkpoint_id(config) or "", "task": task_id}
        found = runs.save(self.workspace, run.thread, "langgraph task", author="agent", metadata=told)
        if found.metadata != told and found.id != run.at.get(told["graph_checkpoint"]):
            runs.save(self.workspace, run.thread, "langgraph task", author="agent", metadata=told, anew=True)

    # Going back

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns a checkpoint of the graph. If a run begins with it, its files are restored first."""
        loop = runs.entering_loop()
        if loop is not None and self._begins(loop, config):
            run = self._begin(loop, config)
            try:
                found = self.inner.get_tuple(config)
                latest = self.inner.get_tuple(_without_id(config)) if _checkpoint_id(config) else found
                self._bring_files(run, loop, config, found, latest)
            except BaseException:
                runs.end(run)
                raise
            loop.stack.push(_Ending(run))
            return found
        found = self.inner.get_tuple(config)
        if loop is not None:
            self._bring_files_of_subgraph(loop, config, found)
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The asyncio form of `get_tuple`."""
        loop = runs.entering_loop()
        if loop is not None and self._begins(loop, config):
            run = self._begin(loop, config)
            try:
                found = await self.inner.aget_tuple(config)
                latest = await self.inner.aget_tuple(_without_id(config)) if _checkpoint_id(config) else found
                await aio.run(self._bring_files, run, loop, config, found, latest)
            except BaseException:
                runs.end(run)
                raise
            loop.stack.push_async_exit(_Ending(run))
            return found
        found = await self.inner.aget_tuple(config)
        if loop is not None:
            await aio.run(self._bring_files_of_subgraph, loop, config, found)
        return found

    def _begins(self, loop: Any, config: RunnableConfig) -> bool:
        """Returns whether a run begins. LangGraph may ask for several checkpoints at the beginning of a run, and runs
        the subgraphs of a run in the same way as the graph itself."""
        if getattr(loop, "_backtrail_run", None) is not None:
            return False
        run = runs.running(self.workspace)
        is_part = run is not None and loop.is_nested and run.thread == _thread_of(config)
        return not is_part

    def _begin(self, loop: Any, config: RunnableConfig) -> runs.Run:
        run = runs.begin(self.workspace, _thread_of(config), loop)
        loop._backtrail_run = run
        return run

    def _bring_files(
        self,
        run: runs.Run,
        loop: Any,
        config: RunnableConfig,
        found: CheckpointTuple | None,
        latest: CheckpointTuple | None,
    ) -> None:
        """Makes the files equal to those of the checkpoint that a run begins with."""
        if found is None:
            return
        if _files_in(found) is not None:
            run.at[_id_of(found)] = cast(str, _files_in(found))
        is_addressed = bool(_checkpoint_id(config))
        if is_addressed and not (_is_resumed(loop.input) and latest is not None and _id_of(latest) == _id_of(found)):
            self._restore_files_of(found)
            return
        if _files_in(found) is None:
            return
        continues = loop.input is None or _is_command(loop.input)
        target = self._after_tasks(run.thread, found) if continues else cast(str, _files_in(found))
        self._go_to(run, found, target, keeps_edits=_ended_well(loop, found))

    def _bring_files_of_subgraph(self, loop: Any, config: RunnableConfig, found: CheckpointTuple | None) -> None:
        addressed = config.get("configurable", {}).get("checkpoint_map") or {}
        is_addressed = config.get("configurable", {}).get("checkpoint_ns", "") in addressed
        if loop.is_nested and is_addressed and _checkpoint_id(config) and found is not None:
            self._restore_files_of(found)

    def _after_tasks(self, thread: str, found: CheckpointTuple) -> str:
        """Returns the files with the work of those tasks that ended before another task of the same step failed."""
        done = _succeeded(found.pending_writes or [])
        if done:
            for one in self.workspace.list(kind="thread", session=thread):
                if one.metadata.get("graph_checkpoint") == _id_of(found) and one.metadata.get("task") in done:
                    return one.id
        return _files_of(found.config, found)

    def _go_to(self, run: runs.Run, found: CheckpointTuple, target: str, *, keeps_edits: bool) -> None:
        """Restores the files. `keeps_edits` leaves what changed since the thread's last run, most often by a person."""
        last = self._last_of(run.thread) if keeps_edits else None
        if last is None:
            self._restore_files_of(found, target)
            return
        if last.id == target or not self.workspace.diff(target, last).changes:
            return
        edited = {change.path for change in self.workspace.diff(last).changes}
        if not edited:
            self._restore_files_of(found, target)
            return
        paths = [change.path for change in self.workspace.diff(target).changes if change.path not in edited]
        if paths:
            self.workspace.restore(target, paths)

    def _last_of(self, thread: str) -> FilesCheckpoint | None:
        """Returns the checkpoint at which the thread left the files. `None` if another thread or a restore changed
        them since."""
        at = self.workspace.current()
        while at is not None and at.kind != "thread":
            try:
                at = None if at.parent is None else self.workspace.get(at.parent)
            except UnknownCheckpointError:
                at = None
        return at if at is not None and at.session == thread else None

    def _restore_files_of(self, found: CheckpointTuple, target: str | None = None) -> None:
        files = target or _files_of(found.config, found)
        try:
            self.restore(files)
        except UnknownCheckpointError as problem:
            where = f"checkpoint {_id_of(found)} of the thread {_thread_of(found.config)!r}"
            raise UnknownCheckpointError(f"the files of {where} were deleted: {files} does not exist") from problem

    def files_at(self, config: RunnableConfig) -> str:
        """Returns the id of the files' checkpoint that belongs to a checkpoint of the graph."""
        return _files_of(config, self.inner.get_tuple(config))

    def rewind(self, config: RunnableConfig) -> RunnableConfig:
        """Restores the files of a checkpoint of the graph, without a run. Returns the config of that checkpoint."""
        found = self.inner.get_tuple(config)
        self._rewind(config, found)
        return cast(CheckpointTuple, found).config

    async def arewind(self, config: RunnableConfig) -> RunnableConfig:
        """The asyncio form of `rewind`."""
        found = await self.inner.aget_tuple(config)
        await aio.run(self._rewind, config, found)
        return cast(CheckpointTuple, found).config

    def _rewind(self, config: RunnableConfig, found: CheckpointTuple | None) -> None:
        files = _files_of(config, found)
        run = runs.begin(self.workspace, _thread_of(config))
        try:
            self._restore_files_of(cast(CheckpointTuple, found), files)
        finally:
            runs.end(run)

    def restore(self, checkpoint: str) -> Restored:
        """Restores the files. `Workspace.undo` takes the restore back."""
        return self.workspace.restore(checkpoint)

    # Deleting

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread, and the files' checkpoints that no other thread uses."""
        self.inner.delete_thread(thread_id)
        self._sweep([thread_id], list(self.inner.list(None)))

    async def adelete_thread(self, thread_id: str) -> None:
        """The asyncio form of `delete_thread`."""
        await self.inner.adelete_thread(thread_id)
        left = [one async for one in self.inner.alist(None)]
        await aio.run(self._sweep, [thread_id], left)

    def _sweep(self, threads: Sequence[str], left: Sequence[CheckpointTuple]) -> None:
        used = {_files_in(one) for one in left}
        for thread in threads:
            of_thread = self.workspace.list(kind="thread", session=str(thread))
            unused = [one.id for one in of_thread if one.id not in used]
            if unused:
                self.workspace.delete(*unused)

    # Forwarded to the inner checkpointer

    @property
    def config_specs(self) -> list[Any]:
        """The configuration of the inner checkpointer."""
        return self.inner.config_specs

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Returns checkpoints of the graph, newest first."""
        return self.inner.list(config, filter=filter, before=before, limit=limit)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The asyncio form of `list`."""
        async for found in self.inner.alist(config, filter=filter, before=before, limit=limit):
            yield found

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> FileCheckpointSaver:
        """Returns a saver whose inner checkpointer also loads these types."""
        return type(self)(self.inner.with_allowlist(extra_allowlist), self.workspace)


def _pass_on(name: str) -> Callable[..., Any]:
    """Returns a method that forwards to the inner checkpointer. Only newer checkpointers have it."""

    def call(self: FileCheckpointSaver, *arguments: Any, **named: Any) -> Any:
        return getattr(self.inner, name)(*arguments, **named)

    call.__name__ = name
    call.__doc__ = f"""Calls `{name}` of the inner checkpointer."""
    return call


for _name in ("copy_thread", "delete_for_runs", "prune", "get_delta_channel_history"):
    for _method in (_name, f"a{_name}"):
        if hasattr(BaseCheckpointSaver, _method):
            setattr(FileCheckpointSaver, _method, _pass_on(_method))


class _Ending:
    """Called when all tasks of a run have ended, with the exception that ended it. LangGraph's loops call it."""

    def __init__(self, run: runs.Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # The next run compares with this checkpoint, to tell the work of a failed step from later edits.
            self.run.save("langgraph end")
        except BacktrailError as failed:
            if kind is None:
                raise
            warnings.warn(f"the files at the end of the run can't be saved: {failed}", stacklevel=2)
        finally:
            runs.end(self.run)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await aio.run(self.__exit__, kind, problem, trace)


def _thread_of(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("thread_id", ""))


def _checkpoint_id(config: RunnableConfig) -> str | None:
    return cast("str | None", config.get("configurable", {}).get("checkpoint_id")) or None


def _id_of(found: CheckpointTuple) -> str:
    return found.checkpoint["id"]


def _without_id(config: RunnableConfig) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), "checkpoint_id": None}}


def _namespace_of(config: RunnableConfig) -> RunnableConfig:
    """Returns a config that names all checkpoints beside the one that a config names."""
    known = config.get("configurable", {})
    return {"configurable": {key: known[key] for key in ("thread_id", "checkpoint_ns") if key in known}}


def _is_copy(metadata: CheckpointMetadata) -> bool:
    return metadata.get("source") == "fork"


def _is_command(given: Any) -> bool:
    return type(given).__name__ == "Command" and hasattr(given, "resume")


def _is_resumed(given: Any) -> bool:
    return _is_command(given) and given.resume is not None


def _succeeded(writes: Sequence[tuple[str, str, Any]]) -> set[str]:
    """Returns the ids of tasks with a result. A task that failed or was interrupted has only special writes."""
    return {task for task, channel, _ in writes if task != _NO_TASK and channel not in WRITES_IDX_MAP}


def _ended_well(loop: Any, found: CheckpointTuple) -> bool:
    """Returns whether the run that led to a checkpoint came to an end. If its process was killed, the files that a step
    left behind can't be told from edits."""
    channels = {channel for _, channel, _ in found.pending_writes or []}
    values = found.checkpoint["channel_values"]
    waits = any(name.startswith(("branch:to:", "__start__")) or name == "__pregel_tasks" and values[name] for name in values)
    stops = loop.interrupt_before or loop.interrupt_after
    return bool(channels & {ERROR, INTERRUPT} or not waits or stops or found.metadata.get("source") == "update")


def _finishes_tasks(before: Checkpoint, after: Checkpoint) -> bool:
    """Returns whether an update of the state includes the results of tasks that had ended before it."""
    seen = before["versions_seen"]
    return any(
        channel != INTERRUPT and version != seen.get(node, {}).get(channel)
        for node, versions in after["versions_seen"].items()
        for channel, version in versions.items()
    )


def _with_files(metadata: CheckpointMetadata, files: str) -> CheckpointMetadata:
    return cast(CheckpointMetadata, {**metadata, METADATA_KEY: files})


def _files_in(found: CheckpointTuple | None) -> str | None:
    metadata: Mapping[str, Any] = {} if found is None else cast(Mapping[str, Any], found.metadata)
    return metadata.get(METADATA_KEY)


def _files_of(config: RunnableConfig, found: CheckpointTuple | None) -> str:
    files = _files_in(found)
    if files is None:
        raise UnknownCheckpointError(f"no files were saved with {config.get('configurable', {})}")
    return str(files)
