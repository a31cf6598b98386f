from __future__ import annotations

import dataclasses
import enum
import uuid
from collections import deque
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from backtrail import UsageError, Workspace

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "add tests – bitte"},
    {"role": "assistant", "content": [{"type": "tool_use", "input": {"path": "a"}}], "usage": {"tokens": 12, "x": None}},
]


def test_restore_returns_the_conversation_with_the_files(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    first = workspace.save("one", conversation=MESSAGES[:1])
    project.write("a", "2")
    second = workspace.save("two", conversation=MESSAGES)
    restored = workspace.restore(first)
    assert restored.conversation == MESSAGES[:1] and project.read("a") == "1"
    assert workspace.conversation(second) == MESSAGES
    assert workspace.restore(second).conversation == MESSAGES
    assert workspace.rewind().conversation == MESSAGES[:1]
    assert "conversation" not in restored.to_dict()


def test_undo_and_redo_return_the_conversation(workspace: Workspace, project: Project) -> None:
    assert workspace.undo().conversation is None
    project.write("a", "1")
    first = workspace.save("one", conversation=["first"])
    project.write("a", "2")
    workspace.save("two", conversation=["second"])
    project.write("a", "not saved")
    workspace.restore(first)
    undone = workspace.undo()
    assert undone.conversation == ["second"] and project.read("a") == "not saved"
    assert workspace.redo().conversation == ["first"] and project.read("a") == "1"
    assert not workspace.redo().applied and workspace.redo().conversation is None


def test_a_conversation_alone_makes_a_checkpoint(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    workspace.save()
    assert workspace.save(conversation=[]).created
    assert workspace.conversation("@") == [] and workspace.conversation("@~1") is None
    assert workspace.restore("@~1").conversation is None


def test_dataclasses_and_pydantic_models_become_dictionaries(workspace: Workspace) -> None:
    @dataclasses.dataclass
    class Message:
        role: str
        text: str

    class Model:
        def model_dump(self, mode: str) -> dict[str, str]:
            return {"role": "assistant", "mode": mode}

    workspace.save(conversation=(Message("user", "hi"), Model()))
    assert workspace.conversation("@") == [{"role": "user", "text": "hi"}, {"role": "assistant", "mode": "json"}]


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Everything:
    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    day: date = date(2026, 1, 2)
    took: timedelta = timedelta(seconds=1.5)
    id: uuid.UUID = uuid.UUID(int=7)
    color: Color = Color.RED
    path: Path = Path("src/main.py")
    raw: bytes = b"\xff\xfe>"
    cost: Decimal = Decimal("0.10")
    tags: frozenset[str] = frozenset({"b", "a"})
    pair: tuple[int, str] = (1, "x")


PLAIN = {
    "at": "2026-01-02T03:04:05+00:00",
    "day": "2026-01-02",
    "took": 1.5,
    "id": "00000000-0000-0000-0000-000000000007",
    "color": "red",
    "path": "src/main.py",
    "raw": "__4-",
    "cost": "0.10",
    "tags": ["a", "b"],
    "pair": [1, "x"],
}


def test_values_in_messages_become_text(workspace: Workspace) -> None:
    @dataclasses.dataclass
    class Outer:
        parts: list[Everything]

    workspace.save(conversation=[Everything(), Outer([Everything()]), {"deep": deque([Everything()])}])
    assert workspace.conversation("@") == [PLAIN, {"parts": [PLAIN]}, {"deep": [PLAIN]}]


def test_keys_become_text(workspace: Workspace) -> None:
    keyed = {Color.RED: Path("a"), uuid.UUID(int=7): [{date(2026, 1, 2): {1, 2}}], 5: None, None: (Color.RED,), (1, 2): 3}
    workspace.save(conversation=keyed)
    assert workspace.conversation("@") == {
        "red": "a",
        "00000000-0000-0000-0000-000000000007": [{"2026-01-02": [1, 2]}],
        "5": None,
        "null": ["red"],
        "(1, 2)": 3,
    }


def test_pydantic_models_that_hold_these_values(workspace: Workspace) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        everything: Everything
        raw: bytes
        id: uuid.UUID
        any: Any = None

    text = Model(everything=Everything(raw=b"a"), raw=b"text", id=uuid.UUID(int=7))
    workspace.save(conversation=[text])
    assert Model.model_validate(workspace.conversation("@")[0]) == text
    binary = Model(everything=Everything(), raw=b"\xff\xfe>", id=uuid.UUID(int=7), any=Color.RED)
    workspace.save(conversation=[binary])
    found = workspace.conversation("@")[0]
    assert found["everything"] == PLAIN and found["raw"] == "__4-" and found["any"] == "red"


def test_values_that_json_can_not_represent_are_refused(workspace: Workspace) -> None:
    loop: list[Any] = []
    loop.append(loop)
    for conversation in (object(), [{"key": object()}], {object(): 1}, loop):
        with pytest.raises(TypeError, match="conversation"):
            workspace.save(conversation=conversation)
    with pytest.raises(TypeError, match="metadata"):
        workspace.save(metadata={"x": object()})
    with pytest.raises(TypeError, match="attachment"):
        workspace.save(attachments={"x": 5})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="'conversation.json' is reserved"):
        workspace.save(conversation=[], attachments={"conversation.json": b""})
    assert workspace.list() == []


def test_an_unreadable_conversation_is_a_warning(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved = workspace.save(attachments={"conversation.json": b"not json"})
    project.write("a", "2")
    with pytest.warns(UserWarning, match="conversation"):
        restored = workspace.restore(saved)
    assert restored.applied and restored.conversation is None and project.read("a") == "1"
