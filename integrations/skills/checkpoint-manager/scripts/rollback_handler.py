"""Rolls back to a checkpoint, and undoes a rollback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .engine import Engine


class RollbackHandler:
    """Rollbacks of one project. A rollback loses nothing: it first takes a checkpoint of the current state."""

    def __init__(self, project_dir: str | Path) -> None:
        self.engine = Engine(project_dir)

    def preview(self, checkpoint: str) -> list[dict[str, Any]]:
        """Returns the changes that a rollback would make, path by path."""
        changes: list[dict[str, Any]] = self.engine.ask("restore", checkpoint, "--dry-run")["changes"]
        return changes

    def rollback(self, checkpoint: str, git: bool = False) -> list[dict[str, Any]]:
        """Restores the files; with `git` also HEAD, branch and index of the project's repository."""
        words = ["restore", checkpoint, *(["--git"] if git else [])]
        changes: list[dict[str, Any]] = self.engine.ask(*words)["changes"]
        return changes

    def undo(self) -> bool:
        """Undoes the last rollback. Returns False if there is none."""
        return bool(self.engine.ask("undo")["applied"])
