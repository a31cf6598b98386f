"""Files that checkpoints can't hold any more, and changes that a rollback does not take back, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Project

from backtrail import Workspace, aio

LARGE = "g" * 200_000


def small_limit(project: Project) -> None:
    project.write("backtrail.toml", '[scan]\nmax_file_bytes = "100KiB"\n')
    project.write("grown.bin", "small")


def test_save_and_step_name_what_is_not_protected_any_more(workspace: Workspace, project: Project) -> None:
    small_limit(project)
    project.write("two.bin", "small")
    assert workspace.save("small").dropped == []
    project.write("grown.bin", LARGE)
    saved = workspace.save("grown")
    assert saved.created and saved.checkpoint.dropped == 1
    assert [(skipped.path, skipped.reason) for skipped in saved.dropped] == [("grown.bin", "too large")]
    assert saved.to_dict()["dropped"] == [{"path": "grown.bin", "reason": "too large"}]
    assert [checkpoint.dropped for checkpoint in workspace.list()] == [1, 0]
    project.write("two.bin", LARGE)
    stepped = workspace.step("session")
    assert [skipped.path for skipped in stepped.dropped] == ["two.bin"]
    assert stepped.to_dict()["dropped"] == [{"path": "two.bin", "reason": "too large"}]
    again = workspace.step("session")
    assert not again.created and again.dropped == []


def test_a_guard_names_what_it_could_not_capture(workspace: Workspace, project: Project) -> None:
    small_limit(project)
    workspace.save("small")
    project.write("grown.bin", LARGE)
    with workspace.guard() as guard:
        pass
    assert [skipped.path for skipped in guard.dropped] == ["grown.bin"]


def test_a_guard_names_what_it_did_not_take_back(workspace: Workspace, project: Project) -> None:
    project.write(".gitignore", "*.log\n")
    for name in ("a", "changed.log", "gone.log", "same.log"):
        project.write(name, "1")
    with pytest.raises(ZeroDivisionError), workspace.guard() as guard:
        assert guard.not_taken_back == []
        project.write("a", "2")
        project.write("changed.log", "22")
        project.write("made/x.log", "1")
        Path(workspace.path, "gone.log").unlink()
        1 / 0  # noqa: B018
    assert guard.not_taken_back == ["changed.log", "gone.log", "made"]
    assert project.read("a") == "1"
    with workspace.guard() as harmless:
        project.write("a", "3")
        harmless.rollback()
    assert harmless.not_taken_back == []
    with workspace.guard() as kept:
        project.write("changed.log", "333")
    assert kept.not_taken_back == []


async def test_an_asynchronous_guard_does_so_too(async_workspace: aio.Workspace, project: Project) -> None:
    small_limit(project)
    project.write(".gitignore", "*.log\n")
    await async_workspace.save("small")
    project.write("grown.bin", LARGE)
    with pytest.raises(KeyError):
        async with async_workspace.guard() as guard:
            project.write("made.log", "1")
            raise KeyError
    assert guard.not_taken_back == ["made.log"]
    assert [skipped.path for skipped in guard.dropped] == ["grown.bin"]
