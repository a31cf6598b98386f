from __future__ import annotations

import asyncio
import dataclasses
import re
from datetime import datetime
from pathlib import Path

import pytest
from conftest import Project

from backtrail import FeatureCheckpointError, UnknownCheckpointError, UsageError, Workspace
from backtrail.compat import architect, checkpoint_manager, fabricatio
from backtrail.compat.checkpoint_manager import CheckpointType


class TestArchitect:
    def test_a_subdirectory_is_a_workspace(self, project: Project) -> None:
        project.git("init", "-q")
        project.write("sub/a", "1")
        project.write("b", "1")
        manager = architect.CheckpointManager(str(project.path / "sub"))
        checkpoint = manager.create(1)
        assert checkpoint is not None and checkpoint.files_changed == ["a"] and checkpoint.message == ""
        assert checkpoint.short_hash() == checkpoint.commit_hash[:7]
        project.write("sub/a", "2")
        project.write("b", "2")
        assert manager.rollback(step=1)
        assert project.files() == {"sub/a": b"1", "b": b"2"}
        assert project.git("status", "--porcelain") == "?? b\n?? sub/\n"

    def test_only_own_checkpoints_are_listed(self, project: Project) -> None:
        manager = architect.CheckpointManager(str(project.path))
        project.write("a", "1")
        Workspace(project).save("not its own: architect:checkpoint")
        assert manager.list_checkpoints() == [] and manager.get_latest() is None
        project.write("a", "2")
        Workspace(project).save("architect:checkpoint:implement")
        assert [(one.step, one.message) for one in manager.list_checkpoints()] == [(0, "")]

    def test_rollback_uses_the_newest_checkpoint_of_a_step(self, project: Project) -> None:
        manager = architect.CheckpointManager(str(project.path))
        for content in ("1", "2"):
            project.write("a", content)
            manager.create(5)
        project.write("a", "3")
        assert manager.rollback(step=5) and project.read("a") == "2"

    def test_invalid_arguments(self, project: Project) -> None:
        manager = architect.CheckpointManager(str(project.path))
        project.write("a", "1")
        with pytest.raises(TypeError):
            manager.create("1")  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            manager.create(-1)
        with pytest.raises(LookupError):
            manager.has_changes_since("0" * 40)
        checkpoint = manager.create(1)
        assert checkpoint is not None
        with pytest.raises(dataclasses.FrozenInstanceError):
            checkpoint.step = 2  # type: ignore[misc]


class TestFabricatio:
    def test_the_mixin(self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fabricatio, "_service", fabricatio.CheckpointService(tmp_path / "stores"))

        class Agent(fabricatio.Checkpoint):
            pass

        project.write("a", "1")
        agent = Agent(worktree_dir=project.path)
        with pytest.raises(ValueError, match="not mounted"):
            agent.save_checkpoint()
        assert agent.mount_checkpoint_store() is agent
        first = agent.save_checkpoint("first")
        project.write("a", "2")
        second = agent.save_checkpoint()
        assert "+2" in agent.get_file_diff(second, "a")
        agent.rollback(first, "a")
        assert project.read("a") == "1"
        agent.reset_to_checkpoint(second)
        assert project.read("a") == "2"
        store = agent.access_checkpoint_store()
        agent.unmount_checkpoint_store()
        assert agent.access_checkpoint_store(store) is store

    def test_checkpoints_of_deleted_directories_are_pruned(self, project: Project, tmp_path: Path) -> None:
        service = fabricatio.CheckpointService(tmp_path / "stores")
        for name in ("one", "two", "kept"):
            (tmp_path / name).mkdir()
            service.get_store(tmp_path / name).save()
        (tmp_path / "one").rmdir()
        service.prune_invalid()
        assert service.workspaces() == [tmp_path / "kept", tmp_path / "two"]
        (tmp_path / "two").rmdir()
        fabricatio.prune_stores(str(tmp_path / "stores"))
        assert service.workspaces() == [tmp_path / "kept"]

    def test_missing_checkpoints_files_and_directories(self, project: Project, tmp_path: Path) -> None:
        store = fabricatio.CheckpointService(str(tmp_path / "new/stores")).get_store(project)
        assert store.commits() == [] and "project" in repr(store)
        with pytest.raises(RuntimeError, match="no checkpoint of"):
            store.head()
        project.write("a", "1")
        first = store.save()
        store.reset("HEAD")
        assert store.get_file_diff(first, "missing") == "" and store.get_status() == []
        with pytest.raises(RuntimeError, match="missing"):
            store.rollback(first, "missing")
        with pytest.raises(TypeError):
            store.reset(5)  # type: ignore[arg-type]
        with pytest.raises(OSError):
            fabricatio.CheckpointService(tmp_path / "stores").get_store(tmp_path / "nowhere")

    def test_rollback_removes_a_file_that_did_not_exist(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = fabricatio.CheckpointService(tmp_path / "stores").get_store(project)
        project.write("sub/a", "1")
        first = store.save()
        project.write("sub/b", "1")
        store.save()
        monkeypatch.chdir(project.path / "sub")
        store.rollback(first, "b")
        assert project.files() == {"sub/a": b"1"}
        target = project.write("target", "keep me")
        (project.path / "link").symlink_to("target")
        second = store.save()
        (project.path / "link").unlink()
        (project.path / "link").symlink_to("sub/a")
        store.rollback(second, "link")
        assert (project.path / "link").readlink() == Path("target") and target.read_text() == "keep me"

    def test_config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert fabricatio._load_config() == fabricatio.CheckpointConfig(Path.home() / ".fabricatio-checkpoint", 100)
        monkeypatch.setenv("FABRICATIO_EXT__CHECKPOINT__CHECKPOINT_DIR", str(tmp_path / "x"))
        monkeypatch.setenv("FABRICATIO_EXT__CHECKPOINT__CACHE_SIZE", "7")
        assert fabricatio._load_config() == fabricatio.CheckpointConfig(tmp_path / "x", 7)
        monkeypatch.setattr(fabricatio, "checkpoint_config", fabricatio._load_config())
        monkeypatch.setattr(fabricatio, "_service", None)
        service = fabricatio.get_checkpoint_service()
        assert service is fabricatio.get_checkpoint_service() and service.workspaces() == []
        with pytest.raises(AttributeError):
            fabricatio.nothing  # noqa: B018


class TestCheckpointManager:
    async def test_types_and_retention(self, project: Project) -> None:
        manager = checkpoint_manager.CheckpointManager(project.path)
        for kind, count in (("automatic", 7), ("session", 5), ("feature", 2), ("manual", 2)):
            for number in range(count):
                project.write("a", f"{kind} {number}")
                await manager.create_checkpoint(f"{kind} {number}", checkpoint_type=CheckpointType(kind))
        kept = {kind: len(await manager.list_checkpoints(kind)) for kind in CheckpointType}
        assert kept == {
            CheckpointType.AUTOMATIC: 5,
            CheckpointType.SESSION: 3,
            CheckpointType.FEATURE: 2,
            CheckpointType.MANUAL: 2,
        }
        ids = {checkpoint.id for checkpoint in await manager.list_checkpoints()}
        assert {path.name for path in manager.checkpoints_dir.glob("checkpoint-*")} == ids

    async def test_ids_within_one_second_are_unique(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
                return datetime(2026, 1, 2, 3, 4, 5, 678)

        monkeypatch.setattr(checkpoint_manager, "datetime", Clock)
        manager = checkpoint_manager.CheckpointManager(str(project.path))
        made = await asyncio.gather(*(manager.create_checkpoint(f"{n}") for n in range(4)))
        assert sorted(checkpoint.id for checkpoint in made) == [
            "checkpoint-20260102-030405",
            "checkpoint-20260102-030405-2",
            "checkpoint-20260102-030405-3",
            "checkpoint-20260102-030405-4",
        ]
        assert {checkpoint.timestamp for checkpoint in made} == {"2026-01-02T03:04:05"}
        for checkpoint in made:
            assert (project.path / checkpoint.feature_state.snapshot_path).read_text() == "{}\n"

    async def test_git_context_and_uncommitted_work(self, project: Project) -> None:
        project.git("init", "-q", "-b", "main")
        project.write(".gitignore", "feature_list.json\n")
        project.write("a", "1")
        project.git("add", "-A")
        project.git("commit", "-q", "-m", "one")
        project.write("a", "dirty")
        project.write("feature_list.json", '[{"id": "f-1", "passes": true}, {"id": "f-2", "passes": false}]')
        manager = checkpoint_manager.CheckpointManager(project.path)
        checkpoint = await manager.create_checkpoint(
            "x", "y", "feature", session_number=5, token_usage=45000, context={"model": "m"}
        )
        assert re.fullmatch("[0-9a-f]{40}", checkpoint.git_state.commit_hash)
        assert (checkpoint.git_state.branch, checkpoint.git_state.dirty_files) == ("main", ["a"])
        assert checkpoint.feature_state.completed == ["f-1"]
        assert checkpoint.context == {"model": "m", "session_number": 5, "token_usage": 45000}
        assert await manager.get_checkpoint(checkpoint.id) == checkpoint
        project.git("commit", "-q", "-a", "-m", "two")
        later = project.git("rev-parse", "HEAD").strip()
        project.write("a", "3")
        project.delete("feature_list.json")
        assert await manager.rollback(checkpoint)
        assert project.read("a") == "dirty" and "f-2" in project.read("feature_list.json")
        assert project.git("rev-parse", "HEAD").strip() == later and project.git("status", "--porcelain") == ""
        await manager.rollback(checkpoint.id, git=True)
        assert project.git("rev-parse", "HEAD").strip() == checkpoint.git_state.commit_hash
        with pytest.raises(FeatureCheckpointError):
            await manager.delete_checkpoint(checkpoint.id)
        assert await manager.delete_checkpoint(checkpoint.id, force=True)
        assert not await manager.delete_checkpoint(checkpoint.id)
        assert list(manager.checkpoints_dir.glob("checkpoint-*")) == []

    async def test_missing_checkpoints_files_and_directories(self, project: Project) -> None:
        manager = checkpoint_manager.CheckpointManager(project.path)
        assert not await manager.rollback_to_latest() and await manager.get_checkpoint("x") is None
        with pytest.raises(UnknownCheckpointError, match="checkpoint-1"):
            await manager.rollback("checkpoint-1")
        with pytest.raises(TypeError):
            await manager.rollback(5)  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            await manager.create_checkpoint("x", checkpoint_type="sometimes")
        assert not manager.checkpoints_dir.exists()
