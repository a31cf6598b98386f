"""Threads, processes, forks and signals."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Project

from backtrail import BusyError, Workspace


@contextlib.contextmanager
def holding(store: Path) -> Iterator[None]:
    """Holds the lock of the workspace, as another process would."""
    with open(store / "backtrail/lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_twenty_threads(workspace: Workspace, project: Project) -> None:
    project.write("a", "0")
    workspace.save("start")
    problems: list[BaseException] = []
    made: list[str] = []

    def work(number: int) -> None:
        try:
            mine = Workspace(project) if number % 2 else workspace
            for turn in range(3):
                project.write(f"{number}/file", f"{number}.{turn}")
                made.append(mine.save(f"{number}.{turn}", allow_empty=True).id)
                mine.status()
                mine.list(limit=3)
                assert mine.read(made[-1], "a") == b"0"
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    checkpoints = workspace.list()
    assert {checkpoint.id for checkpoint in checkpoints} >= set(made) and len(checkpoints) == 61
    assert workspace.verify().ok
    workspace.restore("@")
    assert project.files() == {"a": b"0"} | {f"{n}/file": f"{n}.2".encode() for n in range(20)}


def _save_some(path: str, number: int) -> list[str]:
    workspace = Workspace(path)
    made = []
    for turn in range(5):
        (Path(path) / f"process{number}").write_text(str(turn))
        made.append(workspace.save(f"{number}.{turn}", allow_empty=True).id)
    return made


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_four_processes(workspace: Workspace, project: Project, method: str) -> None:
    project.write("a", "0")
    workspace.save("start")
    with multiprocessing.get_context(method).Pool(4) as pool:
        made = pool.starmap(_save_some, [(str(project.path), number) for number in range(4)])
    ids = {id for some in made for id in some}
    assert len(ids) == 20 and {checkpoint.id for checkpoint in workspace.list()} >= ids
    assert workspace.verify().ok


def test_a_forked_process_can_do_everything(workspace: Workspace, project: Project) -> None:
    # The parent has started its shared threads before the fork, because a restore of many files uses them.
    for number in range(200):
        project.write(f"{number % 10}/{number}", "1")
    first = workspace.save("first")
    for number in range(200):
        project.write(f"{number % 10}/{number}", "2")
    workspace.restore(first)
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            signal.alarm(60)
            workspace.undo()
            saved = workspace.save("from the child")
            status = 0 if saved.created and project.read("0/0") == "2" and workspace.verify() else 2
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert workspace.get("@").message == "from the child"
    workspace.restore(first)
    assert project.read("0/0") == "1"


def test_a_fork_from_a_thread(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    statuses: list[int] = []

    def fork() -> None:
        workspace.save("from the thread", allow_empty=True)
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                signal.alarm(60)
                status = 0 if workspace.save("from its child", allow_empty=True).created else 2
            os._exit(status)
        statuses.append(os.waitpid(child, 0)[1])
        workspace.save("after it", allow_empty=True)

    threads = [threading.Thread(target=fork) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 5 and len(workspace.list()) == 15
    assert workspace.verify().ok


def workers() -> int:
    """Returns the number of Backtrail's worker threads in this process."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            names.append((task / "comm").read_text().strip())
    return names.count("backtrail")


def test_a_worker_ends_with_its_thread(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    workspace.save()
    before = workers()
    assert before >= 1
    threads = [threading.Thread(target=workspace.list) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(100):
        workspace.list()
        if workers() <= before:
            return
        time.sleep(0.05)
    raise AssertionError(f"{workers()} workers are left, {before} are expected")


def test_a_signal_handler_may_use_the_workspace(project: Project) -> None:
    workspace = Workspace(project, wait=1)
    project.write("a", "1")
    workspace.save("first")
    project.write("a", "2")
    seen: list[str] = []

    def look(*_: object) -> None:
        seen.extend(checkpoint.message for checkpoint in workspace.list())

    before = signal.signal(signal.SIGALRM, look)
    try:
        with holding(workspace.store), pytest.raises(BusyError):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            workspace.save("second")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == ["first"]
    assert workspace.save("third").created


def test_a_workspace_locked_by_another_process_is_busy(project: Project) -> None:
    workspace = Workspace(project, wait=0.3)
    project.write("a", "1")
    workspace.save()
    project.write("a", "2")
    with holding(workspace.store):
        with pytest.raises(BusyError, match="wait=") as caught:
            workspace.save()
        assert caught.value.code == "busy" and isinstance(caught.value, TimeoutError)
        assert len(workspace.list()) == 1 and workspace.status()
    assert workspace.save().created


def test_other_threads_run_while_an_operation_waits(project: Project) -> None:
    workspace = Workspace(project, wait=0.5)
    workspace.init()
    ticks = 0
    with holding(workspace.store):
        thread = threading.Thread(target=_try_save, args=(workspace,))
        thread.start()
        while thread.is_alive():
            ticks += 1
            time.sleep(0.001)
    assert ticks > 50


def _try_save(workspace: Workspace) -> None:
    with contextlib.suppress(BusyError):
        workspace.save()


# The process that runs the tests may ignore SIGINT, for instance in the background of a script. These scripts must not.
INTERRUPTED = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from backtrail import Workspace
workspace = Workspace(sys.argv[1], wait=60)
print("ready", flush=True)
started = time.monotonic()
try:
    workspace.save("never")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started < 30, flush=True)
print(len(workspace.list()), workspace.verify().ok, flush=True)
"""


def test_ctrl_c_during_the_wait_for_the_lock(workspace: Workspace, project: Project) -> None:
    project.write("a", "1")
    workspace.init()
    with holding(workspace.store):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, project.path], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted True\n0 True\n"


LONG_SAVE = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from backtrail import Workspace
workspace = Workspace(sys.argv[1])
def unfinished():
    return [name for name in os.listdir(pack) if not name.endswith((".pack", ".idx"))]
def interrupt():
    # Waits until the scan has begun: the unfinished pack that it writes is in the store then.
    while not unfinished():
        time.sleep(0.001)
    os.kill(os.getpid(), 2)
workspace.init()
pack = workspace.store / "objects/pack"
os.makedirs(pack, exist_ok=True)
threading.Thread(target=interrupt, daemon=True).start()
try:
    workspace.save("never")
    print("saved")
except KeyboardInterrupt:
    print("interrupted")
print(len(workspace.list()), workspace.verify().ok, workspace.save("after").created)
print(unfinished())
"""


def test_ctrl_c_during_a_long_save(tmp_path: Path) -> None:
    # On a busy machine, a short save may be finished before the interrupt arrives. Then a longer one is tried.
    for files in (300, 1200, 2400):
        project = Project(tmp_path / f"project{files}")
        for number in range(files):
            project.write(f"{number % 10}/{number}", os.urandom(100_000))
        line: list[str | Path] = [sys.executable, "-c", LONG_SAVE, project.path]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        ended, after, left = done.stdout.splitlines()
        assert (ended, left) == ("interrupted", "[]")
        if after == "0 True True":
            return
        assert after == "1 True False"
    raise AssertionError("no save was stopped")


def test_a_process_killed_during_a_restore(workspace: Workspace, project: Project) -> None:
    for number in range(100):
        project.write(f"{number}", "1")
    first = workspace.save()
    for number in range(100):
        project.write(f"{number}", "2")
    script = textwrap.dedent("""
        import os, sys, threading
        from backtrail import Workspace
        workspace = Workspace(sys.argv[1])
        def kill():
            while not (workspace.store / "backtrail/journal").exists():
                pass
            os.kill(os.getpid(), 9)
        threading.Thread(target=kill, daemon=True).start()
        workspace.restore(sys.argv[2])
    """)
    subprocess.run([sys.executable, "-c", script, project.path, first.id])
    workspace.save("the next operation")
    contents = set(project.files().values())
    assert contents in ({b"1"}, {b"2"}) and workspace.verify().ok


def test_a_failed_rollback_keeps_the_checkpoint_pinned(project: Project) -> None:
    workspace = Workspace(project.path, wait=0.1)
    project.write("a", "1")
    with contextlib.ExitStack() as stack, pytest.raises(ValueError) as raised, workspace.guard() as guard:
        project.write("a", "2")
        stack.enter_context(holding(workspace.store))
        raise ValueError
    assert isinstance(guard.failure, BusyError) and "could not be rolled back" in getattr(raised.value, "__notes__")[0]
    assert workspace.get(guard.checkpoint).pinned and project.read("a") == "2"
    workspace.restore(guard.checkpoint)
    assert project.read("a") == "1"
