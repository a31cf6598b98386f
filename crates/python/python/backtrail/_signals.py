"""Ctrl-C and SIGTERM during a guarded block. Only the main thread can handle signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Terminated(SystemExit):
    """Raised in a guarded block by SIGTERM, which would otherwise end the process without a rollback."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Signals:
    """Passes signals on during a guarded block, and keeps those that arrive while the block ends.

    `is_ending` is given the frame in which a signal arrived.
    """

    def __init__(self, numbers: tuple[int, ...], is_ending: Callable[[FrameType | None], bool]) -> None:
        self._numbers = numbers
        self._is_ending = is_ending
        self._earlier: dict[int, Any] = {}
        self._kept: list[int] = []

    def install(self) -> None:
        """Starts to handle the signals that this process does not ignore."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self._numbers:
            earlier = signal.getsignal(number)
            # `None` is a handler that was not installed from Python.
            if earlier is not None and earlier is not signal.SIG_IGN:
                self._earlier[number] = earlier
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        earlier = self._earlier.get(number)
        if self._is_ending(frame):
            self._kept.append(number)
        elif callable(earlier):
            earlier(number, frame)
        else:
            self._kept.append(number)
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    def remove(self, raised: BaseException | None) -> None:
        """Stops to handle signals, and passes on those that arrived while the block ended. `raised` is the exception
        that ended the block: if it is a `KeyboardInterrupt`, it already tells about Ctrl-C."""
        for number, earlier in self._earlier.items():
            # The block may have installed a handler of its own.
            if signal.getsignal(number) == self._handle:
                signal.signal(number, earlier)
        kept, self._kept = self._kept, []
        for number in sorted(set(kept), reverse=True):
            earlier = self._earlier[number]
            if number == signal.SIGINT and isinstance(raised, KeyboardInterrupt):
                continue
            if callable(earlier):
                earlier(number, None)
            else:
                os.kill(os.getpid(), number)
