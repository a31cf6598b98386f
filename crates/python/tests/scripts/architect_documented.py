"""Written for the documented interface of architect.features.checkpoints, which is the released one."""

import json
import subprocess
import sys
from pathlib import Path

from architect.features.checkpoints import CHECKPOINT_PREFIX, CheckpointManager

workspace = Path(sys.argv[1])
seen: dict[str, object] = {}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=workspace, capture_output=True, text=True, check=True).stdout.strip()


def read(name: str) -> str | None:
    path = workspace / name
    return path.read_text() if path.exists() else None


git("init", "-q", "-b", "main")
(workspace / "a.txt").write_text("zero\n")
git("add", "-A")
git("commit", "-q", "-m", "the user's own")
head = git("rev-parse", "HEAD")

manager = CheckpointManager(str(workspace))
seen["prefix"] = CHECKPOINT_PREFIX
seen["nothing yet"] = manager.get_latest() is None
(workspace / "a.txt").write_text("one\n")
first = manager.create(step=1, message="first")
assert first is not None
seen["create"] = [first.step, first.message, len(first.commit_hash), len(first.short_hash()), first.files_changed]
seen["create without a change"] = manager.create(step=2) is None
(workspace / "a.txt").write_text("two\n")
(workspace / "é.txt").write_text("new\n")
second = manager.create(step=2, message="with | a pipe -- and dashes")
assert second is not None
seen["files_changed"] = second.files_changed
latest = manager.get_latest()
seen["latest"] = latest is not None and [latest.step, latest.message]
seen["listed"] = [checkpoint.step for checkpoint in manager.list_checkpoints()]
seen["timestamps"] = all(checkpoint.timestamp > 1e9 for checkpoint in manager.list_checkpoints())
seen["no changes since"] = manager.has_changes_since(second.commit_hash)
(workspace / "untracked.txt").write_text("1\n")
seen["an untracked file is a change"] = manager.has_changes_since(second.commit_hash)
(workspace / "a.txt").write_text("not saved\n")
seen["rollback"] = manager.rollback(step=1)
seen["after the rollback"] = [read("a.txt"), read("é.txt"), read("untracked.txt")]
seen["the later step can still be reached"] = manager.rollback(step=2) and read("a.txt")
seen["rollback by commit"] = manager.rollback(commit=first.commit_hash) and read("a.txt")
seen["rollback to nothing"] = [manager.rollback(), manager.rollback(step=99), manager.rollback(commit="0" * 40)]
seen["rollback to an option"] = manager.rollback(commit="--soft")
seen["the user's branch is as it was"] = git("rev-parse", "HEAD") == head
print(json.dumps(seen))
