"""Written for the documented interface of praisonaiagents.checkpoints."""

import asyncio
import json
import sys
from pathlib import Path

from praisonaiagents.checkpoints import CheckpointConfig, CheckpointEvent, CheckpointService


async def main(workspace: Path, storage: str) -> dict[str, object]:
    seen: dict[str, object] = {}
    events: list[str] = []
    config = CheckpointConfig(auto_checkpoint=True, max_checkpoints=100, exclude_patterns=["*.tmp", "build/"])
    service = CheckpointService(workspace_dir=str(workspace), storage_dir=storage, config=config)
    service.on(CheckpointEvent.CHECKPOINT_CREATED, lambda checkpoint: events.append(checkpoint.message))
    await service.initialize()

    (workspace / "app.py").write_text("print('one')\n")
    (workspace / "scratch.tmp").write_text("1")
    first = await service.save("Before refactoring")
    (workspace / "app.py").write_text("print('two')\n")
    (workspace / "new.py").write_text("pass\n")
    (workspace / "scratch.tmp").write_text("2")
    second = await service.save("After refactoring")

    diff = await service.diff(first.id, second.id)
    seen["diff"] = [diff.added_files, diff.modified_files, diff.deleted_files]
    seen["ids"] = [diff.from_id == first.id, diff.to_id == second.id]
    seen["content"] = "+print('two')" in diff.diff_content
    await service.restore(first.id)
    seen["restored"] = sorted(path.name for path in workspace.iterdir())
    seen["excluded is left alone"] = (workspace / "scratch.tmp").read_text()
    seen["listed"] = [checkpoint.message for checkpoint in await service.list()]
    details = await service.get(second.id)
    seen["details"] = [details.message, list(details.files_changed), details.metadata, details.timestamp.tzinfo is not None]
    await service.delete(first.id)
    seen["left"] = [checkpoint.message for checkpoint in await service.list()]
    seen["events"] = events[:2]
    return seen


print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))))
