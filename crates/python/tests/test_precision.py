from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from backtrail import (
    ConflictError,
    PlanChangedError,
    Reverted,
    Saved,
    UnknownCheckpointError,
    UnknownPathError,
    UsageError,
    Workspace,
)


def lines(edits: dict[int, str]) -> str:
    """Returns the lines 1 to 20, with some of them replaced."""
    return "".join(f"{edits.get(number, f'line {number}')}\n" for number in range(1, 21))


@pytest.fixture
def edited(workspace: Workspace, project: Project) -> Saved:
    """The checkpoint of a session that edited `a` in two places and created `b`. The user edited `a` afterwards."""
    project.write("a", lines({}))
    workspace.save()
    project.write("a", lines({3: "agent", 18: "agent"}))
    project.write("b", "new")
    edited = workspace.save(session="s", agent="someone", author="agent")
    project.write("a", lines({3: "agent", 10: "mine", 18: "agent"}))
    return edited


def test_a_revert_keeps_later_work(workspace: Workspace, project: Project, edited: Saved) -> None:
    before = project.files()
    plan = workspace.plan_revert(edited)
    assert not plan.applied and project.files() == before
    done = workspace.revert(edited, plan=plan)
    assert isinstance(done, Reverted) and done.applied and done.plan == plan.plan
    assert (done.checkpoint, done.reverted, done.merged, done.shared) == (edited.id, [edited.id], ["a"], [])
    assert project.files() == {"a": lines({10: "mine"}).encode()}
    assert workspace.revert(edited).changes == []
    assert workspace.undo().applied and project.files() == before


def test_a_session_or_a_range_can_be_taken_back(workspace: Workspace, project: Project, edited: Saved) -> None:
    parent = edited.checkpoint.parent
    changes = workspace.plan_revert(edited).changes
    assert workspace.plan_revert(session="s").changes == changes
    assert workspace.plan_revert(f"{parent}..{edited.id}").changes == changes
    assert [change.path for change in workspace.revert(session="s", paths="b").changes] == ["b"]


def test_a_conflict_refuses_the_revert(workspace: Workspace, project: Project, edited: Saved) -> None:
    project.write("a", lines({3: "mine", 18: "agent"}))
    before = project.files()
    (conflict,) = workspace.plan_revert(edited).conflicts
    assert (conflict.path, conflict.lines) == ("a", [(3, 3)])
    with pytest.raises(ConflictError):
        workspace.revert(edited)
    assert project.files() == before
    assert [change.path for change in workspace.revert(edited, skip_conflicts=True).changes] == ["b"]
    assert project.files() == {"a": before["a"]}
    workspace.undo()
    workspace.revert(edited, markers=True)
    assert "<<<<<<< now\nmine\n" in project.read("a") and not (project.path / "b").exists()


def test_only_some_hunks(workspace: Workspace, project: Project, edited: Saved) -> None:
    (change,) = workspace.hunks(revert=edited, paths="a")
    assert change.hunks is not None and len(change.hunks) == 2
    workspace.revert(edited, hunks=[change.hunks[1].id])
    assert project.read("a") == lines({3: "agent", 10: "mine"}) and project.read("b") == "new"
    (change,) = workspace.hunks()
    assert change.hunks is not None
    (mine,) = [hunk.id for hunk in change.hunks if "-mine" in hunk.lines]
    assert workspace.plan("@", hunks=[mine]).changes[0].path == "a"
    workspace.restore("@", hunks=[mine])
    assert project.read("a") == lines({3: "agent"})
    with pytest.raises(PlanChangedError, match=mine):
        workspace.restore("@", hunks=[mine])


def test_the_best_fork_is_adopted(workspace: Workspace, project: Project, edited: Saved, tmp_path: Path) -> None:
    forks = workspace.fork(tmp_path / "try", count=2)
    assert [fork.path for fork in forks] == [tmp_path / "try-1", tmp_path / "try-2"]
    best = Workspace(forks[1].path)
    (best.path / "a").write_text(lines({1: "fork", 3: "agent", 10: "mine", 18: "agent"}))
    (best.path / "c").write_text("of the fork")
    project.write("a", lines({3: "agent", 10: "mine", 18: "here"}))
    assert [fork.files for fork in workspace.forks()] == [0, 2]
    plan = workspace.plan_adopt(best.path)
    assert not (project.path / "c").exists()
    done = workspace.adopt(forks[1], plan=plan)
    assert done.applied and done.merged == ["a"]
    assert project.read("a") == lines({1: "fork", 3: "agent", 10: "mine", 18: "here"})
    workspace.undo()
    assert not (project.path / "c").exists() and (best.path / "c").exists()


def test_a_fork_has_the_settings_of_the_caller(project: Project, tmp_path: Path) -> None:
    workspace = Workspace(project, exclude=["*.dat"])
    project.write("a", "1")
    workspace.save()
    (fork,) = workspace.fork(tmp_path / "fork")
    (fork.path / "b.dat").write_text("not captured")
    assert workspace.plan_adopt(fork).changes == [] and workspace.forks()[0].files == 0


def test_a_fork_of_a_checkpoint(workspace: Workspace, project: Project, edited: Saved, tmp_path: Path) -> None:
    (fork,) = workspace.fork(tmp_path / "fork", edited)
    assert fork.checkpoint == edited.id
    assert (fork.path / "a").read_text() == lines({3: "agent", 18: "agent"})


def test_invalid_calls_change_nothing(workspace: Workspace, project: Project, edited: Saved, tmp_path: Path) -> None:
    before = project.files()
    parent = str(edited.checkpoint.parent)
    invalid: list[dict[str, Any]] = [
        {},
        {"what": "@", "turn": 1},
        {"what": "@", "session": "s"},
        {"turn": 0},
        {"what": parent},
        {"what": f"@..{parent}"},
        {"what": "@", "skip_conflicts": True, "markers": True},
    ]
    for words in invalid:
        with pytest.raises(UsageError):
            workspace.revert(**words)
    unknown: list[dict[str, Any]] = [{"what": "turn:9"}, {"turn": 1}, {"session": "unknown"}]
    for words in unknown:
        with pytest.raises(UnknownCheckpointError):
            workspace.revert(**words)
    with pytest.raises(UnknownPathError):
        workspace.revert(edited, "unchanged")
    with pytest.raises(UsageError, match="combined"):
        workspace.hunks("@", revert="@")
    with pytest.raises(TypeError, match="list of ids"):
        workspace.revert("@", hunks="abc")
    with pytest.raises(UsageError, match="count"):
        workspace.fork(tmp_path / "fork", count=0)
    for directory in (project.path, tmp_path / "nowhere", tmp_path):
        with pytest.raises(UsageError, match="not a fork"):
            workspace.adopt(directory)
    with pytest.raises(UsageError):
        workspace.fork(tmp_path)
    assert project.files() == before and not (tmp_path / "fork").exists()
