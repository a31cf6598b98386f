"""Invalid calls. Each is refused with an error that names the argument, and changes nothing."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from backtrail import Saved, UsageError, Workspace

SURROGATE = "\ud800"
"""A lone surrogate. A truncated answer of a model can end with one."""


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize("word", [5, None, b"abc", 1.5, True, ["a"], Path("a")])
def test_a_checkpoint_of_the_wrong_type_is_refused(workspace: Workspace, project: Project, word: Any) -> None:
    workspace.save(allow_empty=True)
    for call in (workspace.get, workspace.show, workspace.restore, workspace.pin, workspace.delete, workspace.patch):
        with pytest.raises(TypeError, match=f"not {type(word).__name__}"):
            call(word)


REFUSED: list[tuple[str, type[Exception], str, Callable[[Workspace], object]]] = [
    ("an id with a lone surrogate", UsageError, "lone surrogate", lambda w: w.get(SURROGATE)),
    ("a message with a lone surrogate", UsageError, "message: .*surrogates", lambda w: w.save("x" + SURROGATE)),
    ("a prompt with a lone surrogate", UsageError, "prompt: ", lambda w: w.step("s", prompt=SURROGATE)),
    ("an attachment with a lone surrogate", UsageError, "'x'", lambda w: w.save(attachments={"x": SURROGATE})),
    ("metadata with a lone surrogate", TypeError, "metadata", lambda w: w.save(metadata={"a": SURROGATE})),
    ("metadata with NaN", TypeError, "metadata", lambda w: w.save(metadata={"a": math.nan})),
    ("metadata with an integer above 64 bits", TypeError, "64 bits", lambda w: w.save(metadata={"a": [2**64]})),
    ("metadata that is a list", TypeError, "mapping", lambda w: w.save(metadata=[1])),  # type: ignore[arg-type]
    ("metadata nested too deeply", TypeError, "metadata", lambda w: w.save(metadata={"a": deep(100_000)})),
    ("a conversation nested too deeply", TypeError, "conversation", lambda w: w.save(conversation=deep(100_000))),
    ("a conversation of objects", TypeError, "conversation", lambda w: w.save(conversation=[object()])),
    ("attachments in a list", TypeError, "mapping", lambda w: w.save(attachments=[b"x"])),  # type: ignore[arg-type]
    ("a number as an attachment", TypeError, "'x'", lambda w: w.save(attachments={"x": 5})),  # type: ignore[dict-item]
    ("a negative step", UsageError, "step: ", lambda w: w.save(step=-1)),
    ("a step above 64 bits", UsageError, "step: ", lambda w: w.save(step=2**70)),
    ("a negative limit", UsageError, "limit: ", lambda w: w.list(-1)),
    ("a time that is a number", TypeError, "since", lambda w: w.list(since=5)),  # type: ignore[arg-type]
    ("a time out of range", UsageError, "since", lambda w: w.list(since=datetime.min)),
    ("an age out of range", UsageError, "older_than", lambda w: w.delete(older_than=datetime.min)),
    ("an empty path", UsageError, "path is empty", lambda w: w.restore("@", "")),
    ("an empty path among others", UsageError, "path is empty", lambda w: w.restore("@", ["a", ""])),
    ("an empty path to read", UsageError, "path is empty", lambda w: w.read("@", "")),
    ("a workspace with an empty path", UsageError, "path is empty", lambda w: Workspace("")),
    ("a workspace around an empty path", UsageError, "path is empty", lambda w: Workspace.around("")),
    ("settings in a list", TypeError, "settings", lambda w: Workspace(w.path, settings=[1])),  # type: ignore[arg-type]
    ("a negative wait", UsageError, "wait", lambda w: Workspace(w.path, wait=-1)),
    ("a wait that is NaN", UsageError, "wait", lambda w: Workspace(w.path, wait=math.nan)),
]


@pytest.mark.parametrize(("kind", "match", "call"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_arguments_are_refused(
    workspace: Workspace, project: Project, kind: type[Exception], match: str, call: Callable[[Workspace], object]
) -> None:
    project.write("a", "1")
    workspace.save("before")
    project.write("a", "2")
    with pytest.raises(kind, match=match):
        call(workspace)
    assert [checkpoint.message for checkpoint in workspace.list()] == ["before"] and project.read("a") == "2"
    assert workspace.save("after").created


def test_unusual_arguments_that_are_valid(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved: Saved = workspace.save(metadata={"most": 2**64 - 1, "least": -(2**63), "text": "ä\n"}, include=b"a")  # type: ignore[arg-type]
    assert saved.checkpoint.metadata == {"most": 2**64 - 1, "least": -(2**63), "text": "ä\n"}
    assert len(workspace.list(since=timedelta.max)) == 1 and workspace.list(since=timedelta(days=-1)) == []
    assert workspace.delete(older_than=timedelta.max) == []
    project.write("a", "2")
    assert workspace.restore(saved, b"a").applied and project.read("a") == "1"  # type: ignore[arg-type]
    assert Workspace(os.fsencode(project.path), wait=math.inf).save("again", allow_empty=True).created  # type: ignore[arg-type]


def test_a_renamed_workspace_directory(workspace: Workspace, project: Project, tmp_path: Path) -> None:
    project.write("a", "1")
    saved = workspace.save("first")
    project.path.rename(tmp_path / "elsewhere")
    for call in (workspace.save, workspace.status, workspace.diff, workspace.undo, workspace.prune):
        with pytest.raises(OSError, match=str(project.path)):
            call()
    assert workspace.list() == [saved.checkpoint] and workspace.read(saved, "a") == b"1" and workspace.verify().ok
    assert workspace.export(saved, tmp_path / "copy").files == 1 and (tmp_path / "copy/a").read_text() == "1"
    project.path.mkdir()
    with pytest.raises(UsageError, match="elsewhere"):
        workspace.restore(saved)
    shutil.rmtree(tmp_path / "elsewhere")
    assert workspace.restore(saved).applied and project.read("a") == "1"
