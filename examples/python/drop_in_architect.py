"""A script for architect.features.checkpoints; only the import is changed to Backtrail."""

import tempfile
from pathlib import Path

from backtrail.compat.architect import CheckpointManager


def main(workspace: Path) -> None:
    manager = CheckpointManager(str(workspace))
    for step, content in enumerate(["one\n", "two\n", "three\n"], start=1):
        (workspace / "app.py").write_text(content)
        checkpoint = manager.create(step, message=f"wrote {content.strip()}")
        if checkpoint is not None:
            print(f"step {checkpoint.step}: {checkpoint.short_hash()} {checkpoint.message}")
    print("rolled back:", manager.rollback(step=1), (workspace / "app.py").read_text().strip())
    # Later steps can still be reached.
    print("and forward:", manager.rollback(step=3), (workspace / "app.py").read_text().strip())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
