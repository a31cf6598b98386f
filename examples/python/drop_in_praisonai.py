"""A script for praisonaiagents.checkpoints; only the import is changed to Backtrail."""

import asyncio
import tempfile
from pathlib import Path

from backtrail.compat.praisonai import CheckpointEvent, CheckpointService


async def main(workspace: Path, storage: Path) -> None:
    service = CheckpointService(workspace_dir=str(workspace), storage_dir=str(storage))
    service.on(CheckpointEvent.CHECKPOINT_CREATED, lambda checkpoint: print(f"created {checkpoint.short_id}"))
    await service.initialize()

    def write_file(path: str, content: str) -> str:
        """Writes a file."""
        (workspace / path).write_text(content)
        return "done"

    # Takes a checkpoint before each call. Pass the tool to an agent: Agent(tools=[tool])
    tool = service.wrap_tool(write_file)
    tool("notes.md", "first\n")
    tool("notes.md", "second\n")

    diff = await service.diff()
    print("changed since the last but one:", diff.added_files + diff.modified_files)
    await service.rewind()
    print("after the rewind:", sorted(path.name for path in workspace.iterdir()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        (base / "workspace").mkdir()
        asyncio.run(main(base / "workspace", base / "storage"))
