from __future__ import annotations

import hashlib
import itertools
import os
import subprocess

import pytest
from conftest import Project

from backtrail import (
    AmbiguousCheckpointError,
    ConflictError,
    PathOutsideWorkspaceError,
    PlanChangedError,
    UnknownCheckpointError,
    UsageError,
    Workspace,
)


def test_restore_undo_redo(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    project.write("gone", "1")
    first = workspace.save()
    project.write("a", "2")
    project.write("new", "2")
    project.delete("gone")
    changed = project.files()
    restored = workspace.restore(first)
    assert restored.applied and restored.checkpoint == first.id and restored.safety is not None
    assert {(change.path, change.status) for change in restored.changes} == {
        ("a", "modified"),
        ("new", "deleted"),
        ("gone", "added"),
    }
    assert project.files() == {"a": b"1", "gone": b"1"}
    assert workspace.undo().applied and project.files() == changed
    assert workspace.redo().applied and project.files() == {"a": b"1", "gone": b"1"}
    nothing = workspace.redo()
    assert not nothing.applied and nothing.changes == [] and nothing.checkpoint is None


def test_restore_of_some_paths(workspace: Workspace, project: Project) -> None:
    for name in ("a", "b/c", "b/d", "e"):
        project.write(name, "1")
    saved = workspace.save()
    for name in ("a", "b/c", "b/d", "e"):
        project.write(name, "2")
    workspace.restore(saved, "b/c")
    assert project.read("b/c") == "1" and project.read("b/d") == "2"
    workspace.restore(saved, [project.path / "b", "e"])
    assert project.files() == {"a": b"2", "b/c": b"1", "b/d": b"1", "e": b"1"}
    assert workspace.restore(saved, []).changes == []


def test_a_plan_changes_nothing_and_is_refused_after_changes(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved = workspace.save()
    project.write("a", "2")
    plan = workspace.plan(saved)
    assert not plan.applied and plan.safety is None and [change.path for change in plan.changes] == ["a"]
    project.write("b", "3")
    with pytest.raises(PlanChangedError) as caught:
        workspace.restore(saved, plan=plan)
    assert caught.value.code == "plan_changed" and project.files() == {"a": b"2", "b": b"3"}
    assert workspace.restore(saved, plan=workspace.plan(saved).plan).applied


def test_rewind(workspace: Workspace, project: Project) -> None:
    for number in range(4):
        project.write("a", str(number))
        workspace.save(str(number), kind="turn" if number == 1 else "manual")
    workspace.rewind()
    assert project.read("a") == "2"
    workspace.rewind(2)
    assert project.read("a") == "0"
    with pytest.raises(UsageError, match="number of prompts to go back to is 0"):
        workspace.rewind(turn=True)
    with pytest.raises(UsageError):
        workspace.rewind(0)
    with pytest.raises(TypeError):
        workspace.rewind("1")  # type: ignore[arg-type]
    with pytest.raises(UnknownCheckpointError):
        workspace.rewind(9)


def test_repeated_rewind_by_prompts_goes_further_back(workspace: Workspace, project: Project) -> None:
    for number in range(3):
        project.write("a", str(number))
        workspace.save(f"prompt {number}", kind="turn")
    project.write("a", "work for the last prompt")
    for number in (2, 1, 0):
        workspace.rewind(turn=True)
        assert project.read("a") == str(number)
    with pytest.raises(UsageError):
        workspace.rewind(turn=True)
    workspace.restore(workspace.list(kind="turn")[0])
    workspace.rewind(2, turn=True)
    assert project.read("a") == "0"


def test_unknown_checkpoint_names(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    workspace.save(name="before")
    with pytest.raises(UnknownCheckpointError, match="nope") as caught:
        workspace.restore("nope")
    assert caught.value.code == "unknown_checkpoint" and isinstance(caught.value, LookupError)
    with pytest.raises(UnknownCheckpointError) as caught:
        workspace.get("befroe")
    assert caught.value.nearest == "before"
    for word in (5, None, b"@", ["@"]):
        with pytest.raises(TypeError, match="checkpoint must be"):
            workspace.restore(word)  # type: ignore[arg-type]
    for odd in ("--help", "", "-x"):
        with pytest.raises(UnknownCheckpointError):
            workspace.get(odd)


def test_an_ambiguous_id_lists_the_candidates(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved = workspace.save("original")
    # A checkpoint is a plain git commit. This makes a similar one whose id begins with the same characters.
    git = ["git", "--git-dir", str(workspace.store)]
    commit = subprocess.run([*git, "cat-file", "commit", saved.id], capture_output=True, check=True).stdout
    for number in itertools.count():
        twin = commit.replace(b"original", str(number).encode(), 1)
        id = hashlib.sha1(b"commit %d\0" % len(twin) + twin).hexdigest()
        if id[:4] == saved.id[:4]:
            break
    subprocess.run([*git, "hash-object", "-w", "-t", "commit", "--stdin"], input=twin, capture_output=True, check=True)
    subprocess.run([*git, "update-ref", f"refs/checkpoints/{id}", id], check=True)
    with pytest.raises(AmbiguousCheckpointError, match="more characters") as caught:
        workspace.get(id[:4])
    assert sorted(caught.value.candidates) == sorted([saved.id, id])


def test_paths_outside_the_workspace_are_refused(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved = workspace.save()
    for path in ("../x", "/etc/passwd"):
        with pytest.raises(PathOutsideWorkspaceError):
            workspace.restore(saved, path)
        with pytest.raises(PathOutsideWorkspaceError):
            workspace.read(saved, path)


def test_conflicts_are_refused_or_skipped(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    project.write("b", "1")
    saved = workspace.save()
    project.delete("a")
    os.mkfifo(project.path / "a")
    project.write("b", "2")
    with pytest.raises(ConflictError, match="skip_conflicts"):
        workspace.restore(saved)
    assert project.path.joinpath("b").read_text() == "2"
    restored = workspace.restore(saved, skip_conflicts=True)
    assert [conflict.path for conflict in restored.conflicts] == ["a"]
    assert project.path.joinpath("b").read_text() == "1"


def test_the_user_repository_moves_only_with_git(workspace: Workspace, project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("a", "1")
    project.git("add", "a")
    project.git("commit", "-q", "-m", "one")
    first = workspace.save()
    head = project.git("rev-parse", "HEAD")
    project.write("a", "2")
    project.git("commit", "-q", "-a", "-m", "two")
    later = project.git("rev-parse", "HEAD")
    workspace.save()
    workspace.restore(first)
    assert project.read("a") == "1" and project.git("rev-parse", "HEAD") == later
    workspace.undo()
    workspace.restore(first, git=True)
    assert project.git("rev-parse", "HEAD") == head
    workspace.undo()
    assert project.git("rev-parse", "HEAD") == later


def test_restore_of_state_files_only(workspace: Workspace, project: Project) -> None:
    project.write("backtrail.toml", '[state]\nprogress = "progress.md"\n')
    project.write("progress.md", "1")
    project.write("a", "1")
    saved = workspace.save()
    project.write("progress.md", "2")
    project.write("a", "2")
    workspace.restore(saved, only="state")
    assert project.read("progress.md") == "1" and project.read("a") == "2"
    with pytest.raises(UsageError, match="only"):
        workspace.restore(saved, only="some")  # type: ignore[arg-type]
