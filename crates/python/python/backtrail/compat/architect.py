"""Replaces ``architect.features.checkpoints``: checkpoints by step, without commits on the user's branch."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from .. import results
from ..errors import NotFoundError, UsageError
from ..workspace import Workspace

__all__ = ["CHECKPOINT_PREFIX", "Checkpoint", "CheckpointManager"]

CHECKPOINT_PREFIX = "architect:checkpoint"

_AGENT = "architect"
_STEP = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class Checkpoint:
    """A state of the workspace that can be restored."""

    step: int
    commit_hash: str
    message: str
    timestamp: float
    files_changed: list[str]

    def short_hash(self) -> str:
        """Returns the first characters of the id."""
        return self.commit_hash[:7]

    @classmethod
    def _of(cls, checkpoint: results.Checkpoint) -> Checkpoint:
        head, _, message = checkpoint.message.partition(" -- ")
        step = checkpoint.step
        if step is None:
            found = _STEP.search(head)
            step = int(found[1]) if found else 0
        time = checkpoint.timestamp.timestamp()
        return cls(step, checkpoint.id, message, time, list(checkpoint.files_changed))


class CheckpointManager:
    """Takes checkpoints of a workspace and restores them. Never writes to the user's own repository."""

    def __init__(self, workspace_root: str) -> None:
        self.root = workspace_root
        self.log: logging.Logger = logging.getLogger("backtrail.compat.architect")

    def create(self, step: int, message: str = "") -> Checkpoint | None:
        """Takes a checkpoint. Returns `None` if nothing changed since the last one. Raises an exception on failure."""
        if not isinstance(step, int) or isinstance(step, bool):
            raise TypeError(f"step must be an int, not {type(step).__name__}")
        if step < 0:
            raise UsageError(f"step must be 0 or more, not {step}")
        label = f"{CHECKPOINT_PREFIX}:step-{step}" + (f" -- {message}" if message else "")
        saved = self._workspace().save(label, step=step, agent=_AGENT, if_changed=True)
        if not saved.created:
            self.log.info("checkpoint.nothing_to_commit step=%d", step)
            return None
        self.log.info("checkpoint.created step=%d commit=%s", step, saved.id)
        return Checkpoint._of(saved.checkpoint)

    def list_checkpoints(self) -> list[Checkpoint]:
        """Returns the checkpoints, newest first, including checkpoints that are newer than the last rollback target."""
        return [Checkpoint._of(one) for one in self._workspace().list(safety=False) if _is_own(one)]

    def rollback(self, step: int | None = None, commit: str | None = None) -> bool:
        """Restores the workspace. Returns False if there is no such checkpoint.

        Unsaved work is not lost: it is kept in a safety checkpoint, and ``backtrail undo`` brings it back.
        """
        workspace = self._workspace()
        if commit is None and step is None:
            self.log.error("checkpoint.no_target_specified")
            return False
        if commit is None:
            fitting = [one.commit_hash for one in self.list_checkpoints() if one.step == step]
            commit = fitting[0] if fitting else None
        try:
            if commit is None:
                raise NotFoundError(f"there is no checkpoint of step {step}")
            workspace.restore(commit)
        except NotFoundError as problem:
            self.log.error("checkpoint.not_found step=%s commit=%s: %s", step, commit, problem)
            return False
        self.log.info("checkpoint.rollback_success commit=%s", commit)
        return True

    def get_latest(self) -> Checkpoint | None:
        """Returns the newest checkpoint, or `None` if there is none."""
        checkpoints = self.list_checkpoints()
        return checkpoints[0] if checkpoints else None

    def has_changes_since(self, commit_hash: str) -> bool:
        """Returns whether anything changed since a checkpoint, including new files. Raises `LookupError` if the
        checkpoint does not exist."""
        return bool(self._workspace().status(commit_hash))

    def _workspace(self) -> Workspace:
        return Workspace(Path(self.root))


def _is_own(checkpoint: results.Checkpoint) -> bool:
    return checkpoint.agent == _AGENT or checkpoint.message.startswith(f"{CHECKPOINT_PREFIX}:")
