"""Which calls of the package a run of the tests has made.

A plugin that watches every function with a public name, and fails a whole run that left one out: a call that no test makes
is a call that nobody knows to work. A run of some tests alone is not judged.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

import backtrail

ELSEWHERE = {
    "backtrail.__main__": "runs in a process of its own",
    "backtrail.compat._fabricatio_mixin": "is reached by its name in backtrail.compat.fabricatio",
}
"""Modules that are not watched, with the reason."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(backtrail.__path__, "backtrail."):
        if found.name not in ELSEWHERE and found.name != "backtrail._native":
            try:
                yield importlib.import_module(found.name)
            except ImportError as missing:
                if not (missing.name or "").startswith(("langgraph", "langchain")):
                    raise


def public_calls() -> dict[CodeType, str]:
    """The code of each public function and method, with its name."""
    found: dict[CodeType, str] = {}
    for module in modules():
        for name, member in vars(module).items():
            if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__:
                found |= _calls_of(member, f"{module.__name__}.{name}")
    return found


def _calls_of(member: Any, name: str) -> dict[CodeType, str]:
    if inspect.isclass(member):
        members = {key: value for key, value in vars(member).items() if not key.startswith("_")}
        return {code: text for key, value in members.items() for code, text in _calls_of(value, f"{name}.{key}").items()}
    if isinstance(member, property):
        member = member.fget
    function = inspect.unwrap(getattr(member, "__func__", member))
    code = getattr(function, "__code__", None)
    # What dataclasses write themselves has no file; what was bound from elsewhere belongs there.
    if not isinstance(code, CodeType) or not Path(code.co_filename).is_relative_to(Path(backtrail.__file__).parent):
        return {}
    return {code: name}


class Watch:
    def __init__(self) -> None:
        self.uncalled = public_calls()

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.uncalled.pop(frame.f_code, None)

    def start(self) -> None:
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _is_whole(config: pytest.Config) -> bool:
    narrowed = any(config.getoption(name, default=None) for name in ("keyword", "markexpr", "lf", "deselect", "maxfail"))
    return not narrowed and config.args_source is not pytest.Config.ArgsSource.ARGS


class Plugin:
    """Watches a whole run."""

    def __init__(self) -> None:
        self.watch = Watch()

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        self.watch.start()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.watch.stop()
        if self.watch.uncalled and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.watch.uncalled:
            terminalreporter.section("no test calls", red=True)
            for name in sorted(self.watch.uncalled.values()):
                terminalreporter.line(name)


def register(config: pytest.Config) -> None:
    if _is_whole(config):
        config.pluginmanager.register(Plugin(), "public-calls")
