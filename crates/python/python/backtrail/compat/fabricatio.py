"""Replaces ``fabricatio_checkpoint``: its ``rust``, ``config``, ``inited_service`` and ``capabilities.checkpoint``.

`Checkpoint`, the mixin for agents, works with ``fabricatio_core`` if that is installed, and is a plain class otherwise.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._native import forget_store
from ..errors import BacktrailError, IoError, UnknownPathError
from ..workspace import StrPath, Workspace

if TYPE_CHECKING:
    from ._fabricatio_mixin import Checkpoint

__all__ = [
    "CheckPointStore",
    "Checkpoint",
    "CheckpointConfig",
    "CheckpointService",
    "checkpoint_config",
    "get_checkpoint_service",
    "prune_stores",
]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _as_released(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Turns failures of Backtrail into `RuntimeError`, as the released package does. System errors stay `OSError`."""

    @functools.wraps(function)
    def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        try:
            return function(*arguments, **named)
        except IoError:
            raise
        except BacktrailError as problem:
            raise RuntimeError(str(problem)) from problem

    return call


class CheckPointStore:
    """The checkpoints of one directory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def workspace(self) -> Path:
        """The directory."""
        return self._workspace.path

    @_as_released
    def save(self, commit_msg: str | None = None) -> str:
        """Takes a checkpoint and returns its id. If nothing changed, returns the id of the last checkpoint."""
        return self._workspace.save(commit_msg or None).id

    @_as_released
    def head(self) -> str:
        """Returns the id of the checkpoint that the directory stands on."""
        current = self._workspace.current()
        if current is None:
            raise RuntimeError(f"there is no checkpoint of {self.workspace} yet")
        return current.id

    @_as_released
    def commits(self) -> list[str]:
        """Returns the ids of all checkpoints, newest first."""
        return [checkpoint.id for checkpoint in self._workspace.list(safety=False)]

    @_as_released
    def reset(self, commit_id: str) -> None:
        """Restores the whole directory. A safety checkpoint keeps unsaved work; ``backtrail undo`` brings it back."""
        self._workspace.restore(_word(commit_id))

    @_as_released
    def rollback(self, commit_id: str, file_path: StrPath) -> None:
        """Restores one file. A file that did not exist then is removed. A relative path starts at the directory."""
        word = _word(commit_id)
        try:
            self._workspace.restore(word, file_path)
        except UnknownPathError:
            # The path may be relative to the current directory, as in the released package.
            absolute = Path(file_path).absolute()
            if Path(file_path).is_absolute() or not absolute.is_relative_to(self.workspace):
                raise
            self._workspace.restore(word, absolute)

    @_as_released
    def get_file_diff(self, commit_id: str, file_path: StrPath) -> str:
        """Returns the changes of a checkpoint to one file, as a patch for ``git apply``. Empty if there are none."""
        return self._workspace._patch_text(_word(commit_id), file_path)

    @_as_released
    def get_status(self) -> list[str]:
        """Returns the paths that changed since the last checkpoint, including new files."""
        return [change.path for change in self._workspace.status()]

    def __repr__(self) -> str:
        return f"CheckPointStore({str(self.workspace)!r})"


class CheckpointService:
    """The checkpoints of many directories, with all stores in one directory."""

    def __init__(self, stores_root: StrPath, cache_size: int = 10) -> None:
        self._stores_root = Path(stores_root).absolute()
        self._stores_root.mkdir(parents=True, exist_ok=True)
        self._settings = {"stores": {"dir": str(self._stores_root), "cache_size": cache_size}}

    @_as_released
    def get_store(self, worktree_dir: StrPath) -> CheckPointStore:
        """Returns the checkpoints of a directory. Different spellings of its path give the same checkpoints."""
        workspace = Workspace(worktree_dir, settings=self._settings)
        workspace.init()
        return CheckPointStore(workspace)

    @_as_released
    def workspaces(self) -> list[Path]:
        """Returns every directory that has checkpoints here."""
        return [info.path for info in Workspace.all(self._stores_root)]

    def prune_invalid(self) -> None:
        """Removes the checkpoints of directories that were deleted."""
        prune_stores(self._stores_root)


@_as_released
def prune_stores(stores_root: StrPath) -> None:
    """Removes the checkpoints of directories that were deleted. Directories on a disk that is not mounted are kept."""
    for info in Workspace.all(stores_root):
        if info.is_gone:
            forget_store(str(info.store), 30.0)


@dataclass
class CheckpointConfig:
    """The settings of the service."""

    checkpoint_dir: Path = field(default_factory=lambda: Path.home() / ".fabricatio-checkpoint")
    cache_size: int = 100


def _load_config() -> CheckpointConfig:
    if "fabricatio_core" in sys.modules:
        from fabricatio_core import CONFIG  # type: ignore[import-not-found,unused-ignore]

        return CONFIG.load("checkpoint", CheckpointConfig)  # type: ignore[no-any-return,unused-ignore]
    config = CheckpointConfig()
    for values in (_section("pyproject.toml", "tool", "fabricatio"), _section("fabricatio.toml"), _variables()):
        if "checkpoint_dir" in values:
            config.checkpoint_dir = Path(values["checkpoint_dir"])
        if "cache_size" in values:
            config.cache_size = int(values["cache_size"])
    return config


def _section(name: str, *keys: str) -> dict[str, Any]:
    """Reads a section of a TOML file in the current directory. Returns nothing on Python 3.10, which has no reader."""
    try:
        import tomllib

        values: Any = tomllib.loads(Path(name).read_text())
    except (ImportError, OSError, ValueError):
        return {}
    for key in (*keys, "ext", "checkpoint"):
        values = values.get(key, {}) if isinstance(values, dict) else {}
    return values if isinstance(values, dict) else {}


def _variables() -> dict[str, Any]:
    prefix = "FABRICATIO_EXT__CHECKPOINT__"
    return {name.removeprefix(prefix).lower(): value for name, value in os.environ.items() if name.startswith(prefix)}


checkpoint_config: CheckpointConfig = _load_config()

_service: CheckpointService | None = None


def get_checkpoint_service() -> CheckpointService:
    """Returns the service of this process, made from `checkpoint_config`."""
    global _service
    if _service is None:
        _service = CheckpointService(checkpoint_config.checkpoint_dir, checkpoint_config.cache_size)
    return _service


def __getattr__(name: str) -> Any:
    # Imported only on demand, because it may import the whole framework.
    if name == "Checkpoint":
        from ._fabricatio_mixin import Checkpoint

        return Checkpoint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _word(commit_id: str) -> str:
    if not isinstance(commit_id, str):
        raise TypeError(f"commit_id must be a str, not {type(commit_id).__name__}")
    return "@" if commit_id == "HEAD" else commit_id
