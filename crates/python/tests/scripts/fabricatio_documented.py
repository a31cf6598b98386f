"""Written for the documented interface of fabricatio_checkpoint, which is the released one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from fabricatio_checkpoint.rust import CheckpointService

workspace = Path(sys.argv[1])
stores = Path(sys.argv[2])
seen: dict[str, object] = {}


def attempt(function: object, *arguments: object) -> object:
    try:
        return function(*arguments)  # type: ignore[operator]
    except Exception as problem:  # noqa: BLE001
        return f"raised {type(problem).__name__}"


def read(name: str) -> str | None:
    path = workspace / name
    return path.read_text() if path.exists() else None


def write(name: str, content: str) -> None:
    (workspace / name).write_text(content)


service = CheckpointService(stores, cache_size=10)
store = service.get_store(workspace)
seen["workspace"] = store.workspace == workspace
write("a.txt", "one\n")
write("b.txt", "one\n")
(workspace / "run.sh").write_text("#!/bin/sh\n")
(workspace / "run.sh").chmod(0o755)
first = store.save("first")
seen["save"] = len(first)
seen["head"] = store.head() == first
seen["save without a change"] = store.save("again") == first
write("a.txt", "two\n")
write("b.txt", "two\n")
write("run.sh", "#!/bin/sh\necho\n")
write("new.txt", "new\n")
seen["status"] = sorted(store.get_status())
second = store.save()
seen["commits"] = [id for id in store.commits() if id in (first, second)] == [second, first]
patch = store.get_file_diff(second, workspace / "a.txt") or store.get_file_diff(second, "a.txt")
applies = subprocess.run(["git", "apply", "--check", "-R", "-"], cwd=workspace, input=patch, text=True, capture_output=True)
seen["the diff is a patch that applies"] = bool(patch) and applies.returncode == 0
os.chdir(workspace.parent)
seen["rollback of one file by a relative path"] = attempt(store.rollback, first, "a.txt")
store.rollback(first, workspace / "a.txt")
seen["rollback of one file"] = [read("a.txt"), read("b.txt")]
store.rollback(first, workspace / "run.sh")
seen["rollback keeps the executable bit"] = os.access(workspace / "run.sh", os.X_OK)
write("unsaved.txt", "not saved\n")
store.reset(first)
seen["reset"] = [read("a.txt"), read("b.txt"), read("new.txt")]
seen["reset removes what was not there"] = read("unsaved.txt") is None
seen["the later one can still be listed"] = second in store.commits()
seen["an unknown id"] = attempt(store.reset, "0" * 40)
seen["a short id"] = attempt(store.reset, first[:8])
seen["a path outside"] = attempt(store.rollback, first, "/etc/passwd")
seen["the same directory, spelled otherwise"] = service.get_store(str(workspace) + "/").head() == store.head()
gone = workspace.parent / "gone"
gone.mkdir()
(gone / "x").write_text("1")
service.get_store(gone).save("x")
seen["workspaces"] = sorted(path.name for path in service.workspaces())
(gone / "x").unlink()
gone.rmdir()
service.prune_invalid()
seen["prune_invalid leaves"] = [path.name for path in service.workspaces()]
(workspace / "nested").mkdir()
subprocess.run(["git", "init", "-q", str(workspace / "nested")], check=True)
write("nested/file", "1")
seen["save with a nested repository"] = len(str(attempt(lambda: service.get_store(workspace).save("nested")))) == 40
print(json.dumps(seen))
