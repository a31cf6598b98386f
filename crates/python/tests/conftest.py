"""Fixtures for hermetic workspaces: their own home directory, no git configuration, and no settings of the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import public_calls
import pytest

import backtrail
from backtrail import aio


def pytest_configure(config: pytest.Config) -> None:
    public_calls.register(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("BACKTRAIL_LONG"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="BACKTRAIL_LONG is not set"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("GIT_", "BACKTRAIL_", "XDG_", "PRAISONAI_", "FABRICATIO_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "t")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "t@example.invalid")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "t")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "t@example.invalid")
    return home


class Project:
    """A directory with helpers to change and to read its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def delete(self, name: str) -> None:
        (self.path / name).unlink()

    def files(self) -> dict[str, bytes]:
        """Returns every file outside ``.git`` with its bytes, read without Backtrail."""
        found = {}
        for directory, names, files in os.walk(self.path):
            names[:] = [name for name in names if name != ".git"]
            for name in files:
                path = Path(directory) / name
                found[str(path.relative_to(self.path))] = path.read_bytes()
        return found

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = tmp_path / "project"
    path.mkdir()
    return Project(path)


@pytest.fixture
def workspace(project: Project) -> backtrail.Workspace:
    return backtrail.Workspace(project)


@pytest.fixture
def async_workspace(project: Project) -> aio.Workspace:
    return aio.Workspace(project)


Command = Callable[..., Any]


@pytest.fixture
def command(project: Project) -> Command:
    """Returns a function that runs the command line of the package with ``--json`` and returns its answer."""

    def run(*words: str) -> Any:
        line = [sys.executable, "-m", "backtrail", "-w", str(project.path), "--json", *words]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run
