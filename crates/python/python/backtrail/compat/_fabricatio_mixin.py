"""A mixin that adds checkpoints of a directory to an agent."""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .fabricatio import CheckPointStore, get_checkpoint_service

_Self = TypeVar("_Self", bound="_Checkpoints")


class _Checkpoints:
    """The methods of the mixin, independent of its base class."""

    worktree_dir: Path
    _checkpoint_store: CheckPointStore | None

    def mount_checkpoint_store(self: _Self, checkpoint_store: CheckPointStore | None = None) -> _Self:
        """Sets the store to use. By default, this is the store of the agent's directory."""
        self._checkpoint_store = checkpoint_store or get_checkpoint_service().get_store(self.worktree_dir)
        return self

    def unmount_checkpoint_store(self: _Self) -> _Self:
        """Removes the store from use."""
        self._checkpoint_store = None
        return self

    def access_checkpoint_store(self, fallback_default: CheckPointStore | None = None) -> CheckPointStore:
        """Returns the store in use, or `fallback_default` if there is none."""
        store = self._checkpoint_store or fallback_default
        if store is None:
            raise ValueError("Checkpoint store is not mounted.")
        return store

    def save_checkpoint(self, msg: str = "Changes") -> str:
        """Takes a checkpoint and returns its id."""
        return self.access_checkpoint_store().save(msg)

    def rollback(self, commit_id: str, file_path: Path | str) -> None:
        """Restores one file."""
        self.access_checkpoint_store().rollback(commit_id, file_path)

    def reset_to_checkpoint(self, commit_id: str) -> None:
        """Restores the whole directory."""
        self.access_checkpoint_store().reset(commit_id)

    def get_file_diff(self, commit_id: str, file_path: Path | str) -> str:
        """Returns the changes that a checkpoint made to one file."""
        return self.access_checkpoint_store().get_file_diff(commit_id, file_path)


if TYPE_CHECKING:

    class Checkpoint(_Checkpoints, ABC):
        """Adds checkpoints of its directory to an agent."""

        def __init__(self, *, worktree_dir: Path = ..., **others: Any) -> None: ...

else:
    try:
        from fabricatio_core.capabilities.usages import UseLLM
        from pydantic import Field, PrivateAttr

        class Checkpoint(_Checkpoints, UseLLM, ABC):
            """Adds checkpoints of its directory to an agent of fabricatio."""

            worktree_dir: Path = Field(default_factory=Path.cwd)
            _checkpoint_store: Any = PrivateAttr(None)

    except ImportError:

        class Checkpoint(_Checkpoints, ABC):
            """Adds checkpoints of its directory to an agent."""

            _checkpoint_store = None

            def __init__(self, *, worktree_dir=None, **others):
                super().__init__(**others)
                self.worktree_dir = Path.cwd() if worktree_dir is None else Path(worktree_dir)
