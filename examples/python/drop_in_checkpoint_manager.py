"""A script for the checkpoint-manager skill; only the import is changed to Backtrail."""

import asyncio
import json
import tempfile
from pathlib import Path

from backtrail.compat.checkpoint_manager import CheckpointManager


async def main(project_dir: Path) -> None:
    (project_dir / "feature_list.json").write_text('{"current": "auth-003", "completed": ["auth-001"]}')
    (project_dir / "app.ts").write_text("one\n")
    manager = CheckpointManager(project_dir)
    checkpoint = await manager.create_checkpoint(
        name="before-refactor",
        description="State before major refactoring",
    )
    print(json.dumps(checkpoint.to_dict(), indent=2))
    (project_dir / "app.ts").write_text("two\n")
    await manager.rollback(checkpoint.id)
    print("after the rollback:", (project_dir / "app.ts").read_text().strip())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory)))
