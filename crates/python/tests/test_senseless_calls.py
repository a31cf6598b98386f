"""Calls that make no sense: each is refused by name, and nothing is lost or made."""

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

HALF = "\ud800"
"""Half a character, as a cut answer of a model can end with."""


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize("word", [5, None, b"abc", 1.5, True, ["a"], Path("a")])
def test_ids_are_text(workspace: Workspace, project: Project, word: Any) -> None:
    workspace.save(allow_empty=True)
    for call in (workspace.get, workspace.show, workspace.restore, workspace.pin, workspace.delete, workspace.patch):
        with pytest.raises(TypeError, match=f"not by {type(word).__name__}"):
            call(word)


REFUSED: list[tuple[str, type[Exception], str, Callable[[Workspace], object]]] = [
    ("an id with half a character", UsageError, "half a character", lambda w: w.get(HALF)),
    ("a message with half a character", UsageError, "message: .*surrogates", lambda w: w.save("x" + HALF)),
    ("a prompt with half a character", UsageError, "prompt: ", lambda w: w.step("s", prompt=HALF)),
    ("an attachment with half a character", UsageError, "'x'", lambda w: w.save(attachments={"x": HALF})),
    ("metadata with half a character", TypeError, "metadata", lambda w: w.save(metadata={"a": HALF})),
    ("metadata that is no number", TypeError, "metadata", lambda w: w.save(metadata={"a": math.nan})),
    ("metadata too large for a number", TypeError, "64 bits", lambda w: w.save(metadata={"a": [2**64]})),
    ("metadata that is a list", TypeError, "mapping", lambda w: w.save(metadata=[1])),  # type: ignore[arg-type]
    ("metadata without an end", TypeError, "metadata", lambda w: w.save(metadata={"a": deep(100_000)})),
    ("a conversation without an end", TypeError, "conversation", lambda w: w.save(conversation=deep(100_000))),
    ("a conversation of objects", TypeError, "conversation", lambda w: w.save(conversation=[object()])),
    ("a conversation of bytes", TypeError, "conversation", lambda w: w.save(conversation=[b"x"])),
    ("attachments in a list", TypeError, "mapping", lambda w: w.save(attachments=[b"x"])),  # type: ignore[arg-type]
    ("a number as an attachment", TypeError, "'x'", lambda w: w.save(attachments={"x": 5})),  # type: ignore[dict-item]
    ("a step below zero", UsageError, "step: ", lambda w: w.save(step=-1)),
    ("a step of many digits", UsageError, "step: ", lambda w: w.save(step=2**70)),
    ("a limit below zero", UsageError, "limit: ", lambda w: w.list(-1)),
    ("a moment that is a number", TypeError, "since", lambda w: w.list(since=5)),  # type: ignore[arg-type]
    ("a moment before all time", UsageError, "since", lambda w: w.list(since=datetime.min)),
    ("an age before all time", UsageError, "older_than", lambda w: w.delete(older_than=datetime.min)),
    ("an empty path", UsageError, "path is empty", lambda w: w.restore("@", "")),
    ("an empty path among others", UsageError, "path is empty", lambda w: w.restore("@", ["a", ""])),
    ("an empty path to read", UsageError, "path is empty", lambda w: w.read("@", "")),
    ("a workspace without a path", UsageError, "path is empty", lambda w: Workspace("")),
    ("a workspace around nothing", UsageError, "path is empty", lambda w: Workspace.around("")),
    ("settings in a list", TypeError, "settings", lambda w: Workspace(w.path, settings=[1])),  # type: ignore[arg-type]
    ("a wait below zero", UsageError, "wait", lambda w: Workspace(w.path, wait=-1)),
    ("a wait that is no number", UsageError, "wait", lambda w: Workspace(w.path, wait=math.nan)),
]


@pytest.mark.parametrize(("kind", "match", "call"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(
    workspace: Workspace, project: Project, kind: type[Exception], match: str, call: Callable[[Workspace], object]
) -> None:
    project.write("a", "1")
    workspace.save("before")
    project.write("a", "2")
    with pytest.raises(kind, match=match):
        call(workspace)
    assert [checkpoint.message for checkpoint in workspace.list()] == ["before"] and project.read("a") == "2"
    assert workspace.save("after").created


def test_odd_calls_that_make_sense(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved: Saved = workspace.save(metadata={"most": 2**64 - 1, "least": -(2**63), "text": "ä\n"}, include=b"a")  # type: ignore[arg-type]
    assert saved.checkpoint.metadata == {"most": 2**64 - 1, "least": -(2**63), "text": "ä\n"}
    assert len(workspace.list(since=timedelta.max)) == 1 and workspace.list(since=timedelta(days=-1)) == []
    assert workspace.delete(older_than=timedelta.max) == []
    project.write("a", "2")
    assert workspace.restore(saved, b"a").applied and project.read("a") == "1"  # type: ignore[arg-type]
    assert Workspace(os.fsencode(project.path), wait=math.inf).save("again", allow_empty=True).created  # type: ignore[arg-type]


def test_a_workspace_that_vanishes(workspace: Workspace, project: Project, tmp_path: Path) -> None:
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
