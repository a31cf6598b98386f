from __future__ import annotations

import logging

import pytest
from conftest import Project

from backtrail import CallbackError, Event, Saved, UnknownCheckpointError, UsageError, Workspace


def test_every_event_is_reported(project: Project) -> None:
    workspace = Workspace(project, settings={"retention": {"step": 1}})
    told: list[Event] = []
    names = ["initialized", "checkpoint_created", "checkpoint_restored", "checkpoint_deleted", "checkpoints_pruned"]
    for name in [*names, "error"]:
        workspace.on(name, told.append)  # type: ignore[arg-type]
    project.write("a", "1")
    first = workspace.save("first")
    assert [event.event for event in told] == ["initialized", "checkpoint_created"]
    assert told[1].checkpoint == first.id and told[1].details == {"kind": "manual", "message": "first"}
    assert told[1].time >= first.checkpoint.timestamp
    project.write("a", "2")
    del told[:]
    restored = workspace.restore(first)
    assert [event.event for event in told] == ["checkpoint_created", "checkpoint_restored"]
    assert told[1].checkpoint == first.id and told[1].details == {"safety": restored.safety}
    del told[:]
    steps = []
    for number in range(2):
        project.write("a", f"step {number}")
        steps.append(workspace.save(kind="step").id)
    assert [event.event for event in told] == ["checkpoint_created", "checkpoint_created", "checkpoints_pruned"]
    assert told[2].details == {"checkpoints": [steps[0]]}
    del told[:]
    workspace.delete(first)
    with pytest.raises(UnknownCheckpointError):
        workspace.restore(first)
    assert [event.event for event in told] == ["checkpoint_deleted", "error"]
    assert told[1].details["code"] == "unknown_checkpoint"
    kept = workspace.events()
    assert kept[0].event == "initialized" and kept[-1].event == "checkpoint_deleted"
    assert kept[-1].to_dict()["checkpoint"] == first.id


def test_a_callback_may_use_the_workspace_and_be_removed(workspace: Workspace, project: Project) -> None:
    seen: list[str] = []
    remove = workspace.on("checkpoint_created", lambda event: seen.append(workspace.get(event.checkpoint or "").message))
    project.write("a", "1")
    workspace.save("first")
    remove()
    remove()
    project.write("a", "2")
    workspace.save("second")
    assert seen == ["first"]


def test_a_callback_that_raises(workspace: Workspace, project: Project, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("telemetry is down")

    workspace.on("checkpoint_created", fail)
    workspace.on("checkpoint_created", told.append)
    workspace.on("error", fail)
    project.write("a", "1")
    with pytest.raises(CallbackError, match="telemetry is down") as caught:
        workspace.save("first")
    assert isinstance(caught.value.__cause__, RuntimeError) and caught.value.code == "callback"
    assert isinstance(caught.value.result, Saved) and caught.value.result.created
    assert workspace.get("@").message == "first" and len(told) == 1 and workspace.verify()
    # The failure of the operation takes precedence over that of the callback.
    with caplog.at_level(logging.ERROR, "backtrail"), pytest.raises(UnknownCheckpointError):
        workspace.restore("nope")
    assert "a callback for error raised" in caplog.text


def test_unknown_events_and_callbacks_are_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="checkpoint_created"):
        workspace.on("saved", print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callback"):
        workspace.on("error", None)  # type: ignore[arg-type]
