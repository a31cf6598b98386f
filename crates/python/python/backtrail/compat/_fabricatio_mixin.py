"""The mixin that gives an agent checkpoints of its directory."""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .fabricatio import CheckPointStore, get_checkpoint_service

_Self = TypeVar("_Self", bound="_Checkpoints")


class _Checkpoints:
    """What the mixin does, whatever it is mixed into."""

    worktree_dir: Path
    _checkpoint_store: CheckPointStore | None

    def mount_checkpoint_store(self: _Self, checkpoint_store: CheckPointStore | None = None) -> _Self:
        """Takes a store into use; without one, that of the agent's directory."""
        self._checkpoint_store = checkpoint_store or get_checkpoint_service().get_store(self.worktree_dir)
        return self

    def unmount_checkpoint_store(self: _Self) -> _Self:
        """Lets go of the store."""
        self._checkpoint_store = None
        return self

    def access_checkpoint_store(self, fallback_default: CheckPointStore | None = None) -> CheckPointStore:
        """The store in use, else the one given."""
        store = self._checkpoint_store or fallback_default
        if store is None:
            raise ValueError("Checkpoint store is not mounted.")
        return store

    def save_checkpoint(self, msg: str = "Changes") -> str:
        """Takes a checkpoint and gives its id."""
        return self.access_checkpoint_store().save(msg)

    def rollback(self, commit_id: str, file_path: Path | str) -> None:
        """Makes one file as it was."""
        self.access_checkpoint_store().rollback(commit_id, file_path)

    def reset_to_checkpoint(self, commit_id: str) -> None:
        """Makes the whole directory as it was."""
        self.access_checkpoint_store().reset(commit_id)

    def get_file_diff(self, commit_id: str, file_path: Path | str) -> str:
        """What a checkpoint changed in one file."""
        return self.access_checkpoint_store().get_file_diff(commit_id, file_path)


if TYPE_CHECKING:

    class Checkpoint(_Checkpoints, ABC):
        """Gives an agent checkpoints of its directory."""

        def __init__(self, *, worktree_dir: Path = ..., **others: Any) -> None: ...

else:
    try:
        from fabricatio_core.capabilities.usages import UseLLM
        from pydantic import Field, PrivateAttr

        class Checkpoint(_Checkpoints, UseLLM, ABC):
            """Gives an agent of fabricatio checkpoints of its directory."""

            worktree_dir: Path = Field(default_factory=Path.cwd)
            _checkpoint_store: Any = PrivateAttr(None)

    except ImportError:

        class Checkpoint(_Checkpoints, ABC):
            """Gives an agent checkpoints of its directory."""

            _checkpoint_store = None

            def __init__(self, *, worktree_dir=None, **others):
                super().__init__(**others)
                self.worktree_dir = Path.cwd() if worktree_dir is None else Path(worktree_dir)
