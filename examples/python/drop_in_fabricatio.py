"""A script for fabricatio_checkpoint; only the import is changed to Backtrail."""

import tempfile
from pathlib import Path

from backtrail.compat.fabricatio import CheckpointService


def main(worktree: Path, stores: Path) -> None:
    store = CheckpointService(stores).get_store(worktree)
    (worktree / "a.txt").write_text("one\n")
    (worktree / "b.txt").write_text("one\n")
    first = store.save("first")
    (worktree / "a.txt").write_text("two\n")
    (worktree / "b.txt").write_text("two\n")
    second = store.save("second")
    print(store.get_file_diff(second, "a.txt"), end="")
    store.rollback(first, "a.txt")
    print("one file:", (worktree / "a.txt").read_text().strip(), (worktree / "b.txt").read_text().strip())
    store.reset(first)
    print("all files:", (worktree / "a.txt").read_text().strip(), (worktree / "b.txt").read_text().strip())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        (base / "worktree").mkdir()
        main(base / "worktree", base / "stores")
