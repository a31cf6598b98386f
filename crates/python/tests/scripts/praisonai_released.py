"""Written for the released interface of praisonaiagents.checkpoints."""

import asyncio
import json
import os
import sys
from pathlib import Path

from praisonaiagents.checkpoints import CheckpointEvent, CheckpointService


async def main(workspace: Path, storage: str) -> dict[str, object]:
    seen: dict[str, object] = {}
    told: list[str] = []
    service = CheckpointService(str(workspace), storage)
    for event in CheckpointEvent:
        service.on(event, lambda data, event=event: told.append(event.value))
    seen["initialize"] = await service.initialize()
    seen["is_initialized"] = service.is_initialized

    def write(name: str, content: str) -> None:
        (workspace / name).write_text(content)

    def read(name: str) -> str | None:
        path = workspace / name
        return path.read_text() if path.exists() else None

    write("a.txt", "one\n")
    write(".env", "KEY=1\n")
    write("run.log", "1\n")
    first = await service.save("first", step=1)
    seen["save"] = [first.success, first.error, len(first.checkpoint.id), len(first.checkpoint.short_id)]
    seen["step"] = first.checkpoint.step
    nothing = await service.save("nothing")
    seen["save without a change"] = [nothing.success, nothing.error]
    seen["save without a change, allowed"] = (await service.save("empty", allow_empty=True)).success

    write("a.txt", "one\ntwo\n")
    write("b.txt", "new\n")
    write(".env", "KEY=2\n")
    write("run.log", "2\n")
    second = await service.save("second | with a pipe", step=2)
    diff = await service.diff(first.checkpoint.id, second.checkpoint.id)
    files = {file.path: file.status for file in diff.files if file.path.endswith(".txt")}
    seen["status of a file that grew"] = files.get("a.txt")
    seen["status of a new file"] = files.get("b.txt")
    seen["additions"] = diff.total_additions >= 2
    seen["list with a pipe in a message"] = [one.message for one in await service.list_checkpoints()][:1]

    write("a.txt", "not saved\n")
    write("c.txt", "not saved\n")
    restored = await service.restore(step=1)
    seen["restore by step"] = [restored.success, read("a.txt"), read("b.txt"), read("c.txt")]
    seen["restore brings back .env"] = read(".env")
    seen["restore brings back *.log"] = read("run.log")
    listed = [one.message for one in await service.list_checkpoints()]
    seen["list after a restore has the newer one"] = "[step-2] second | with a pipe" in listed
    again = CheckpointService(str(workspace), storage)
    await again.initialize()
    seen["get_checkpoint after reopening"] = await again.get_checkpoint(first.checkpoint.id) is not None
    seen["rewind too far"] = (await service.rewind(50)).success
    seen["rewind by 0"] = (await service.rewind(0)).error
    seen["restore of nothing"] = (await service.restore()).error
    seen["restore of an unknown id"] = (await service.restore("0123456789")).success

    write("a.txt", "small\n")
    small = await service.save("small")
    write("a.txt", "x" * 3_000_000)
    large = await service.save("large")
    await service.restore(small.checkpoint.id)
    seen["a file that grew past 2 MB, back"] = read("a.txt") == "small\n"
    if large.checkpoint is not None:
        await service.restore(large.checkpoint.id)
    seen["a file that grew past 2 MB, forth"] = len(read("a.txt") or "") == 3_000_000

    os.makedirs(workspace / "empty/dir")
    (workspace / "secret").write_text("s")
    (workspace / "secret").chmod(0o600)
    os.makedirs(workspace / "nested")
    os.system(f"git init -q {workspace}/nested")
    write("nested/file", "1")
    odd = await service.save("odd things")
    seen["save with a nested repository"] = odd.success
    if odd.checkpoint is not None:
        os.rmdir(workspace / "empty/dir")
        os.rmdir(workspace / "empty")
        (workspace / "secret").unlink()
        write("nested/file", "2")
        await service.restore(odd.checkpoint.id)
    seen["an empty directory comes back"] = (workspace / "empty/dir").is_dir()
    secret = workspace / "secret"
    seen["mode 0600 comes back"] = secret.exists() and oct(secret.stat().st_mode & 0o777)
    seen["a file in a nested repository comes back"] = read("nested/file")
    seen["events"] = sorted(set(told))
    limited = CheckpointService(str(workspace), storage + "-limited", max_checkpoints=3)
    await limited.initialize()
    for number in range(5):
        write("a.txt", str(number))
        await limited.save(f"number {number}")
    messages = [one.message for one in await limited.list_checkpoints()]
    seen["max_checkpoints=3 after five saves"] = [one for one in messages if one.startswith("number")]
    seen["delete_all"] = await limited.delete_all()
    return seen


print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))))
