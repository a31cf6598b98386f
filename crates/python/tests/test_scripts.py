"""A script that was written for another system runs with only its import changed."""

from __future__ import annotations

from pathlib import Path

import scripts_runner


def test_praisonai_as_documented(tmp_path: Path) -> None:
    assert scripts_runner.run(scripts_runner.with_our_import("praisonai_documented"), tmp_path / "run") == {
        "diff": [["new.py"], ["app.py"], []],
        "ids": [True, True],
        "content": True,
        "restored": ["app.py", "scratch.tmp"],
        "excluded is left alone": "2",
        "listed": ["After refactoring", "Before refactoring"],
        "details": ["After refactoring", ["app.py", "new.py"], {}, True],
        "left": ["After refactoring"],
        "events": ["Before refactoring", "After refactoring"],
    }


def test_praisonai_as_released(tmp_path: Path) -> None:
    seen = scripts_runner.run(scripts_runner.with_our_import("praisonai_released"), tmp_path / "run")
    assert seen == {
        "initialize": True,
        "is_initialized": True,
        "save": [True, None, 40, 8],
        "step": 1,
        "save without a change": [False, "No changes to checkpoint"],
        "save without a change, allowed": True,
        "status of a file that grew": "modified",
        "status of a new file": "added",
        "additions": True,
        "list with a pipe in a message": ["[step-2] second | with a pipe"],
        "restore by step": [True, "one\n", None, None],
        "restore brings back .env": "KEY=1\n",
        "restore brings back *.log": "1\n",
        "list after a restore has the newer one": True,
        "get_checkpoint after reopening": True,
        "rewind too far": False,
        "rewind by 0": "steps must be >= 1",
        "restore of nothing": "No checkpoint id or step provided",
        "restore of an unknown id": False,
        "a file that grew past 2 MB, back": True,
        "a file that grew past 2 MB, forth": True,
        "save with a nested repository": True,
        "an empty directory comes back": True,
        "mode 0600 comes back": "0o600",
        "a file in a nested repository comes back": "1",
        "events": ["checkpoint_created", "checkpoint_restored", "error", "initialized"],
        "max_checkpoints=3 after five saves": ["number 4", "number 3", "number 2"],
        "delete_all": True,
    }


def test_architect(tmp_path: Path) -> None:
    assert scripts_runner.run(scripts_runner.with_our_import("architect_documented"), tmp_path / "run") == {
        "prefix": "architect:checkpoint",
        "nothing yet": True,
        "create": [1, "first", 40, 7, ["a.txt"]],
        "create without a change": True,
        "files_changed": ["a.txt", "é.txt"],
        "latest": [2, "with | a pipe -- and dashes"],
        "listed": [2, 1],
        "timestamps": True,
        "no changes since": False,
        "an untracked file is a change": True,
        "rollback": True,
        "after the rollback": ["one\n", None, None],
        "the later step can still be reached": "two\n",
        "rollback by commit": "one\n",
        "rollback to nothing": [False, False, False],
        "rollback to an option": False,
        "the user's branch is as it was": True,
    }


def test_fabricatio(tmp_path: Path) -> None:
    assert scripts_runner.run(scripts_runner.with_our_import("fabricatio_documented"), tmp_path / "run") == {
        "workspace": True,
        "save": 40,
        "head": True,
        "save without a change": True,
        "status": ["a.txt", "b.txt", "new.txt", "run.sh"],
        "commits": True,
        "the diff is a patch that applies": True,
        "rollback of one file by a relative path": None,
        "rollback of one file": ["one\n", "two\n"],
        "rollback keeps the executable bit": True,
        "reset": ["one\n", "one\n", None],
        "reset removes what was not there": True,
        "the later one can still be listed": True,
        "an unknown id": "raised RuntimeError",
        "a short id": None,
        "a path outside": "raised RuntimeError",
        "the same directory, spelled otherwise": True,
        "workspaces": ["gone", "workspace"],
        "prune_invalid leaves": ["workspace"],
        "save with a nested repository": True,
    }


def test_checkpoint_manager(tmp_path: Path) -> None:
    seen = scripts_runner.run(scripts_runner.with_our_import("checkpoint_manager_documented"), tmp_path / "run")
    structure = seen.pop("structure")
    features = {"current": "auth-003", "completed": ["auth-001", "auth-002"]}
    assert seen == {
        "id": True,
        "snapshot": features,
        "rolled back": {"app.ts": "one\n", "claude-progress.txt": "started\n"},
        "features": features,
        "temporary files are gone": True,
        "latest": "one\n",
    }
    assert structure == {
        "id": structure["id"],
        "name": "before-refactor",
        "description": "State before major refactoring",
        "timestamp": structure["timestamp"],
        "checkpoint_type": "manual",
        "git_state": {"commit_hash": "", "branch": "", "dirty_files": []},
        "feature_state": {**features, "snapshot_path": f".claude/checkpoints/{structure['id']}/feature_list.json"},
        "context": {},
    }
    assert structure["timestamp"].replace("-", "").replace(":", "").replace("T", "-") in structure["id"]
