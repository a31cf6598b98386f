from __future__ import annotations

import dataclasses
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


def test_values_that_json_can_not_represent_are_refused(workspace: Workspace) -> None:
    loop: list[Any] = []
    loop.append(loop)
    for conversation in (object(), [{1, 2}], loop):
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
