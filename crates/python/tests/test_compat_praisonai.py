from __future__ import annotations

import inspect
import json
import logging
from datetime import timezone
from pathlib import Path

import pytest
from conftest import Project

from backtrail import Workspace
from backtrail.compat.praisonai import (
    Checkpoint,
    CheckpointConfig,
    CheckpointDiff,
    CheckpointEvent,
    CheckpointResult,
    CheckpointService,
    FileDiff,
)


@pytest.fixture
async def service(project: Project, tmp_path: Path) -> CheckpointService:
    service = CheckpointService(str(project.path), str(tmp_path / "storage"))
    assert await service.initialize()
    return service


async def test_signatures() -> None:
    parameters = inspect.signature(CheckpointService).parameters
    assert list(parameters)[:8] == [
        "workspace_dir",
        "storage_dir",
        "enabled",
        "auto_checkpoint",
        "max_checkpoints",
        "user_name",
        "user_email",
        "max_file_size",
    ]
    assert parameters["max_checkpoints"].default == 100 and parameters["max_file_size"].default == 2 * 1024 * 1024
    for name in "initialize save restore rewind diff list_checkpoints get_checkpoint get_checkpoint_by_step".split():
        assert inspect.iscoroutinefunction(getattr(CheckpointService, name))
    for name in ("cleanup", "delete_all", "list", "get", "delete"):
        assert inspect.iscoroutinefunction(getattr(CheckpointService, name))
    assert str(CheckpointEvent.ERROR.value) == "error" and CheckpointEvent("initialized") is CheckpointEvent.INITIALIZED


async def test_save_101_removes_save_1(service: CheckpointService, project: Project) -> None:
    pruned: list[object] = []
    service.on(CheckpointEvent.CHECKPOINTS_PRUNED, pruned.append)
    mine = Workspace(project, settings={"stores": {"dir": Path(service.checkpoint_dir).parent}})
    project.write("a", "mine")
    kept = mine.save("not the service's own")
    for number in range(1, 102):
        project.write("a", str(number))
        assert (await service.save(f"save {number}")).success
    messages = [checkpoint.message for checkpoint in await service.list()]
    assert messages == [f"save {number}" for number in range(101, 1, -1)] + ["not the service's own"]
    assert pruned == [{"action": "pruned", "removed_count": 1}]
    assert mine.get(kept).id == kept.id
    assert len(await service.list_checkpoints()) == 50 and len(await service.list_checkpoints(limit=3)) == 3


async def test_calls_before_initialize_fail(project: Project, home: Path) -> None:
    service = CheckpointService(str(project.path))
    for result in (await service.save("x"), await service.restore("x"), await service.rewind()):
        assert (result.success, result.error) == (False, "Service not initialized")
    assert not await CheckpointService(str(project.path), enabled=False).initialize()
    assert not await CheckpointService("~").initialize()
    assert not await CheckpointService(str(project.path / "missing")).initialize()
    assert await service.initialize() and service.is_initialized
    await service.cleanup()
    assert not service.is_initialized


async def test_a_checkpoint_has_both_interfaces(service: CheckpointService, project: Project) -> None:
    project.write("a", "1\n")
    result = await service.save("first", metadata={"k": "v"})
    checkpoint = result.checkpoint
    assert isinstance(result, CheckpointResult) and isinstance(checkpoint, Checkpoint) and result
    assert result.id == checkpoint.id and result.message == "first"
    assert checkpoint.files_changed == ["a"] and checkpoint.files_changed == 1 and checkpoint.files_changed > 0
    assert 0 < checkpoint.files_changed <= 1 and int(checkpoint.files_changed) == 1
    assert checkpoint.metadata == {"k": "v"} and checkpoint.timestamp.tzinfo is timezone.utc
    assert json.loads(json.dumps(checkpoint.to_dict())) == {
        "id": checkpoint.id,
        "short_id": checkpoint.id[:8],
        "message": "first",
        "timestamp": checkpoint.timestamp.isoformat(),
        "files_changed": 1,
        "insertions": 1,
        "deletions": 0,
        "step": None,
    }
    with pytest.raises(AttributeError):
        CheckpointResult.fail("no").id  # noqa: B018
    made = Checkpoint.from_git_commit("a" * 40, "[step-3] x", "2026-01-02T03:04:05Z")
    assert made.step == 3 and made.short_id == "a" * 8 and made.timestamp.hour == 3
    assert CheckpointResult.ok(made).checkpoint is made


async def test_diff(service: CheckpointService, project: Project) -> None:
    project.write("a", "1\n")
    project.write("binary", b"\0\1")
    first = (await service.save("first")).id
    project.write("a", "1\n2\n")
    project.write("c", "new\n")
    project.write("empty/.keep", "")
    project.delete("binary")
    diff = await service.diff(first)
    assert isinstance(diff, CheckpointDiff) and diff.to_checkpoint is None and diff.to_id is None
    assert diff.from_checkpoint == first[:8] and diff.from_id == first
    files = {file.path: file for file in diff.files}
    assert isinstance(files["a"], FileDiff) and files["a"].status == "modified" and files["a"].additions == 1
    assert (files["a"].before_content, files["a"].after_content) == ("1\n", "1\n2\n")
    assert (files["c"].before_content, files["c"].after_content) == (None, "new\n")
    assert files["binary"].status == "deleted" and files["binary"].before_content is None
    assert files["a"].absolute_path == str(project.path / "a")
    assert diff.total_additions == 2 and diff.to_dict()["total_additions"] == 2
    assert (diff.added_files, diff.modified_files, diff.deleted_files) == (["c", "empty/.keep"], ["a"], ["binary"])
    second = (await service.save("second")).id
    assert (await service.diff(first, second)).diff_content == diff.diff_content
    assert (await service.diff()).from_id == first
    with pytest.raises(LookupError):
        await service.diff("nope")


async def test_rewind_and_steps(service: CheckpointService, project: Project) -> None:
    for number in range(4):
        project.write("a", str(number))
        assert (await service.save(f"[step-9] number {number}", step=number)).success
    found = await service.get_checkpoint_by_step(2)
    assert found is not None and found.message == "[step-2] number 2"
    assert await service.get_checkpoint_by_step(9) is None
    assert (await service.rewind()).success and project.read("a") == "2"
    assert (await service.rewind(2)).success and project.read("a") == "0"
    assert (await service.rewind()).error == "Cannot rewind 1 step(s): only 1 checkpoint(s) available"
    assert (await service.restore(step=3)).success and project.read("a") == "3"
    assert (await service.restore("x", step=3)).error == "Provide either checkpoint_id or step, not both"
    assert (await service.restore(step=7)).error == "No checkpoint found for step 7"
    for bad in (-1, True, "1"):
        assert (await service.save("x", step=bad)).error == "step must be a non-negative integer"  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        await service.restore(5)  # type: ignore[arg-type]


async def test_config_changes_take_effect_later(service: CheckpointService, project: Project) -> None:
    project.write("a.dat", "1")
    project.write("b", "1")
    service.config.exclude_patterns.append("*.dat")
    service.config.max_file_size = 10
    project.write("large", "x" * 11)
    saved = await service.save("first")
    assert saved.files_changed == ["b"]
    project.write("a.dat", "2")
    project.write("large", "y" * 12)
    project.write("b", "2")
    await service.restore(saved.id)
    assert project.files() == {"a.dat": b"2", "b": b"1", "large": b"y" * 12}


async def test_handlers(service: CheckpointService, project: Project, caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    async def later(data: Checkpoint) -> None:
        told.append(data.message)

    def fail(data: object) -> None:
        raise RuntimeError("no")

    service.on(CheckpointEvent.CHECKPOINT_CREATED, fail)
    service.on(CheckpointEvent.CHECKPOINT_CREATED, later)
    service.on(CheckpointEvent.CHECKPOINT_RESTORED, later)
    service.on(CheckpointEvent.ERROR, lambda data: told.append(data["error"]))
    project.write("a", "1")
    with caplog.at_level(logging.ERROR):
        first = await service.save("first")
    assert first.success and told == ["first"] and "a handler for checkpoint_created raised" in caplog.text
    project.write("a", "2")
    await service.restore(first)
    assert told[-1] == "first" and len(told) == 3
    assert not (await service.restore("nope")).success and "nope" in told[-1]


async def test_a_second_service_finds_and_deletes_the_store(
    service: CheckpointService, project: Project, tmp_path: Path
) -> None:
    project.write("a", "1")
    first = await service.save("first")
    assert Path(service.git_dir).parent == tmp_path / "storage" and (Path(service.git_dir) / "objects").is_dir()
    again = CheckpointService(config=CheckpointConfig(str(project.path), str(tmp_path / "storage")))
    assert await again.initialize()
    assert [checkpoint.id for checkpoint in await again.list()] == [first.id]
    assert (await again.get(first.id[:3])).id == first.id  # type: ignore[union-attr]
    assert await again.get("zzz") is None and await again.get("") is None
    assert not await again.delete("zzzz")
    assert await again.delete_all() and not Path(service.git_dir).exists() and not again.is_initialized


async def test_a_wrapped_tool_takes_a_checkpoint_before_each_call(service: CheckpointService, project: Project) -> None:
    project.write("a", "1")

    def write_file(path: str, content: str) -> str:
        """Writes a file."""
        project.write(path, content)
        return "done"

    async def write_later(path: str) -> str:
        project.write(path, "later")
        return "done"

    told: list[str] = []
    service.on(CheckpointEvent.CHECKPOINT_CREATED, lambda checkpoint: told.append(checkpoint.message))
    tool, later = service.wrap_tools([write_file, write_later])
    assert inspect.signature(tool) == inspect.signature(write_file) and tool.__doc__ == "Writes a file."
    assert tool("a", content="2") == "done" and await later("a") == "done"
    messages = [checkpoint.message for checkpoint in await service.list()]
    assert messages == ["before write_later", "before write_file"]
    assert sorted(told) == sorted(messages)
    await service.restore((await service.list())[-1].id)
    assert project.read("a") == "1"
    service.config.auto_checkpoint = False
    tool("b", "x")
    assert len(await service.list()) == 2


async def test_git_names_for_checkpoints(service: CheckpointService, project: Project) -> None:
    for number in range(3):
        project.write("a", str(number))
        await service.save(str(number))
    assert (await service.diff("HEAD~2", "HEAD^")).modified_files == ["a"]
    assert (await service.restore("HEAD~1")).success and project.read("a") == "1"
    assert (await service.restore("HEAD")).success and project.read("a") == "1"
    assert not (await service.restore("HEADS")).success


async def test_protected_directories_are_refused(home: Path, tmp_path: Path) -> None:
    from backtrail.compat.praisonai.service import PROTECTED_PATHS

    assert len(PROTECTED_PATHS) == 8
    (home / "Documents").mkdir()
    for path in ("/", "/tmp", "/var", "/etc", str(home), str(home / "Documents")):
        assert not await CheckpointService(path, str(tmp_path / "storage")).initialize()
