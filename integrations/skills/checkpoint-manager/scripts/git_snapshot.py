"""The position of the project's own repository at a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .engine import Engine


@dataclass
class GitState:
    """Commit, branch, and tracked files with changes; empty if there is no repository."""

    commit_hash: str = ""
    branch: str = ""
    dirty_files: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, checkpoint: Mapping[str, Any]) -> GitState:
        """Returns the state that a checkpoint recorded."""
        git = checkpoint.get("git") or {}
        return cls(git.get("commit") or "", git.get("branch") or "", list(git.get("dirty_files") or []))


def capture(project_dir: str | Path, checkpoint: str = "@") -> GitState:
    """Returns the state that a checkpoint recorded, by default the newest. The repository itself is never written."""
    return GitState.of(Engine(project_dir).ask("show", checkpoint)["checkpoint"])
