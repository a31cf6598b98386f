from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from conftest import Project

from backtrail import Checkpoint, Guard, UsageError, Workspace, checkpointed


def test_a_block_that_raises_is_rolled_back(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    with pytest.raises(ZeroDivisionError), workspace.guard("try it") as guard:
        project.write("a", "2")
        project.write("b", "2")
        1 / 0  # noqa: B018
    assert project.files() == {"a": b"1"}
    assert guard.rolled_back and guard.restored is not None and guard.restored.applied
    assert guard.checkpoint.message == "try it" and guard.checkpoint.kind == "automatic"
    assert not workspace.get(guard.checkpoint).pinned
    workspace.undo()
    assert project.files() == {"a": b"2", "b": b"2"}


def test_a_block_that_succeeds_is_kept(workspace: Workspace, project: Project) -> None:
    with workspace.guard() as guard:
        project.write("a", "1")
    assert project.read("a") == "1" and not guard.rolled_back
    assert not workspace.get(guard.checkpoint).pinned


def test_rollback_without_an_exception(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    with workspace.guard("tests") as guard:
        project.write("a", "2")
        guard.rollback()
    assert project.read("a") == "1" and guard.rolled_back
    with pytest.raises(UsageError):
        Guard(workspace).rollback()


def test_the_checkpoint_is_kept_during_a_block_with_many_checkpoints(workspace: Workspace, project: Project) -> None:
    # Retention keeps only the last five automatic checkpoints, and nested guards take automatic ones, too.
    project.write("a", "0")
    with pytest.raises(RuntimeError), workspace.guard("outer"):
        for number in range(8):
            with workspace.guard(str(number)):
                project.write("a", str(number))
        raise RuntimeError
    assert project.read("a") == "0"


def test_a_block_that_deletes_its_checkpoint(workspace: Workspace, project: Project) -> None:
    project.write("a", "0")
    with workspace.guard() as guard:
        project.write("a", "1")
        workspace.delete(guard.checkpoint)
    assert project.read("a") == "1"
    assert workspace.list() == []


def test_nested_guards(workspace: Workspace, project: Project) -> None:
    project.write("a", "0")
    with workspace.guard("outer"):
        project.write("a", "1")
        with pytest.raises(ValueError), workspace.guard("inner"):
            project.write("a", "2")
            raise ValueError
        assert project.read("a") == "1"
    assert project.read("a") == "1"


def test_checkpointed_functions(workspace: Workspace, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a", "1")

    @checkpointed(workspace=workspace, message="edit")
    def edit(content: str, *, fail: bool = False) -> int:
        """Edits."""
        project.write("a", content)
        if fail:
            raise OSError("no")
        return len(content)

    assert edit("22") == 2 and edit.__doc__ == "Edits." and workspace.list(kind="automatic")[0].message == "edit"
    with pytest.raises(OSError, match="no"):
        edit("333", fail=True)
    assert project.read("a") == "22"

    @checkpointed
    def remove() -> None:
        Path("a").unlink()
        raise KeyError

    monkeypatch.chdir(project.path)
    with pytest.raises(KeyError):
        remove()
    assert project.read("a") == "22" and workspace.list(kind="automatic")[0].message == "before remove"

    @checkpointed(workspace=project.path)
    async def later() -> None:
        project.write("a", "async")
        raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(later())
    assert project.read("a") == "22"


def test_generators_and_non_functions_are_refused(workspace: Workspace) -> None:
    guarded = checkpointed(workspace=workspace)

    def pieces() -> Iterator[int]:
        yield 1

    async def later_pieces() -> AsyncIterator[int]:
        yield 1

    class Pieces:
        def __call__(self) -> Iterator[int]:
            yield 1

    for generator in (pieces, later_pieces, Pieces()):
        with pytest.raises(TypeError, match=r"workspace.guard\(\)"):
            guarded(generator)
    for thing in ("message", 5, workspace):
        with pytest.raises(TypeError, match="workspace="):
            checkpointed(thing)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="@classmethod"):
        guarded(classmethod(len))  # type: ignore[arg-type]
    assert workspace.list() == []


def test_callable_objects_with_an_async_call(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")

    class Edit:
        async def __call__(self, content: str) -> None:
            await asyncio.sleep(0)
            project.write("a", content)
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(checkpointed(workspace=workspace)(Edit())("2"))
    assert project.read("a") == "1"


def test_an_interrupted_start_leaves_nothing_pinned(
    workspace: Workspace, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a", "1")
    pin = workspace.pin

    def interrupted(checkpoint: Checkpoint) -> Checkpoint:
        pin(checkpoint)
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace, "pin", interrupted)
    with pytest.raises(KeyboardInterrupt), workspace.guard("never begun"):
        raise AssertionError
    assert [checkpoint.pinned for checkpoint in workspace.list()] == [False]
