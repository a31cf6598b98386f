"""Trials of the guard: a forked process changes files in a guarded block and is disturbed at a random moment.

    python guard_trials.py DIRECTORY COUNT
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from backtrail import Workspace

KINDS = ["once", "twice", "ten times", "terminated", "deleted root", "deleted root and once", "full disk"]


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def change(root: Path, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 20)):
        path = root / f"d{chance.randrange(3)}/f{chance.randrange(8)}"
        if chance.random() < 0.3:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(str(chance.random()) * chance.randrange(200))


def block(root: Path, kind: str, chance: random.Random, ready: int) -> None:
    with Workspace(root, store=root.parent / "store").guard("trial"):
        os.write(ready, b"r")
        change(root, chance)
        if kind.startswith("deleted"):
            shutil.rmtree(root)
        if kind == "full disk":
            (root / "large").unlink(missing_ok=True)
            resource.setrlimit(resource.RLIMIT_FSIZE, (chance.choice([0, 100, 5_000, 20_000]), resource.RLIM_INFINITY))
        if kind in ("deleted root", "full disk"):
            raise ValueError(kind)
        while not kind.startswith("deleted"):
            change(root, chance)
        raise ValueError(kind)


def child(root: Path, kind: str, seed: int, ready: int, report: int) -> None:
    said: dict[str, Any] = {}
    try:
        block(root, kind, random.Random(seed), ready)
    except BaseException as problem:
        said = {"type": type(problem).__name__, "notes": getattr(problem, "__notes__", [])}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(report, json.dumps(said).encode())


def disturb(kind: str, process: int, chance: random.Random) -> None:
    times = {"once": 1, "twice": 2, "ten times": 10, "terminated": 1, "deleted root and once": 1}.get(kind, 0)
    for _ in range(times):
        time.sleep(chance.random() * 0.03)
        try:
            os.kill(process, signal.SIGTERM if kind == "terminated" else signal.SIGINT)
        except ProcessLookupError:
            return


def trial(place: Path, seed: int) -> str:
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    root = place / "files"
    root.mkdir(parents=True)
    change(root, chance)
    (root / "large").write_bytes(chance.randbytes(60_000))
    before = tree(root)
    [ready, ready_end], [report, report_end] = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            # A signal before this point would be lost: Python drops those that arrive during a fork.
            os.write(ready_end, b"f")
            child(root, kind, seed, ready_end, report_end)
        finally:
            os._exit(0)
    os.close(ready_end)
    os.close(report_end)
    os.read(ready, 1)
    if chance.random() < 0.8:
        os.read(ready, 1)
    disturb(kind, process, chance)
    os.waitpid(process, 0)
    with os.fdopen(report) as opened:
        said = json.loads(opened.read() or "{}")
    os.close(ready)
    workspace = Workspace(root, store=place / "store")
    what = f"trial {seed}, {kind}: {said}"
    if root.exists() and tree(root) == before:
        if workspace.store.exists():
            assert not any(checkpoint.pinned for checkpoint in workspace.list()), what
        outcome = "equal"
    else:
        # The way back is named, and it works.
        way = [note for note in said["notes"] if "Bring them back with" in note]
        assert way, what
        exec(way[0].rpartition("in Python: ")[2].replace("Workspace(", "Workspace(store=place / 'store', path="))
        assert tree(root) == before, what
        outcome = "way back"
    shutil.rmtree(place)
    return f"{kind}: {outcome}"


def main() -> None:
    place, count = Path(sys.argv[1]), int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    outcomes: dict[str, int] = {}
    for seed in range(first, first + count):
        outcome = trial(place / str(seed), seed)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
