"""Runs one checkpoint system on one tree, for `bench/python`, and prints the wall-clock and processor time of each operation.

python_systems.py SYSTEM WORKSPACE STORAGE FILES; each line on stdin names an operation, and is answered by a line on stdout.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGED = "d1/s1/changed.txt"

workspace, storage = Path(sys.argv[2]), sys.argv[3]


def make_tree(files: int) -> None:
    chance = random.Random(7)
    for number in range(files):
        path = workspace / f"d{number % 100}" / f"s{number % 7}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randrange(200, 20_000)).hex().encode()[: chance.randrange(200, 20_000)])


class Backtrail:
    def __init__(self) -> None:
        from backtrail import Workspace

        self.workspace = Workspace(workspace, store=storage)

    def make(self) -> None:
        pass

    def save(self, message: str) -> str:
        return self.workspace.save(message).id

    def diff(self, one: str, other: str) -> object:
        return self.workspace.diff(one, other)

    def status(self, last: str) -> object:
        return self.workspace.status()

    def restore(self, id: str) -> object:
        return self.workspace.restore(id)


class Praisonai:
    def __init__(self, drop_in: bool) -> None:
        if drop_in:
            from backtrail.compat.praisonai import CheckpointService
        else:
            from praisonaiagents.checkpoints import CheckpointService
        self.service = CheckpointService(str(workspace), storage)
        self.wait = asyncio.new_event_loop().run_until_complete

    def make(self) -> None:
        if not self.wait(self.service.initialize()):
            raise RuntimeError("it can't be initialized")

    def save(self, message: str) -> str | None:
        result = self.wait(self.service.save(message))
        if not result.success and result.error != "No changes to checkpoint":
            raise RuntimeError(result.error)
        return result.checkpoint.id if result.checkpoint else None

    def diff(self, one: str, other: str) -> object:
        return self.wait(self.service.diff(one, other))

    def status(self, last: str) -> object:
        return self.wait(self.service.diff(last))

    def restore(self, id: str) -> object:
        result = self.wait(self.service.restore(id))
        if not result.success:
            raise RuntimeError(result.error)
        return result


class Architect:
    def __init__(self, drop_in: bool) -> None:
        if drop_in:
            from backtrail.compat.architect import CheckpointManager
        else:
            import logging

            import structlog

            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
            from architect.features.checkpoints import CheckpointManager
        self.manager = CheckpointManager(str(workspace))
        self.diff = None

    def make(self) -> None:
        subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)

    def save(self, message: str) -> str | None:
        checkpoint = self.manager.create(1, message)
        return checkpoint.commit_hash if checkpoint else None

    def status(self, last: str) -> object:
        return self.manager.has_changes_since(last)

    def restore(self, id: str) -> object:
        return self.manager.rollback(commit=id)


class Fabricatio:
    def __init__(self, drop_in: bool) -> None:
        if drop_in:
            from backtrail.compat.fabricatio import CheckpointService
        else:
            from fabricatio_checkpoint.rust import CheckpointService
        self.store = CheckpointService(storage).get_store(workspace)

    def make(self) -> None:
        pass

    def save(self, message: str) -> str:
        return self.store.save(message)

    def diff(self, one: str, other: str) -> object:
        return self.store.get_file_diff(other, workspace / CHANGED)

    def status(self, last: str) -> object:
        return self.store.get_status()

    def restore(self, id: str) -> object:
        return self.store.reset(id)


SYSTEMS: dict[str, Callable[[], Any]] = {
    "backtrail": Backtrail,
    "praisonai": lambda: Praisonai(False),
    "praisonai drop-in": lambda: Praisonai(True),
    "architect": lambda: Architect(False),
    "architect drop-in": lambda: Architect(True),
    "fabricatio": lambda: Fabricatio(False),
    "fabricatio drop-in": lambda: Fabricatio(True),
}


def processor_time() -> float:
    """Returns the processor time of this process and of the programs that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def made(id: str | None) -> str:
    if id is None:
        raise RuntimeError("it took no checkpoint of a change")
    return id


def main() -> None:
    system = SYSTEMS[sys.argv[1]]()
    make_tree(int(sys.argv[4]))
    system.make()
    ids: list[str] = []
    turn = 0
    failed = False
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        operation = line.strip()
        turn += 1
        if operation == "first save" or operation == "save, one file changed":
            if operation != "first save":
                (workspace / CHANGED).write_text(f"{turn}\n" * 20)
            call = lambda: ids.append(made(system.save(f"turn {turn}")))
        elif operation == "save, nothing changed":
            call = lambda: system.save("nothing")
        elif failed:
            call = None
        elif operation == "diff of two checkpoints":
            pair = turn % (len(ids) - 2) + 1
            call = None if system.diff is None else lambda: system.diff(ids[pair], ids[pair + 1])
        elif operation == "diff with the files on disk":
            call = lambda: system.status(ids[-1])
        else:
            call = lambda: system.restore(ids[1 + turn % 2])
        if call is None or failed:
            print("null", flush=True)
            continue
        started, used = time.perf_counter(), processor_time()
        try:
            call()
        except Exception as problem:
            # A system that failed once is not measured any more; the others continue.
            print(f"{sys.argv[1]}: {operation}: {problem}", file=sys.stderr)
            failed = True
        taken = [(time.perf_counter() - started) * 1000, (processor_time() - used) * 1000]
        print("null" if failed else json.dumps(taken), flush=True)


main()
