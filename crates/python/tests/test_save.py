from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from conftest import Project

from backtrail import ProtectedDirectoryError, SettingsError, UnknownPathError, UsageError, Workspace


def test_save_returns_the_record(workspace: Workspace, project: Project) -> None:
    project.write("a.txt", "one\n")
    before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
    saved = workspace.save(
        "first",
        name="start",
        description="more",
        kind="feature",
        step=7,
        session="s",
        session_number=5,
        tokens=45000,
        agent="me",
        turn=2,
        prompt="do it",
        tool="edit",
        metadata={"a": [1, {"b": None}], "c": 1.5, "d": True},
        attachments={"log": b"\x00\xff", "text": "täxt"},
    )
    checkpoint = saved.checkpoint
    assert saved.created and saved.id == checkpoint.id and len(saved.id) == 40
    assert (checkpoint.message, checkpoint.name, checkpoint.description) == ("first", "start", "more")
    assert (checkpoint.kind, checkpoint.step, checkpoint.session, checkpoint.agent) == ("feature", 7, "s", "me")
    assert (checkpoint.turn, checkpoint.prompt, checkpoint.tool) == (2, "do it", "edit")
    assert checkpoint.context is not None
    assert (checkpoint.context.session_number, checkpoint.context.token_usage) == (5, 45000)
    assert checkpoint.metadata == {"a": [1, {"b": None}], "c": 1.5, "d": True}
    assert checkpoint.files_changed == ["a.txt"] and checkpoint.insertions == 1
    assert checkpoint.parent is None and checkpoint.complete and not checkpoint.pinned
    assert before <= checkpoint.timestamp <= datetime.now(timezone.utc)
    assert {a.name: a.bytes for a in checkpoint.attachments} == {"log": 2, "text": 5}
    assert workspace.attachment(saved, "log") == b"\x00\xff"
    assert workspace.attachment("start", "text").decode() == "täxt"
    assert workspace.get(saved) == checkpoint and hash(workspace.get(saved)) == hash(checkpoint)


def test_save_without_changes_makes_no_checkpoint(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    first = workspace.save("first")
    again = workspace.save("again")
    assert not again.created and again.checkpoint == first.checkpoint
    assert workspace.save("empty", allow_empty=True).created


def test_if_changed(workspace: Workspace, project: Project) -> None:
    first = workspace.save("first", step=1, if_changed=True)
    assert first.created
    again = workspace.save("again", step=2, metadata={"a": 1}, if_changed=True)
    assert not again.created and again.id == first.id and len(workspace.list()) == 1
    project.write("a", "1")
    assert workspace.save("changed", step=2, if_changed=True).checkpoint.step == 2
    with pytest.raises(UsageError):
        workspace.save(allow_empty=True, if_changed=True)


def test_save_returns_skipped_paths(project: Project) -> None:
    project.write("big", "x" * 100)
    saved = Workspace(project, settings={"scan": {"max_file_bytes": 10}}).save()
    assert [(skipped.path, skipped.reason) for skipped in saved.skipped] == [("big", "too large")]


def test_include_captures_ignored_files(workspace: Workspace, project: Project) -> None:
    project.write(".gitignore", "*.log\n")
    project.write("a.log", "1")
    assert workspace.save().checkpoint.files_changed == [".gitignore"]
    assert "a.log" in workspace.save(include=["a.log"]).checkpoint.files_changed
    with pytest.raises(UnknownPathError, match="missing"):
        workspace.save(include=[project.path / "missing"])


def test_steps_are_counted_and_take_checkpoints_when_due(project: Project) -> None:
    workspace = Workspace(project, settings={"checkpoints": {"every_n_steps": 2}})
    project.write(".gitignore", "secret\n")
    project.write("a", "1")
    project.write("secret", "s")
    workspace.save()
    project.write("a", "2")
    first = workspace.step("session")
    assert (first.step, first.created, first.checkpoint) == (1, False, None)
    second = workspace.step("session", message="edit a", tool="edit")
    assert second.step == 2 and second.created and second.checkpoint is not None
    assert (second.checkpoint.kind, second.checkpoint.tool, second.checkpoint.step) == ("step", "edit", 2)
    third = workspace.step("session", touching=["secret"])
    assert third.step == 3 and third.checkpoint is not None and "secret" in third.checkpoint.files_changed
    assert workspace.step("another").step == 1


def test_settings_override_the_settings_file(project: Project, tmp_path: Path) -> None:
    project.write("backtrail.toml", '[scan]\nexclude = ["a"]\n')
    project.write("a", "1")
    project.write("b", "1")
    workspace = Workspace(project)
    assert workspace.save().checkpoint.files_changed == ["b", "backtrail.toml"]
    Workspace(project, settings={"scan": {"exclude": ["b"]}}).save()
    workspace.export("@", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "backtrail.toml"]


def test_exclude_adds_to_the_settings_file(project: Project) -> None:
    project.write("backtrail.toml", '[scan]\nexclude = ["a"]\n')
    project.write("a", "1")
    project.write("b", "1")
    assert Workspace(project, exclude=["b"]).save().checkpoint.files_changed == ["backtrail.toml"]
    with pytest.raises(TypeError, match="exclude"):
        Workspace(project, exclude="b")


def test_errors_in_settings_name_the_key(project: Project) -> None:
    with pytest.raises(UsageError, match="exlude"):
        Workspace(project, settings={"scan": {"exlude": []}})
    workspace = Workspace(project)
    project.write("a", "1")
    saved = workspace.save()
    project.write("backtrail.toml", "[scan]\nexlude = []\n")
    with pytest.raises(SettingsError, match="exlude"):
        workspace.save()
    with pytest.warns(UserWarning, match="exlude"):
        restored = workspace.restore(saved)
    assert restored.applied and "backtrail.toml" not in project.files()


def test_the_location_of_the_store_can_be_set(project: Project, tmp_path: Path) -> None:
    project.write("a", "1")
    workspace = Workspace(project, tmp_path / "elsewhere")
    assert not workspace.store.exists()
    workspace.save()
    assert workspace.store == tmp_path / "elsewhere" and (tmp_path / "elsewhere/objects").is_dir()
    below = Workspace(project, settings={"stores": {"dir": tmp_path / "stores"}})
    below.save()
    assert below.store.parent == tmp_path / "stores"


def test_around_finds_the_workspace_of_a_path(project: Project) -> None:
    project.write("src/deep/a", "1")
    Workspace(project).save()
    assert Workspace.around(project.path / "src/deep").path == project.path


def test_the_home_directory_is_refused(home: Path) -> None:
    (home / "a").write_text("1")
    with pytest.raises(ProtectedDirectoryError, match="force=True") as caught:
        Workspace(home).save()
    assert caught.value.code == "protected_directory"
    assert Workspace(home, force=True).save().created


def test_init_creates_the_store_once(workspace: Workspace) -> None:
    assert workspace.init()
    assert not workspace.init()
    assert workspace.current() is None and workspace.list() == []


def test_unusual_file_names_are_kept(workspace: Workspace, project: Project) -> None:
    import os

    names = ["späce 名", "new\nline", '"quoted"', "-dash", os.fsdecode(b"caf\xe9")]
    for name in names:
        project.write(name, name.encode("utf-8", "surrogateescape"))
    saved = workspace.save()
    assert sorted(saved.checkpoint.files_changed) == sorted(names)
    for name in names:
        assert workspace.read(saved, name) == os.fsencode(name)
    changes = {change.path: change.to_dict() for change in workspace.show(saved).changes}
    assert changes[names[-1]]["path"] == "caf\ufffd" and changes[names[-1]]["path_base64"] == "Y2Fm6Q=="
    assert "path_base64" not in changes["-dash"]
