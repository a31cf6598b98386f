"""Files and graph state together, for LangGraph.

Wrap any checkpointer, and each checkpoint of a graph has the files of a workspace with it:

>>> saver = FileCheckpointSaver(InMemorySaver(), Workspace("path/to/project"))
>>> graph = builder.compile(checkpointer=saver)
>>> graph.invoke(state, config, durability="sync")
>>> config = saver.rewind(earlier_config)                   # the files are back
>>> graph.invoke(None, config, durability="sync")           # and the graph goes on from there

``durability="sync"`` matters: without it, LangGraph runs the next step while it keeps the checkpoint of the last one, and
the files may be those of the next step already. Needs the extra ``backtrail[langgraph]``.
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
"""Where the metadata of a graph's checkpoint has the id of the files'."""


class FileCheckpointSaver(BaseCheckpointSaver[Any]):
    """A checkpointer that takes a checkpoint of a workspace with each checkpoint of the graph.

    State is kept by the checkpointer inside, files by the workspace. Where nothing changed since the last one, they share
    a checkpoint.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any], workspace: Workspace | StrPath) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)

    # With the files

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keeps a checkpoint of the graph, and the files as they are now."""
        return self.inner.put(config, checkpoint, self._with_files(config, metadata), new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        with_files = await aio.run(self._with_files, config, metadata)
        return await self.inner.aput(config, checkpoint, with_files, new_versions)

    def _with_files(self, config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
        thread = str(config.get("configurable", {}).get("thread_id", ""))
        message = f"langgraph {metadata.get('source', '')} {metadata.get('step', '')}".rstrip()
        # Kept until it is deleted: whoever has the graph's state may come back to it.
        saved = self.workspace.save(message, session=thread or None, agent="langgraph")
        return cast(CheckpointMetadata, {**metadata, METADATA_KEY: saved.id})

    # Going back

    def files_at(self, config: RunnableConfig) -> str:
        """The id of the files' checkpoint that belongs to a checkpoint of the graph."""
        return _files_of(config, self.inner.get_tuple(config))

    def rewind(self, config: RunnableConfig) -> RunnableConfig:
        """Makes the files as they were at a checkpoint of the graph, and gives the config that the graph goes on with."""
        found = self.inner.get_tuple(config)
        self.restore(_files_of(config, found))
        return cast(CheckpointTuple, found).config

    async def arewind(self, config: RunnableConfig) -> RunnableConfig:
        """As `rewind`."""
        found = await self.inner.aget_tuple(config)
        await aio.run(self.restore, _files_of(config, found))
        return cast(CheckpointTuple, found).config

    def restore(self, checkpoint: str) -> Restored:
        """Makes the files as they were; `Workspace.undo` takes it back."""
        return self.workspace.restore(checkpoint)

    # As the checkpointer inside does it

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
    """A method of newer checkpointers, which the one inside has or has not."""

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
        raise UnknownCheckpointError(f"no files were kept with {config.get('configurable', {})}")
    return str(metadata[METADATA_KEY])
