"""The parameters and results of `CheckpointService`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, List

from ... import results
from ...workspace import Workspace

USUAL_FILE_SIZE = 2 * 1024 * 1024
STEP_TAG = re.compile(r"^\[step-(\d+)\]\s*")


def step_in(message: str) -> int | None:
    """Returns the number of the step that a message begins with, or `None`."""
    found = STEP_TAG.match(message)
    return int(found[1]) if found else None


class CheckpointEvent(str, Enum):
    """The events that a service reports to its handlers."""

    INITIALIZED = "initialized"
    CHECKPOINT_CREATED = "checkpoint_created"
    CHECKPOINT_RESTORED = "checkpoint_restored"
    CHECKPOINTS_PRUNED = "checkpoints_pruned"
    ERROR = "error"


class FilesChanged(List[str]):
    """The paths that changed, as in the documentation. Compares and converts as their number, as in the released
    package."""

    def __int__(self) -> int:
        return len(self)

    def __index__(self) -> int:
        return len(self)

    def __eq__(self, other: object) -> bool:
        return len(self) == other if isinstance(other, int) else super().__eq__(other)

    def __lt__(self, other: Any) -> bool:
        return len(self) < other if isinstance(other, int) else super().__lt__(other)

    def __le__(self, other: Any) -> bool:
        return len(self) <= other if isinstance(other, int) else super().__le__(other)

    def __gt__(self, other: Any) -> bool:
        return len(self) > other if isinstance(other, int) else super().__gt__(other)

    def __ge__(self, other: Any) -> bool:
        return len(self) >= other if isinstance(other, int) else super().__ge__(other)

    __hash__ = None


@dataclass
class Checkpoint:
    """A single checkpoint."""

    id: str
    short_id: str
    message: str
    timestamp: datetime
    files_changed: FilesChanged = field(default_factory=FilesChanged)
    insertions: int = 0
    deletions: int = 0
    step: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_git_commit(cls, commit_hash: str, message: str, timestamp: str) -> Checkpoint:
        """Creates a checkpoint from the output of git for a commit. `timestamp` is ISO 8601."""
        time = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
        if time.tzinfo is None:
            time = time.replace(tzinfo=timezone.utc)
        return cls(commit_hash, commit_hash[:8], message, time, step=step_in(message))

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return {
            "id": self.id,
            "short_id": self.short_id,
            "message": self.message,
            "timestamp": self.timestamp.isoformat(),
            "files_changed": len(self.files_changed),
            "insertions": self.insertions,
            "deletions": self.deletions,
            "step": self.step,
        }

    @classmethod
    def _of(cls, checkpoint: results.Checkpoint) -> Checkpoint:
        return cls(
            checkpoint.id,
            checkpoint.id[:8],
            checkpoint.message,
            checkpoint.timestamp,
            FilesChanged(checkpoint.files_changed),
            checkpoint.insertions,
            checkpoint.deletions,
            checkpoint.step if checkpoint.step is not None else step_in(checkpoint.message),
            dict(checkpoint.metadata),
        )


@dataclass
class FileDiff:
    """One file that differs."""

    path: str
    absolute_path: str
    status: str
    additions: int = 0
    deletions: int = 0
    before_content: str | None = None
    after_content: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return {
            "path": self.path,
            "absolute_path": self.absolute_path,
            "status": self.status,
            "additions": self.additions,
            "deletions": self.deletions,
        }


@dataclass
class CheckpointDiff:
    """The differences between two checkpoints, or between a checkpoint and the files on disk."""

    from_checkpoint: str
    to_checkpoint: str | None
    files: list[FileDiff] = field(default_factory=list)
    total_additions: int = 0
    total_deletions: int = 0
    from_id: str = ""
    to_id: str | None = None
    diff_content: str = ""

    def __post_init__(self) -> None:
        self.total_additions = sum(file.additions for file in self.files)
        self.total_deletions = sum(file.deletions for file in self.files)
        self.from_id = self.from_id or self.from_checkpoint
        self.to_id = self.to_id or self.to_checkpoint

    @property
    def added_files(self) -> list[str]:
        """Returns the files that were added."""
        return [file.path for file in self.files if file.status == "added"]

    @property
    def modified_files(self) -> list[str]:
        """Returns the files that were modified."""
        return [file.path for file in self.files if file.status == "modified"]

    @property
    def deleted_files(self) -> list[str]:
        """Returns the files that were deleted."""
        return [file.path for file in self.files if file.status == "deleted"]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return {
            "from_checkpoint": self.from_checkpoint,
            "to_checkpoint": self.to_checkpoint,
            "files": [file.to_dict() for file in self.files],
            "total_additions": self.total_additions,
            "total_deletions": self.total_deletions,
        }


@dataclass
class CheckpointResult:
    """The outcome of a save or a restore. It also has the attributes of its checkpoint."""

    success: bool
    checkpoint: Checkpoint | None = None
    error: str | None = None

    @classmethod
    def ok(cls, checkpoint: Checkpoint) -> CheckpointResult:
        """Creates the outcome of a success."""
        return cls(True, checkpoint)

    @classmethod
    def fail(cls, error: str) -> CheckpointResult:
        """Creates the outcome of a failure."""
        return cls(False, None, error)

    def __bool__(self) -> bool:
        return self.success

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and self.checkpoint is not None:
            return getattr(self.checkpoint, name)
        raise AttributeError(name)


@dataclass
class CheckpointConfig:
    """The settings of a service."""

    workspace_dir: str = "."
    storage_dir: str | None = None
    enabled: bool = True
    auto_checkpoint: bool = True
    max_checkpoints: int = 100
    user_name: str = field(default_factory=lambda: os.environ.get("PRAISONAI_GIT_USER_NAME", "PraisonAI Checkpoints"))
    user_email: str = field(
        default_factory=lambda: os.environ.get("PRAISONAI_GIT_USER_EMAIL", "checkpoints@praison.ai")
    )
    max_file_size: int = USUAL_FILE_SIZE
    """Larger files are skipped, and a restore leaves them alone. The default stands for Backtrail's own limit."""
    exclude_patterns: list[str] = field(default_factory=list)
    """Paths to skip, in the syntax of ``.gitignore``, in addition to those that Backtrail skips by itself."""

    def __post_init__(self) -> None:
        self.workspace_dir = os.path.expanduser(self.workspace_dir)
        if self.storage_dir is not None:
            self.storage_dir = os.path.expanduser(self.storage_dir)

    def get_checkpoint_dir(self) -> str:
        """Returns the directory of the checkpoints: a bare git repository."""
        return str(self._workspace().store)

    def _workspace(self) -> Workspace:
        settings: dict[str, Any] = {}
        if self.storage_dir is not None:
            settings["stores"] = {"dir": os.path.abspath(self.storage_dir)}
        if self.max_file_size != USUAL_FILE_SIZE:
            settings["scan"] = {"max_file_bytes": self.max_file_size}
        return Workspace(self.workspace_dir, settings=settings, exclude=self.exclude_patterns)
