from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from backtrail import Checkpoint, Guard, Restored, UnknownCheckpointError, UsageError, Workspace, aio, checkpointed


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


def test_trials(tmp_path: Path) -> None:
    count = 1000 if os.environ.get("BACKTRAIL_LONG") else 21
    line = [sys.executable, str(Path(__file__).parent / "guard_trials.py"), str(tmp_path), str(count)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(done.stdout)
    assert sum(outcomes.values()) == count
    assert {outcome for outcome in outcomes if outcome.endswith("way back")} <= {"full disk: way back"}, outcomes


def test_the_exception_is_kept_with_a_note(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    problem = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as raised, workspace.guard() as guard:
        project.write("a", "2")
        raise problem
    assert raised.value is problem
    note = f"backtrail: {project.path} was rolled back to the checkpoint {guard.checkpoint.short_id}"
    assert getattr(problem, "__notes__") == [note]


def test_a_rollback_that_fails_keeps_the_exception_and_names_the_way_back(
    workspace: Workspace, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a", "1")
    restore = workspace.restore

    def failing(*words: Any, **named: Any) -> Restored:
        raise OSError("no space")

    with pytest.raises(ValueError, match="mine") as raised, workspace.guard() as guard:
        project.write("a", "2")
        monkeypatch.setattr(workspace, "restore", failing)
        raise ValueError("mine")
    assert isinstance(guard.failure, OSError) and not guard.rolled_back
    [note] = getattr(raised.value, "__notes__")
    assert "could not be rolled back: no space" in note and f"restore {guard.checkpoint.short_id}" in note
    assert workspace.get(guard.checkpoint).pinned
    assert f"restore({guard.checkpoint.id!r})" in note
    restore(guard.checkpoint)
    assert project.read("a") == "1"


def test_a_deleted_workspace_comes_back(workspace: Workspace, project: Project) -> None:
    project.write("a/b", "1")
    with pytest.raises(KeyError), workspace.guard() as guard:
        shutil.rmtree(project.path)
        raise KeyError
    assert project.files() == {"a/b": b"1"} and guard.rolled_back
    shutil.rmtree(project.path)
    with pytest.raises(FileNotFoundError) as raised:
        workspace.status()
    assert getattr(raised.value, "code") == "io" and raised.value.filename == str(project.path)
    with pytest.raises(FileNotFoundError):
        workspace.save()
    assert not project.path.exists()
    again = Workspace(project.path)
    assert again.store == workspace.store and again.list()
    again.restore("@")
    assert project.files() == {"a/b": b"1"}
    with pytest.raises(FileNotFoundError):
        Workspace(project.path / "never")


def test_ctrl_c_during_a_rollback_is_raised_after_it(
    workspace: Workspace, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a", "1")
    restore = workspace.restore

    def interrupted(*words: Any, **named: Any) -> Restored:
        os.kill(os.getpid(), signal.SIGINT)
        return restore(*words, **named)

    monkeypatch.setattr(workspace, "restore", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as raised, workspace.guard() as guard:
        project.write("a", "2")
        raise ValueError("mine")
    assert isinstance(raised.value.__context__, ValueError)
    assert project.read("a") == "1" and not workspace.get(guard.checkpoint).pinned
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_block_stays(workspace: Workspace) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        with workspace.guard():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


ASYNC = """
import asyncio, os, signal, sys, threading, time
from pathlib import Path
from backtrail import aio

async def main() -> None:
    async with aio.Workspace(sys.argv[1]).guard():
        Path(sys.argv[1], "a").write_text("2")
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_signals_during_an_asynchronous_guard(numbers: list[signal.Signals], project: Project) -> None:
    project.write("a", "1")
    line = [sys.executable, "-c", ASYNC, str(project.path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
        process.communicate()
    assert project.read("a") == "1"
    assert not any(checkpoint.pinned for checkpoint in Workspace(project.path).list())
    assert process.returncode == -numbers[0] or numbers[0] == signal.SIGINT and process.returncode != 0


async def test_an_asynchronous_guard_names_the_way_back(
    workspace: Workspace, project: Project
) -> None:
    project.write("a", "1")
    guarded = aio.Workspace(project.path)
    with pytest.raises(ValueError) as raised:
        async with guarded.guard("gone") as guard:
            workspace.delete(guard.checkpoint)
            raise ValueError
    assert isinstance(guard.failure, UnknownCheckpointError) and guard.message == "gone"
    assert guard.restored is None and not guard.rolled_back
    assert "could not be rolled back" in getattr(raised.value, "__notes__")[0]
