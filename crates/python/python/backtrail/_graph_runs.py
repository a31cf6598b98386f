"""Runs of LangGraph graphs on workspaces. Only one run at a time may change the files of a workspace."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from .errors import BusyError
from .results import Checkpoint
from .workspace import Workspace

AGENT = "langgraph"
"""The agent in the record of these checkpoints."""


def save(
    workspace: Workspace,
    thread: str,
    message: str,
    *,
    author: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    anew: bool = False,
) -> Checkpoint:
    """Takes a checkpoint of the kind ``thread``. Returns the current one if no file changed and it is of this thread.

    `anew` takes a new checkpoint in any case.
    """
    words: dict[str, Any] = {"kind": "thread", "session": thread, "agent": AGENT, "author": author}
    if not anew:
        saved = workspace.save(message, **words, metadata=metadata, if_changed=True)
        found = saved.checkpoint
        # Another thread may delete its checkpoints, and retention those of other kinds.
        if saved.created or (found.kind == "thread" and found.session == thread):
            return found
    return workspace.save(message, **words, metadata=metadata, allow_empty=True).checkpoint


class Run:
    """A run of a graph, from the moment that LangGraph loads the state until all its tasks have ended."""

    def __init__(self, workspace: Workspace, thread: str, loop: object, lock: int | None) -> None:
        self.workspace = workspace
        self.thread = thread
        self.files: dict[Any, str] = {}
        """The checkpoint that was taken for each version of the graph's channels."""
        self.at: dict[str, str] = {}
        """The files' checkpoint of each of the graph's checkpoints."""
        self._loop = weakref.ref(loop) if loop is not None else None
        self._thread = threading.current_thread()
        self._task = _task()
        self._lock = lock

    def save(self, message: str) -> str:
        """Takes a checkpoint of the files as they are now. Returns its id."""
        author = "agent" if self.files else "other"
        return save(self.workspace, self.thread, message, author=author).id

    def has_failed_to_begin(self) -> bool:
        """Returns whether LangGraph gave the run up before its first step. It does not tell its checkpointer then."""
        if self._loop is None:
            return False
        loop = self._loop()
        if loop is None:
            return True
        is_here = self._thread is threading.current_thread() and self._task is _task()
        is_over = not self._thread.is_alive() or (self._task is not None and self._task.done())
        return getattr(loop, "status", "") == "input" and (is_here or is_over)

    def release(self) -> None:
        """Lets the next run begin."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_runs: dict[str, Run] = {}
"""The run on each workspace, by the path of the workspace."""
_mutex = threading.Lock()


def _forget() -> None:
    # The runs belong to the process that was forked. The copies of their locks would outlive that process.
    global _mutex
    _mutex = threading.Lock()
    for run in _runs.values():
        run.release()
    _runs.clear()


os.register_at_fork(after_in_child=_forget)


def begin(workspace: Workspace, thread: str, loop: object = None) -> Run:
    """Registers a run. Raises `BusyError` if another one has not ended, in this process or another one."""
    root = os.path.realpath(workspace.path)
    with _mutex:
        other = _runs.get(root)
        if other is not None:
            if not other.has_failed_to_begin():
                raise _busy(f"the graph's thread {other.thread!r} is running on {root}, so {thread!r} can't run there")
            _runs.pop(root).release()
        run = _runs[root] = Run(workspace, thread, loop, _lock(root, thread))
    return run


def end(run: Run) -> None:
    """Marks the end of a run."""
    with _mutex:
        root = os.path.realpath(run.workspace.path)
        if _runs.get(root) is run:
            del _runs[root]
        run.release()


def running(workspace: Workspace) -> Run | None:
    """Returns the run on a workspace, or `None`."""
    return _runs.get(os.path.realpath(workspace.path))


def _lock(root: str, thread: str) -> int | None:
    try:
        directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        # A restore can bring the directory back.
        return None
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(directory)
        raise _busy(f"another process runs a graph on {root}, so the thread {thread!r} can't run there") from None
    except OSError:
        # A file system without such locks. Runs of this process still exclude each other.
        os.close(directory)
        return None
    return directory


def _busy(message: str) -> BusyError:
    error = BusyError(message)
    error.hint = "wait until that run has ended, or give each thread a directory of its own"
    return error


def _task() -> asyncio.Task[Any] | None:
    """Returns the asyncio task of the caller. `None` if it has none."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def entering_loop() -> Any:
    """Returns LangGraph's loop if it is loading the state for a run, and `None` if the caller only looks at the state.

    LangGraph's checkpointers are called in the same way for both.
    """
    frame = sys._getframe(2)
    for _ in range(8):
        if frame.f_code.co_name in ("__enter__", "__aenter__"):
            loop = frame.f_locals.get("self")
            if hasattr(loop, "checkpoint_config") and hasattr(loop, "stack"):
                return loop
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
