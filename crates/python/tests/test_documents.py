"""The documents are correct: their examples run, and nothing is missing."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import backtrail
from backtrail import BacktrailError, Workspace, errors
from backtrail.results import EventName

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs/python.md").read_text()


def examples(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(source: str, **names: Any) -> dict[str, Any]:
    exec(compile(source, "example", "exec"), names)
    return names


def test_the_example_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "anywhere"
    place.mkdir()
    monkeypatch.chdir(place)
    (source,) = examples(README)
    seen = run(source)
    assert seen["messages"] == seen["workspace"].conversation(seen["saved"])
    # The last line of the example undoes the restore, so that the files of the block exist.
    assert os.listdir(place) != []


def test_the_examples_on_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "path/to/project").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    library, guards, *_ = examples(PAGE)
    seen = run(library, messages=["hi"])
    assert seen["restored"].changes == [] and seen["messages"] == ["hi"]
    project = tmp_path / "path/to/project"
    names = {"run_agent": lambda: (project / "a").write_text("1"), "tests_pass": lambda: False}
    seen = run(guards, workspace=seen["workspace"], checkpointed=backtrail.checkpointed, **names)
    assert not (project / "a").exists() and seen["attempt"].rolled_back
    seen["migrate"]()


def test_the_page_has_every_method() -> None:
    methods = [name for name, _ in inspect.getmembers(Workspace, callable) if not name.startswith("_")]
    assert [name for name in methods if f"{name}(" not in PAGE] == []


def test_the_page_has_every_exception() -> None:
    bases = {errors.BacktrailError, errors.NotFoundError, errors.RefusedError, errors.StoreError}
    exported = [getattr(backtrail, name) for name in backtrail.__all__]
    failures = [one for one in exported if inspect.isclass(one) and issubclass(one, BacktrailError)]
    assert len(failures) > len(bases)
    assert [one.__name__ for one in failures if f"`{one.__name__}`" not in PAGE] == []


def test_the_page_has_every_drop_in() -> None:
    for name in ("praisonai", "architect", "fabricatio", "checkpoint_manager"):
        assert f"from backtrail.compat.{name} import" in PAGE
        module = __import__(f"backtrail.compat.{name}", fromlist=["__all__"])
        for exported in module.__all__:
            assert getattr(sys.modules[module.__name__], exported) is not None


def test_events_have_the_same_names_as_on_the_command_line() -> None:
    from typing import get_args

    reference = (ROOT / "docs/json.md").read_text()
    assert [name for name in get_args(EventName) if name != "error" and f'"{name}"' not in reference] == []
