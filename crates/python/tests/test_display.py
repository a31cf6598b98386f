"""Tests of the text and the HTML of results, their hashes, and the documentation of everything public."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest
from conftest import Project

import backtrail
from backtrail import Checkpoint, Diff, Event, Restored, Workspace
from backtrail.results import Result


def all_results(workspace: Workspace, project: Project) -> list[Result]:
    """Returns a result of every method."""
    project.write("a", "1\n")
    first = workspace.save("first <b>", name="one", metadata={"x": [1, {"y": 2}]}, attachments={"n": b"1"})
    project.write("a", "2\n")
    status, diff = workspace.status(), workspace.diff(first)
    second = workspace.save("second\nline")
    restored = workspace.restore(first)
    tried = workspace.bisect(lambda directory: (directory / "a").read_text() == "1\n", good=first, bad=second)
    several: list[Result] = [*workspace.history("a"), *workspace.events(), *workspace.plan_prune(), *Workspace.all()]
    single: list[Result] = [first, second, first.checkpoint, status, diff, restored, workspace.show(second)]
    others: list[Result] = [workspace.step("s"), workspace.blame("a"), workspace.verify(), workspace.prune(), tried]
    return [*several, *single, *others]


def test_results_are_short_and_can_be_hashed(workspace: Workspace, project: Project) -> None:
    results = all_results(workspace, project)
    assert len({type(result) for result in results}) == 15
    for result in results:
        assert repr(result) == f"<{type(result).__name__} {result}>"
        assert len(repr(result)) < 600 and "\n" not in repr(result)
        assert hash(result) == hash(dataclasses.replace(result)) and {result: 1}[dataclasses.replace(result)] == 1  # type: ignore[type-var]


def test_the_text_of_results(workspace: Workspace, project: Project) -> None:
    project.write("a", "1\n")
    saved = workspace.save("first", name="one")
    short = saved.checkpoint.short_id
    assert str(saved.checkpoint) == f"{short} manual [one] 'first' +1 -0"
    assert str(saved) == f"created: {saved.checkpoint}"
    project.write("a", "2\n")
    assert repr(workspace.status()) == f"<Status 1 change since {short}>"
    assert str(workspace.status().changes[0]) == "modified a +1 -1"
    assert str(workspace.diff()) == f"{saved.id[:12]} to the files on disk: 1 change"
    assert str(workspace.plan(saved)) == f"would restore {saved.id[:12]}: 1 change, 0 conflicts"
    assert str(workspace.verify()) == "1 checkpoint, 0 damaged"
    assert str(workspace.step("s")).startswith("step 1: ")
    assert str(workspace.prune()).startswith("deleted 0, kept 2, ")
    assert str(workspace.show(saved)).endswith(", 1 change")
    assert Restored(None, None, [], False, None, []) == Restored(None, None, [], False, None, [], conversation=["x"])


def test_notebooks_show_tables_and_colours(workspace: Workspace, project: Project) -> None:
    project.write("a<b", "1\n")
    first = workspace.save("<script>", name="n&m")
    project.write("a<b", "2\n")
    listed = workspace.list()
    assert listed._repr_html_().count("<tr>") == 2 and first.checkpoint._repr_html_() == listed._repr_html_()
    assert "&lt;script&gt;" in listed._repr_html_() and "n&amp;m" in first._repr_html_() and "<script>" not in first._repr_html_()
    diff = workspace.diff()
    assert "<span style='color:#1a7f37'>+2</span>" in diff._repr_html_() and ">-1</span>" in diff._repr_html_()
    assert "a&lt;b" in workspace.status()._repr_html_() and "a&lt;b" in workspace.show(first)._repr_html_()
    assert "a&lt;b" in workspace.plan(first)._repr_html_()
    project.write("long", "x\n" * 5_000)
    project.write("b", "x\n")
    assert "more lines" in workspace.diff()._repr_html_()
    odd = Diff(None, None, [], "+\udcff\n")
    assert odd._repr_html_().encode()


def public() -> Iterator[tuple[str, object]]:
    for found in pkgutil.walk_packages(backtrail.__path__, "backtrail."):
        if any(part.startswith("_") for part in found.name.split(".")):
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError:
            continue
        yield found.name, module
        for name, member in vars(module).items():
            if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(member) or inspect.isfunction(member):
                yield f"{found.name}.{name}", member
            if inspect.isclass(member):
                yield from members(f"{found.name}.{name}", member)


def members(place: str, kind: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)):
            yield f"{place}.{name}", member


def test_everything_public_is_documented() -> None:
    found = dict(public())
    assert len(found) > 150 and "backtrail.aio.Guard.rollback" in found
    assert [name for name, member in found.items() if not inspect.getdoc(member)] == []


@pytest.mark.parametrize("kind", [Checkpoint, Event])
def test_results_are_frozen(kind: type) -> None:
    assert dataclasses.is_dataclass(kind) and getattr(kind, "__dataclass_params__").frozen
