"""Replaces the ``checkpoint-manager`` skill: named checkpoints of a project with its git, feature and session state.

Each checkpoint also has a directory ``.claude/checkpoints/<id>`` in the project. It holds a copy of the feature list
and the description of the checkpoint. Git ignores the directory, and rollbacks leave it alone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from .. import aio, results
from ..errors import NotFoundError, UnknownCheckpointError
from ..workspace import StrPath, Workspace

__all__ = ["Checkpoint", "CheckpointManager", "CheckpointType", "FeatureState", "GitState"]

FEATURE_LIST_FILE = "feature_list.json"
PROGRESS_FILE = "claude-progress.txt"
CHECKPOINTS_DIR = ".claude/checkpoints"

_AGENT = "checkpoint-manager"


class CheckpointType(Enum):
    """The reason for a checkpoint, which determines how long it is kept."""

    AUTOMATIC = "automatic"
    """Taken before a risky operation. The last 5 are kept."""
    MANUAL = "manual"
    """Taken on request. Kept until it is deleted."""
    FEATURE = "feature"
    """Taken when a feature is complete. Kept until it is deleted with ``force``."""
    SESSION = "session"
    """Taken when a session begins. The last 3 are kept."""


@dataclass
class GitState:
    """The position of the project's repository. Its fields are empty if the project has no repository."""

    commit_hash: str
    branch: str
    dirty_files: list[str] = field(default_factory=list)


@dataclass
class FeatureState:
    """The contents of the feature list, and the path of its copy, relative to the project."""

    current: str | None
    completed: list[str]
    snapshot_path: str


@dataclass
class Checkpoint:
    """A state of the project that can be restored."""

    id: str
    name: str
    description: str
    timestamp: str
    checkpoint_type: CheckpointType
    git_state: GitState
    feature_state: FeatureState
    context: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "timestamp": self.timestamp,
            "checkpoint_type": self.checkpoint_type.value,
            "git_state": {
                "commit_hash": self.git_state.commit_hash,
                "branch": self.git_state.branch,
                "dirty_files": list(self.git_state.dirty_files),
            },
            "feature_state": {
                "current": self.feature_state.current,
                "completed": list(self.feature_state.completed),
                "snapshot_path": self.feature_state.snapshot_path,
            },
            "context": dict(self.context),
        }


class CheckpointManager:
    """Takes checkpoints of a project and restores them."""

    def __init__(self, project_dir: StrPath) -> None:
        self.project_dir: Path = Path(project_dir)
        self.checkpoints_dir: Path = self.project_dir / CHECKPOINTS_DIR

    async def create_checkpoint(
        self,
        name: str,
        description: str = "",
        checkpoint_type: CheckpointType | str = CheckpointType.MANUAL,
        session_number: int | None = None,
        token_usage: int | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Takes a checkpoint of all files, including uncommitted ones, the feature list and the progress file."""
        said = dict(context or {})
        if session_number is not None:
            said["session_number"] = session_number
        if token_usage is not None:
            said["token_usage"] = token_usage
        return await aio.run(self._create, name, description, CheckpointType(checkpoint_type), said)

    async def rollback(self, checkpoint_id: str | Checkpoint, git: bool = False) -> bool:
        """Restores the project. With `git`, also moves HEAD, the branch and the index of its repository back.

        Unsaved work is not lost: it is kept in a safety checkpoint, and ``backtrail undo`` brings it back.
        """
        id = checkpoint_id.id if isinstance(checkpoint_id, Checkpoint) else checkpoint_id
        await aio.run(self._rollback, id, git)
        return True

    async def rollback_to_latest(self, git: bool = False) -> bool:
        """Restores the newest checkpoint. Returns False if there is none."""
        checkpoints = await self.list_checkpoints()
        return await self.rollback(checkpoints[0].id, git) if checkpoints else False

    async def list_checkpoints(self, checkpoint_type: CheckpointType | None = None) -> list[Checkpoint]:
        """Returns the checkpoints, newest first."""
        found = [self._described(one) for one in await aio.run(self._own)]
        return [one for one in found if checkpoint_type in (None, one.checkpoint_type)]

    async def get_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Returns one checkpoint, or `None` if it does not exist."""
        for checkpoint in await self.list_checkpoints():
            if checkpoint.id == checkpoint_id:
                return checkpoint
        return None

    async def delete_checkpoint(self, checkpoint_id: str, force: bool = False) -> bool:
        """Deletes a checkpoint, a feature checkpoint only with `force`. Returns False if it does not exist."""
        return await aio.run(self._delete, checkpoint_id, force)

    def _create(
        self, name: str, description: str, checkpoint_type: CheckpointType, context: dict[str, Any]
    ) -> Checkpoint:
        workspace = self._workspace()
        now = datetime.now().replace(microsecond=0)
        directory = self._new_directory(now)
        try:
            saved = workspace.save(
                name,
                name=directory.name,
                description=description,
                kind=checkpoint_type.value,
                agent=_AGENT,
                session_number=_number(context.get("session_number")),
                tokens=_number(context.get("token_usage")),
                metadata={"name": name, "time": now.isoformat(), "context": context},
            )
        except BaseException:
            self._remove(directory)
            raise
        checkpoint = self._described(saved.checkpoint)
        (directory / FEATURE_LIST_FILE).write_bytes(self._features_at(workspace, saved.id))
        (directory / "checkpoint.json").write_text(json.dumps(checkpoint.to_dict(), indent=2) + "\n")
        self._sweep({one.name for one in self._own()})
        return checkpoint

    def _new_directory(self, now: datetime) -> Path:
        """Creates a directory with an unused name. The name is the id of the checkpoint."""
        self.checkpoints_dir.mkdir(parents=True, exist_ok=True)
        ignore = self.checkpoints_dir / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        id = now.strftime("checkpoint-%Y%m%d-%H%M%S")
        number = 1
        while True:
            directory = self.checkpoints_dir / (id if number == 1 else f"{id}-{number}")
            with contextlib.suppress(FileExistsError):
                directory.mkdir()
                return directory
            number += 1

    def _features_at(self, workspace: Workspace, id: str) -> bytes:
        try:
            return workspace.read(id, FEATURE_LIST_FILE)
        except NotFoundError:
            return b"{}\n"

    def _sweep(self, kept: set[str | None]) -> None:
        """Removes the directories of checkpoints that retention deleted."""
        for directory in self.checkpoints_dir.glob("checkpoint-*"):
            # A directory without a description belongs to a checkpoint that is still being taken.
            if directory.name not in kept and (directory / "checkpoint.json").exists():
                self._remove(directory)

    def _remove(self, directory: Path) -> None:
        for name in (FEATURE_LIST_FILE, "checkpoint.json"):
            (directory / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            directory.rmdir()

    def _rollback(self, id: str, git: bool) -> None:
        if not isinstance(id, str):
            raise TypeError(f"checkpoint_id must be a str, not {type(id).__name__}")
        for checkpoint in self._own():
            if checkpoint.name == id:
                self._workspace().restore(checkpoint, git=git)
                return
        raise UnknownCheckpointError(f"there is no checkpoint {id!r}")

    def _delete(self, id: str, force: bool) -> bool:
        for checkpoint in self._own():
            if checkpoint.name == id:
                self._workspace().delete(checkpoint, force=force)
                self._remove(self.checkpoints_dir / id)
                return True
        return False

    def _own(self) -> list[results.Checkpoint]:
        return [one for one in self._workspace().list(safety=False) if one.agent == _AGENT and one.name]

    def _workspace(self) -> Workspace:
        return Workspace(
            self.project_dir, settings={"state": {"features": FEATURE_LIST_FILE, "progress": PROGRESS_FILE}}
        )

    def _described(self, checkpoint: results.Checkpoint) -> Checkpoint:
        git = checkpoint.git
        features = checkpoint.feature_state
        id = checkpoint.name or checkpoint.id
        return Checkpoint(
            id,
            checkpoint.metadata.get("name", checkpoint.message),
            checkpoint.description or "",
            checkpoint.metadata.get("time", ""),
            CheckpointType(checkpoint.kind),
            GitState(git.commit or "", git.branch or "", list(git.dirty_files)) if git else GitState("", ""),
            FeatureState(
                features.current if features else None,
                list(features.completed) if features else [],
                f"{CHECKPOINTS_DIR}/{id}/{FEATURE_LIST_FILE}",
            ),
            dict(checkpoint.metadata.get("context", {})),
        )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
