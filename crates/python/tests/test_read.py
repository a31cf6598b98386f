from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, Project

from backtrail import IoError, UnknownCheckpointError, UnknownPathError, UsageError, Workspace


def test_list_order_and_filters(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    first = workspace.save("first", session="x").id
    project.write("b", "1")
    second = workspace.save("second", kind="feature").id
    project.write("a", "2")
    third = workspace.save("third", session="x").id

    def ids(**filters: Any) -> list[str]:
        return [checkpoint.id for checkpoint in workspace.list(**filters)]

    assert ids() == [third, second, first]
    assert ids(limit=2) == [third, second]
    assert ids(kind="feature") == [second]
    assert ids(session="x") == [third, first]
    assert ids(path="a") == [third, first]
    assert ids(path=project.path / "b") == [second]
    assert ids(grep="sec") == [second]
    assert ids(since=timedelta(hours=1)) == [third, second, first]
    assert ids(since=datetime.now(timezone.utc) + timedelta(hours=1)) == []
    assert ids(since=datetime.now() - timedelta(hours=1)) == [third, second, first]
    workspace.restore(first)
    assert len(ids()) == 4 and len(ids(safety=False)) == 3
    current = workspace.current()
    assert current is not None and current.id == first


def test_show_status_and_diff(workspace: Workspace, project: Project) -> None:
    project.write("a", "1\n")
    project.write("gone", "1\n")
    assert {change.path for change in workspace.status()} == {"a", "gone"}
    first = workspace.save()
    assert not workspace.status()
    project.write("a", "2\n")
    project.write("new/b", "1\n")
    project.delete("gone")
    status = workspace.status()
    assert status and status.checkpoint == first.checkpoint
    assert {(change.path, change.status) for change in status} == {
        ("a", "modified"),
        ("new/b", "added"),
        ("gone", "deleted"),
    }
    second = workspace.save()
    assert workspace.show(second).changes == status.changes
    diff = workspace.diff(first, second)
    assert (diff.from_id, diff.to_id) == (first.id, second.id)
    assert (diff.added_files, diff.modified_files, diff.deleted_files) == (["new/b"], ["a"], ["gone"])
    assert workspace.diff(first, second, "new").added_files == ["new/b"]
    assert workspace.diff(first, paths=["a", "gone"]).added_files == []
    assert workspace.diff().changes == []
    assert workspace.status(since=first).changes == status.changes


def test_status_and_diff_return_paths_that_would_be_skipped(
    workspace: Workspace, project: Project, command: Command
) -> None:
    project.write("a", "1\n")
    workspace.save()
    project.delete("a")
    os.mkfifo(project.path / "a")
    status = workspace.status()
    assert status and status.changes == []
    assert [(skipped.path, skipped.reason) for skipped in status.skipped] == [("a", "special file")]
    agree(command("status"), status.to_dict())
    diff = workspace.diff(paths="a")
    assert (diff.changes, diff.skipped) == ([], status.skipped)
    agree(command("diff", "--", str(project.path / "a")), diff.to_dict())
    project.write("b", "1\n")
    assert workspace.diff(paths="b").skipped == []


def test_git_applies_the_patch(workspace: Workspace, project: Project, tmp_path: Path) -> None:
    project.write("a", "1\n2\n3\n")
    first = workspace.save()
    project.write("a", "1\nzwei\n3\n")
    project.write("b", "new\n")
    patch = workspace.diff(first).patch
    copy = tmp_path / "copy"
    workspace.export(first, copy)
    subprocess.run(["git", "apply", "-"], cwd=copy, input=patch, text=True, check=True)
    assert (copy / "a").read_text() == "1\nzwei\n3\n" and (copy / "b").read_text() == "new\n"


def test_patch_of_a_checkpoint(workspace: Workspace, project: Project) -> None:
    project.write("a", "1\n")
    project.write("b", "1\n")
    first = workspace.save()
    project.write("a", "2\n")
    second = workspace.save()
    assert workspace.patch(first).added_files == ["a", "b"] and "+1" in workspace.patch(first, "b").patch
    patch = workspace.patch(second)
    assert (patch.from_id, patch.to_id, patch.modified_files) == (first.id, second.id, ["a"])
    assert workspace.patch(second, ["b"]).patch == ""
    workspace.delete(first)
    # The checkpoint before it was deleted. The changes are still only those of this checkpoint.
    assert workspace.patch(second).from_id is None and workspace.patch(second).added_files == ["a"]


def test_unknown_ids_are_refused(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    saved, missing = workspace.save(), "0" * 40
    looks: list[Callable[[str], object]] = [
        workspace.get,
        workspace.show,
        workspace.status,
        workspace.diff,
        lambda id: workspace.diff(id, saved),
        lambda id: workspace.diff(saved, id),
        workspace.patch,
        lambda id: workspace.read(id, "a"),
        workspace.plan,
        workspace.restore,
        workspace.delete,
        workspace.pin,
    ]
    for word in (missing, missing[:8], "nope"):
        for look in looks:
            with pytest.raises(UnknownCheckpointError, match=word):
                look(word)
    for wrong in (5, None, b"0", project.path):
        for look in (workspace.get, workspace.restore, workspace.delete, workspace.patch):
            with pytest.raises(TypeError):
                look(wrong)  # type: ignore[arg-type]


def test_read_and_history(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    first = workspace.save()
    project.write("a", "22")
    second = workspace.save()
    project.delete("a")
    third = workspace.save()
    assert workspace.read(first, "a") == b"1" and workspace.read(second, project.path / "a") == b"22"
    with pytest.raises(UnknownPathError):
        workspace.read(third, "a")
    assert [(v.checkpoint, v.status, v.bytes) for v in workspace.history("a")] == [
        (third.id, "deleted", None),
        (second.id, "modified", 2),
        (first.id, "added", 1),
    ]


def test_blame_names_the_checkpoint_of_each_line(workspace: Workspace, project: Project) -> None:
    project.write("a", "1\n2\n")
    first = workspace.save()
    project.write("a", "1\nx\n2\n")
    second = workspace.save()
    project.write("a", "1\nx\n2\nunsaved\n")
    blame = workspace.blame("a")
    assert (blame.path, blame.at) == ("a", None)
    assert [(part.start, part.lines, part.checkpoint) for part in blame.ranges] == [
        (1, 1, first.id),
        (2, 1, second.id),
        (3, 1, first.id),
        (4, 1, None),
    ]
    assert blame.ranges[0].timestamp == first.checkpoint.timestamp and blame.ranges[3].timestamp is None
    assert [part.start for part in workspace.blame("a", second, lines=(2, 2)).ranges] == [2]
    with pytest.raises(UsageError):
        workspace.blame("a", lines=(5, 5))


def test_bisect_finds_the_first_checkpoint_that_fails(workspace: Workspace, project: Project) -> None:
    saved = []
    for number in range(8):
        project.write("a", f"{number}")
        saved.append(workspace.save().id)
    seen: list[Path] = []

    def passes(directory: Path) -> bool | None:
        seen.append(directory)
        (directory / "built").touch()
        number = int((directory / "a").read_text())
        return None if number == 4 else number < 5

    found = workspace.bisect(passes)
    assert (found.first_bad, found.first_bad_is_unsaved) == (saved[5], False)
    assert found.last_good == saved[3] and [change.path for change in found.changes] == ["a"]
    assert {tested.checkpoint: tested.result for tested in found.tested}[saved[4]] == "skipped"
    assert len(set(seen)) == 1 and not seen[0].exists() and not (project.path / "built").exists()
    assert workspace.bisect(lambda directory: True, good=saved[2], bad=saved[6], link=[]).first_bad is None
    with pytest.raises(ZeroDivisionError):
        workspace.bisect(lambda directory: 1 // 0 == 0)
    with pytest.raises(UsageError, match="good end"):
        workspace.bisect(lambda directory: None)
    with pytest.raises(TypeError):
        workspace.bisect(5)  # type: ignore[arg-type]


def test_relative_paths_start_at_the_workspace(
    workspace: Workspace, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("src/a", "1")
    saved = workspace.save()
    monkeypatch.chdir(tmp_path)
    assert workspace.read(saved, "src/a") == b"1"
    monkeypatch.chdir(project.path / "src")
    assert workspace.read(saved, Path("src/a")) == b"1"


def test_export_needs_an_empty_directory(workspace: Workspace, project: Project, tmp_path: Path) -> None:
    project.write("a/b", "1")
    workspace.save()
    exported = workspace.export("@", tmp_path / "out")
    assert (exported.directory, exported.files) == (tmp_path / "out", 1)
    assert (tmp_path / "out/a/b").read_text() == "1"
    with pytest.raises(UsageError, match="empty"):
        workspace.export("@", tmp_path / "out")


def test_results_equal_the_json_of_the_command_line(workspace: Workspace, project: Project, command: Command) -> None:
    project.git("init", "-q")
    project.write("features.json", '{"current": "f-2", "completed": ["f-1"]}')
    project.write("backtrail.toml", '[state]\nfeatures = "features.json"\n')
    project.write("a", "1\n")
    first = workspace.save("first", metadata={"k": "v"}, session_number=1, attachments={"x": b"1"})
    project.write("a", "2\n")
    second = workspace.save("second")
    agree(command("list")["checkpoints"], [checkpoint.to_dict() for checkpoint in workspace.list()])
    agree(command("show", second.id), workspace.show(second).to_dict())
    agree(command("diff", first.id, second.id), workspace.diff(first, second).to_dict())
    agree(command("verify"), workspace.verify().to_dict())
    agree(command("history", str(project.path / "a"))["versions"], [v.to_dict() for v in workspace.history("a")])
    agree(command("blame", str(project.path / "a")), workspace.blame("a").to_dict())
    by_command = command("bisect", "--", "grep", "-q", "1", "a")
    by_python = workspace.bisect(lambda directory: "1" in (directory / "a").read_text()).to_dict()
    for tested in [*by_command["tested"], *by_python["tested"]]:
        del tested["seconds"], tested["exit_code"]
    agree(by_command, by_python)
    agree(command("restore", first.id, "--dry-run"), workspace.plan(first).to_dict())
    agree(command("revert", second.id, "--dry-run"), workspace.plan_revert(second).to_dict())
    agree(command("restore", first.id, "--dry-run", "--hunks")["changes"], [c.to_dict() for c in workspace.hunks(first)])
    (fork,) = workspace.fork(project.path.parent / "a fork")
    (fork.path / "a").write_text("4\n")
    agree(command("forks")["forks"], [fork.to_dict() for fork in workspace.forks()])
    agree(command("adopt", str(fork.path), "--dry-run"), workspace.plan_adopt(fork).to_dict())
    project.write("a", "3\n")
    agree(command("revert", second.id, "--dry-run"), workspace.plan_revert(second).to_dict())
    agree(command("status"), workspace.status().to_dict())
    agree(command("workspaces")["workspaces"], [info.to_dict() for info in Workspace.all()])
    agree(command("save", "third")["checkpoint"], workspace.get("@").to_dict())
    done = command("restore", first.id)
    assert done["applied"] and workspace.read(done["safety"], "a") == b"3\n"


def test_results_of_changing_operations_equal_the_json(
    workspace: Workspace, project: Project, command: Command, tmp_path: Path
) -> None:
    project.write("a", "1\n")
    os.mkfifo(project.path / "pipe")
    saved = workspace.save("first").to_dict()
    assert saved["skipped"] == [{"path": "pipe", "reason": "special file"}] and saved["created"] is True
    # Nothing changed, so that the command line gives the same answer.
    agree(command("save"), {**saved, "created": False})
    agree(command("export", "@", str(tmp_path / "theirs"))["files"], workspace.export("@", tmp_path / "out").to_dict()["files"])
    assert workspace.export("@", tmp_path / "again").to_dict()["directory"] == str(tmp_path / "again")
    step = workspace.step("s", touching=["a"]).to_dict()
    assert set(command("step", "--session", "s")) >= set(step) and step["step"] == 1
    verdicts = [verdict.to_dict() for verdict in workspace.plan_prune()]
    agree(command("prune", "--dry-run")["verdicts"], verdicts)
    agree(command("prune"), workspace.prune().to_dict())


def test_results_of_a_restore_equal_the_json(workspace: Workspace, project: Project, command: Command) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("a/b", "1\n")
    project.git("add", ".")
    project.git("commit", "-qm", "first")
    first = workspace.save("first")
    project.write("a/b", "2\n")
    project.git("commit", "-qam", "second")
    workspace.save("second")
    restored = workspace.restore(first, git=True).to_dict()
    assert restored["git"]["branch"] == "main" and restored["git"]["commit"] == project.git("rev-parse", "HEAD").strip()
    assert set(command("undo")) >= set(restored)
    # A pipe is in the way of a file that has to come back.
    project.delete("a/b")
    os.mkfifo(project.path / "a/b")
    plan = workspace.plan(first).to_dict()
    agree(command("restore", first.id, "--dry-run"), plan)
    assert [conflict["path"] for conflict in plan["conflicts"]] == ["a/b"]


def agree(theirs: Any, ours: Any) -> None:
    """Asserts that two answers are equal, except that the one of the command line may have more keys."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert set(ours) <= set(theirs)
        for key, value in ours.items():
            agree(theirs[key], value)
    elif isinstance(ours, list) and isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(theirs, ours):
            agree(one, other)
    else:
        assert theirs == ours


def test_a_missing_workspace_directory(workspace: Workspace, project: Project, tmp_path: Path) -> None:
    project.write("a", "1")
    saved = workspace.save()
    project.path.rename(tmp_path / "moved")
    with pytest.raises(IoError, match="find the workspace") as caught:
        workspace.save()
    assert isinstance(caught.value, OSError) and caught.value.filename == str(project.path)
    for look in (workspace.status, workspace.diff, lambda: workspace.restore(saved)):
        with pytest.raises(IoError):
            look()
    assert workspace.read(saved, "a") == b"1"
    with pytest.raises(IoError):
        Workspace(project)
    assert Workspace(tmp_path / "moved").list() == workspace.list()
