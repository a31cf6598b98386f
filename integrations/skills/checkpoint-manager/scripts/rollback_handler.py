"""Goes back to a checkpoint, and takes that back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .engine import Engine


class RollbackHandler:
    """Rollbacks of one project. Nothing is lost by one: what was there before is a checkpoint of its own."""

    def __init__(self, project_dir: str | Path) -> None:
        self.engine = Engine(project_dir)

    def preview(self, checkpoint: str) -> list[dict[str, Any]]:
        """What a rollback would change, path by path."""
        changes: list[dict[str, Any]] = self.engine.ask("restore", checkpoint, "--dry-run")["changes"]
        return changes

    def rollback(self, checkpoint: str, git: bool = False) -> list[dict[str, Any]]:
        """Makes the files as they were; with `git`, HEAD, branch and index of the project's repository, too."""
        words = ["restore", checkpoint, *(["--git"] if git else [])]
        changes: list[dict[str, Any]] = self.engine.ask(*words)["changes"]
        return changes

    def undo(self) -> bool:
        """Takes the last rollback back; False where there is none."""
        return bool(self.engine.ask("undo")["applied"])
