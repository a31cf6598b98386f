"""A pytest plugin that fails a full run of the tests if a public function of the package was never called.

A run of only some tests is not checked. A method of `backtrail.aio.Workspace` that is made from a blocking method counts
as that method; `test_aio.py` calls each of them.
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
}
"""Modules that are not watched, with the reason."""


FRAMEWORKS = ("agents", "google", "langchain", "langgraph", "pydantic_ai", "smolagents", "strands")
"""Packages that the integrations need. `test_frameworks.py` tests them where these are installed."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(backtrail.__path__, "backtrail."):
        is_private = found.name.rpartition(".")[2].startswith("_")
        is_tested_there = found.name.startswith("backtrail.integrations.") and not found.name.endswith(".turns")
        if found.name not in ELSEWHERE and not is_private and not is_tested_there:
            try:
                yield importlib.import_module(found.name)
            except ImportError as missing:
                if not (missing.name or "").startswith(FRAMEWORKS):
                    raise


def public_calls() -> dict[CodeType, str]:
    """Returns the code of each public function and method, with its name."""
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
    # Methods that dataclasses generate have no file. Functions of other packages are not checked.
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
    """Watches a full run."""

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
            terminalreporter.section("public functions that no test calls", red=True)
            for name in sorted(self.watch.uncalled.values()):
                terminalreporter.line(name)


def register(config: pytest.Config) -> None:
    if _is_whole(config):
        config.pluginmanager.register(Plugin(), "public-calls")
