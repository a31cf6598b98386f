"""Files that checkpoints can no longer capture, and changes that a restore does not take back, are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command, Project

from backtrail import Workspace, aio

LARGE = "g" * 200_000


def small_limit(project: Project) -> None:
    project.write("backtrail.toml", '[scan]\nmax_file_bytes = "100KiB"\n')
    project.write("grown.bin", "small")


def test_save_and_step_return_dropped_paths(workspace: Workspace, project: Project) -> None:
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


def test_a_restore_returns_dropped_paths_that_it_leaves_alone(
    workspace: Workspace, project: Project, command: Command
) -> None:
    small_limit(project)
    project.write("sub/a", "1")
    before = workspace.save("small")
    project.write("grown.bin", LARGE)
    saved = workspace.save("grown")
    project.write("sub/a", "2")
    plan = workspace.plan(saved)
    assert [(skipped.path, skipped.reason) for skipped in plan.not_restored] == [("grown.bin", "too large")]
    assert plan.to_dict()["not_restored"] == [{"path": "grown.bin", "reason": "too large"}]
    assert plan.to_dict() == command("restore", saved.id, "--dry-run")
    assert workspace.plan(saved, "sub").not_restored == []
    restored = workspace.restore(saved, plan=plan)
    assert restored.not_restored == plan.not_restored and project.read("sub/a") == "1"
    assert project.read("grown.bin") == LARGE
    undone = workspace.undo()
    assert undone.not_restored == [] and "not_restored" not in undone.to_dict()
    project.delete("grown.bin")
    assert workspace.restore(saved).not_restored == []
    assert workspace.restore(before).not_restored == []


def test_a_guard_has_the_dropped_paths(workspace: Workspace, project: Project) -> None:
    small_limit(project)
    workspace.save("small")
    project.write("grown.bin", LARGE)
    with workspace.guard() as guard:
        pass
    assert [skipped.path for skipped in guard.dropped] == ["grown.bin"]


def test_a_guard_has_the_paths_that_it_did_not_take_back(workspace: Workspace, project: Project) -> None:
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


async def test_an_asynchronous_guard_has_these_paths(async_workspace: aio.Workspace, project: Project) -> None:
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
