"""Written for the documented interface of the checkpoint-manager skill."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from scripts.checkpoint_manager import CheckpointManager

project_dir = Path(sys.argv[1])


async def main() -> dict[str, object]:
    seen: dict[str, object] = {}
    (project_dir / "app.ts").write_text("one\n")
    (project_dir / "feature_list.json").write_text('{"current": "auth-003", "completed": ["auth-001", "auth-002"]}')
    (project_dir / "claude-progress.txt").write_text("started\n")
    manager = CheckpointManager(project_dir)
    checkpoint = await manager.create_checkpoint(name="before-refactor", description="State before major refactoring")
    seen["id"] = bool(re.fullmatch(r"checkpoint-\d{8}-\d{6}", checkpoint.id))
    seen["structure"] = checkpoint.to_dict()
    os.chdir(project_dir)
    seen["snapshot"] = json.loads(Path(checkpoint.feature_state.snapshot_path).read_text())

    (project_dir / "app.ts").write_text("two\n")
    (project_dir / "feature_list.json").write_text('{"current": null, "completed": []}')
    (project_dir / "claude-progress.txt").write_text("lost\n")
    (project_dir / "temporary").write_text("x")
    await manager.rollback(checkpoint.id)
    seen["rolled back"] = {name: (project_dir / name).read_text() for name in ("app.ts", "claude-progress.txt")}
    seen["features"] = json.loads((project_dir / "feature_list.json").read_text())
    seen["temporary files are gone"] = not (project_dir / "temporary").exists()
    (project_dir / "app.ts").write_text("three\n")
    await manager.rollback_to_latest()
    seen["latest"] = (project_dir / "app.ts").read_text()
    return seen


print(json.dumps(asyncio.run(main())))
