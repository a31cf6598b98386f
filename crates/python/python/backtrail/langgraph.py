"""Saves and restores the files of a workspace together with the state of a LangGraph graph.

`FileCheckpointSaver` wraps any checkpointer. Each checkpoint of the graph then has a checkpoint of the files:

>>> saver = FileCheckpointSaver(InMemorySaver(), Workspace("path/to/project"))
>>> graph = builder.compile(checkpointer=saver)
>>> graph.invoke(state, config, durability="sync")
>>> config = saver.rewind(earlier_config)                   # restores the files
>>> graph.invoke(None, config, durability="sync")           # continues the graph from there

``durability="sync"`` is required: without it, LangGraph saves the checkpoint of a step while the next step already
runs, and may save files of that next step. This module needs the extra ``backtrail[langgraph]``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from . import aio
from .errors import UnknownCheckpointError
from .results import Restored
from .workspace import StrPath, Workspace

__all__ = ["FileCheckpointSaver", "METADATA_KEY"]

METADATA_KEY = "backtrail"
"""The key in the metadata of the graph's checkpoint that holds the id of the files' checkpoint."""


class FileCheckpointSaver(BaseCheckpointSaver[Any]):
    """A checkpointer that takes a checkpoint of a workspace with each checkpoint of the graph.

    The inner checkpointer stores the state, and the workspace stores the files. Checkpoints of the graph share a
    checkpoint of the files if no file changed between them.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any], workspace: Workspace | StrPath) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)

    # Saving

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint of the graph, and a checkpoint of the files as they are now."""
        return self.inner.put(config, checkpoint, self._with_files(config, metadata), new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The asyncio form of `put`."""
        with_files = await aio.run(self._with_files, config, metadata)
        return await self.inner.aput(config, checkpoint, with_files, new_versions)

    def _with_files(self, config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
        thread = str(config.get("configurable", {}).get("thread_id", ""))
        message = f"langgraph {metadata.get('source', '')} {metadata.get('step', '')}".rstrip()
        # A manual checkpoint is kept until it is deleted, because the graph's state may be restored at any time.
        saved = self.workspace.save(message, session=thread or None, agent="langgraph")
        return cast(CheckpointMetadata, {**metadata, METADATA_KEY: saved.id})

    # Going back

    def files_at(self, config: RunnableConfig) -> str:
        """Returns the id of the files' checkpoint that belongs to a checkpoint of the graph."""
        return _files_of(config, self.inner.get_tuple(config))

    def rewind(self, config: RunnableConfig) -> RunnableConfig:
        """Restores the files of a checkpoint of the graph. Returns the config with which the graph continues."""
        found = self.inner.get_tuple(config)
        self.restore(_files_of(config, found))
        return cast(CheckpointTuple, found).config

    async def arewind(self, config: RunnableConfig) -> RunnableConfig:
        """The asyncio form of `rewind`."""
        found = await self.inner.aget_tuple(config)
        await aio.run(self.restore, _files_of(config, found))
        return cast(CheckpointTuple, found).config

    def restore(self, checkpoint: str) -> Restored:
        """Restores the files. `Workspace.undo` takes the restore back."""
        return self.workspace.restore(checkpoint)

    # Forwarded to the inner checkpointer

    @property
    def config_specs(self) -> list[Any]:
        return self.inner.config_specs

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.inner.get_tuple(config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.inner.aget_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self.inner.list(config, filter=filter, before=before, limit=limit)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self.inner.alist(config, filter=filter, before=before, limit=limit):
            yield found

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.inner.put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self.inner.aput_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self.inner.delete_thread(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.inner.adelete_thread(thread_id)

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.inner.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> FileCheckpointSaver:
        return type(self)(self.inner.with_allowlist(extra_allowlist), self.workspace)


def _pass_on(name: str) -> Callable[..., Any]:
    """Returns a method that forwards to the inner checkpointer. Only newer checkpointers have it."""

    def call(self: FileCheckpointSaver, *arguments: Any, **named: Any) -> Any:
        return getattr(self.inner, name)(*arguments, **named)

    call.__name__ = name
    return call


for _name in ("copy_thread", "delete_for_runs", "prune", "get_delta_channel_history"):
    for _method in (_name, f"a{_name}"):
        if hasattr(BaseCheckpointSaver, _method):
            setattr(FileCheckpointSaver, _method, _pass_on(_method))


def _files_of(config: RunnableConfig, found: CheckpointTuple | None) -> str:
    metadata: Mapping[str, Any] = {} if found is None else cast(Mapping[str, Any], found.metadata)
    if METADATA_KEY not in metadata:
        raise UnknownCheckpointError(f"no files were saved with {config.get('configurable', {})}")
    return str(metadata[METADATA_KEY])
