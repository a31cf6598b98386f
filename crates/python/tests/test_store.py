from __future__ import annotations

import copy
import pickle
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from conftest import Project

from backtrail import FeatureCheckpointError, UnknownCheckpointError, UsageError, Workspace


def save(workspace: Workspace, project: Project, number: int, **about: object) -> str:
    project.write("a", str(number))
    return workspace.save(str(number), **about).id  # type: ignore[arg-type]


def test_delete(workspace: Workspace, project: Project) -> None:
    ids = [save(workspace, project, number) for number in range(3)]
    feature = save(workspace, project, 4, kind="feature")
    assert workspace.delete(ids[0], ids[1]) == ids[:2]
    with pytest.raises(UnknownCheckpointError):
        workspace.get(ids[0])
    with pytest.raises(FeatureCheckpointError, match="force=True"):
        workspace.delete(feature)
    assert workspace.delete(feature, force=True) == [feature]
    assert workspace.delete() == []


def test_delete_older_than(workspace: Workspace, project: Project) -> None:
    ids = [save(workspace, project, number) for number in range(3)]
    step = save(workspace, project, 3, kind="step")
    feature = save(workspace, project, 4, kind="feature")
    current = save(workspace, project, 5)
    workspace.pin(ids[2])
    assert workspace.delete(older_than=timedelta(hours=1)) == []
    a_while_ago = workspace.get(ids[0]).timestamp - timedelta(seconds=1)
    assert workspace.delete(older_than=a_while_ago) == []
    assert workspace.delete(older_than=timedelta(), kind="step") == [step]
    # The current checkpoint, the pinned one and the feature checkpoint are kept.
    assert sorted(workspace.delete(older_than=timedelta())) == sorted(ids[:2])
    assert {one.id for one in workspace.list()} == {ids[2], feature, current}
    assert workspace.delete(older_than=datetime.now(timezone.utc), force=True) == [feature]
    with pytest.raises(UsageError, match="not both"):
        workspace.delete(current, older_than=timedelta())
    with pytest.raises(UsageError, match="older_than"):
        workspace.delete(kind="step")
    with pytest.raises(UsageError, match="future"):
        workspace.delete(older_than=timedelta(seconds=-1))
    with pytest.raises(TypeError, match="older_than"):
        workspace.delete(older_than="7d")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kind"):
        workspace.delete(older_than=timedelta(), kind="nope")  # type: ignore[arg-type]
    assert {one.id for one in workspace.list()} == {ids[2], current}


def test_prune_keeps_pinned_checkpoints(project: Project) -> None:
    workspace = Workspace(project, settings={"retention": {"step": 100}})
    ids = [save(workspace, project, number, kind="step") for number in range(6)]
    assert workspace.pin(ids[0]).pinned and workspace.get(ids[0]).pinned
    strict = Workspace(project, settings={"retention": {"step": 2}})
    verdicts = {verdict.id: verdict for verdict in strict.plan_prune()}
    assert verdicts[ids[0]].keep and "pinned" in verdicts[ids[0]].reason and not verdicts[ids[1]].keep
    pruned = strict.prune()
    assert sorted(pruned.deleted) == sorted(ids[1:4]) and pruned.kept == 3
    assert pruned.bytes_before > 0 and pruned.bytes_after > 0
    assert not strict.unpin(ids[0]).pinned
    assert strict.prune().deleted == [ids[0]]


def test_prune_returns_limits_that_were_not_applied(project: Project) -> None:
    workspace = Workspace(project, settings={"retention": {"max_bytes": 1}})
    kept = [save(workspace, project, number) for number in range(3)]
    pruned = workspace.prune()
    assert pruned.deleted == [] and pruned.kept == len(kept)
    (limit,) = pruned.not_applied
    assert limit.key == "max_bytes" and "may not remove" in limit.reason
    assert pruned.to_dict()["not_applied"] == [limit.to_dict()] == [{"key": "max_bytes", "reason": limit.reason}]


def test_verify_finds_damage(workspace: Workspace, project: Project) -> None:
    save(workspace, project, 1)
    sound = workspace.verify()
    assert sound and sound.ok and sound.checkpoints == 1 and sound.damaged == []
    pack = next(workspace.store.glob("objects/pack/*.pack"))
    pack.chmod(0o600)
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 0xFF
    pack.write_bytes(content)
    damaged = workspace.verify()
    assert not damaged and damaged.damaged and damaged.to_dict()["ok"] is False


def test_all_workspaces(workspace: Workspace, project: Project, tmp_path: Path) -> None:
    save(workspace, project, 1)
    other = tmp_path / "other"
    other.mkdir()
    Workspace(other).save(allow_empty=True)
    other.rename(tmp_path / "renamed")
    moved = {info.path: info for info in Workspace.all()}[other]
    assert not moved.exists and not moved.is_gone and moved.moved_to == tmp_path / "renamed"
    assert moved.to_dict()["moved_to"] == str(tmp_path / "renamed")
    (tmp_path / "renamed").rename(other)
    shutil.rmtree(other)
    infos = {info.path: info for info in Workspace.all()}
    assert set(infos) == {project.path, other}
    assert infos[project.path].exists and infos[project.path].checkpoints == 1 and infos[project.path].bytes > 0
    assert infos[project.path].newest == workspace.list()[0].timestamp
    assert not infos[other].exists and infos[other].is_gone
    assert Workspace.all(tmp_path / "nowhere") == []


def test_forget_needs_a_confirmation(workspace: Workspace, project: Project) -> None:
    save(workspace, project, 1)
    with pytest.raises(UsageError, match="yes=True"):
        workspace.forget(yes=False)
    workspace.forget(yes=True)
    assert not workspace.store.exists() and workspace.list() == [] and project.read("a") == "1"
    workspace.forget(yes=True)
    assert save(workspace, project, 2)


def test_a_workspace_can_be_pickled(project: Project, tmp_path: Path) -> None:
    workspace = Workspace(project, tmp_path / "store", {"scan": {"exclude": ["*.log"]}}, wait=5)
    project.write("a.log", "1")
    project.write("a", "1")
    for twin in (pickle.loads(pickle.dumps(workspace)), copy.copy(workspace)):
        assert (twin.path, twin.store) == (workspace.path, workspace.store)
        assert twin.save(allow_empty=True).checkpoint.files_changed in (["a"], [])
    assert repr(workspace) == f"Workspace({str(project.path)!r})"


def test_exceptions_can_be_pickled(workspace: Workspace, project: Project) -> None:
    save(workspace, project, 1)
    with pytest.raises(UnknownCheckpointError) as caught:
        workspace.get("latset")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert type(twin) is UnknownCheckpointError and str(twin) == str(caught.value) and twin.nearest == "latest"
