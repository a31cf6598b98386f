"""Runs Backtrail: the Python package if it is installed, otherwise the command."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


class EngineError(RuntimeError):
    """Backtrail failed. ``code`` is the stable error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def program() -> list[str]:
    """Returns the command line that starts Backtrail."""
    if importlib.util.find_spec("backtrail") is not None:
        return [sys.executable, "-m", "backtrail"]
    command = shutil.which("backtrail")
    if command is None:
        raise EngineError("missing", "neither the Python package backtrail nor the backtrail command is installed")
    return [command]


class Engine:
    """The checkpoints of one project."""

    def __init__(self, project_dir: str | Path) -> None:
        self.project_dir = Path(project_dir).resolve()

    def bytes(self, *words: str) -> bytes:
        """Runs a command that prints bytes."""
        done = subprocess.run(
            [*program(), "--quiet", "--workspace", str(self.project_dir), *words],
            cwd=self.project_dir, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )
        if done.returncode:
            raise _error(done.stdout, done.stderr)
        return done.stdout

    def ask(self, *words: str) -> dict[str, Any]:
        """Runs a command that answers in JSON."""
        answer: dict[str, Any] = json.loads(self.bytes("--json", *words))
        return answer

    def read(self, checkpoint: str, path: str) -> bytes | None:
        """Returns a file of a checkpoint, or None if the checkpoint does not have it."""
        try:
            return self.bytes("cat", checkpoint, path)
        except EngineError:
            return None


def _error(stdout: bytes, stderr: bytes) -> EngineError:
    try:
        error = json.loads(stdout)["error"]
        return EngineError(error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        lines = stderr.decode(errors="replace").strip().splitlines()
        return EngineError("failed", lines[0] if lines else "backtrail failed")
