"""Runs each integration with the real package and a scripted model: see `frameworks/scenario.py`.

UPDATE_DOCS=1 rewrites the table in docs/python.md. NEWEST=1 runs with the newest version of each package instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Project

from backtrail import Workspace
from backtrail.integrations import Turns, checkpointed_tool

FRAMEWORKS = Path(__file__).parent / "frameworks"
DOCS = Path(__file__).parents[3] / "docs/python.md"

RUNS = {
    "LangChain `create_agent`": ("langchain", ["langchain==1.4.7"], ["langchain"], "CheckpointMiddleware"),
    "deepagents": ("langchain", ["deepagents==0.7.32"], ["langchain", "deepagents"], "CheckpointMiddleware"),
    "OpenAI Agents SDK": ("openai_agents", ["openai-agents==0.24.0"], ["openai_agents"], "CheckpointHooks"),
    "Pydantic AI": ("pydantic_ai", ["pydantic-ai-slim==2.66.0"], ["pydantic_ai"], "Checkpoints"),
    "Google ADK": ("google_adk", ["google-adk==2.13.0"], ["google_adk"], "CheckpointPlugin"),
    "Strands": ("strands", ["strands-agents==1.62.0"], ["strands"], "CheckpointPlugin"),
    "smolagents": ("smolagents", ["smolagents==1.26.0"], ["smolagents"], "CheckpointCallbacks"),
}
"""For each framework: the module, the packages, the script with its arguments, and the class."""


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_a_framework(name: str, tmp_path: Path) -> None:
    module, packages, [script, *words], _ = RUNS[name]
    newest = bool(os.environ.get("NEWEST"))
    wanted = [package.split("==")[0] for package in packages] if newest else packages
    python = environment(f"{wanted[0].split('==')[0]}{'-newest' if newest else ''}", wanted)
    line = [str(python), str(FRAMEWORKS / f"{script}_agent.py"), str(tmp_path / "workspace"), *words]
    packages_of_ours = str(Path(sys.modules["backtrail"].__file__ or "").parents[1])
    variables = {**os.environ, "BACKTRAIL_HOME": str(tmp_path / "home"), "PYTHONPATH": packages_of_ours}
    done = subprocess.run(line, env=only_ours(variables, tmp_path), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("as expected\n"), done.stdout + done.stderr


def only_ours(variables: dict[str, str], place: Path) -> dict[str, str]:
    """Makes the package under test importable without the other packages beside it."""
    link = place / "ours/backtrail"
    link.parent.mkdir()
    link.symlink_to(Path(variables["PYTHONPATH"]) / "backtrail")
    return {**variables, "PYTHONPATH": str(link.parent)}


def environment(name: str, packages: list[str]) -> Path:
    """Returns the interpreter of an environment with these packages. Creates it if it is missing."""
    directory = Path(f"{sys.prefix}-frameworks") / name
    python = directory / "bin/python"
    complete = directory / "complete"
    if not complete.exists() or complete.read_text() != str(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
        line = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(line, check=True)
        complete.write_text(str(packages))
    return python


def test_the_page_lists_the_frameworks() -> None:
    rows = [
        f"| {name} | `backtrail.integrations.{module}.{kind}` | {' '.join(packages)} |"
        for name, (module, packages, _, kind) in RUNS.items()
    ]
    table = "\n".join(["| framework | class | run with |", "|---|---|---|", *rows])
    text = DOCS.read_text()
    begin, end = "<!-- frameworks -->\n", "\n<!-- end of frameworks -->"
    head, rest = text.split(begin)
    written, tail = rest.split(end)
    if os.environ.get("UPDATE_DOCS"):
        DOCS.write_text(head + begin + table + end + tail)
        return
    assert written == table


def test_tools_of_any_framework(workspace: Workspace, project: Project) -> None:
    turns = Turns(workspace, session="s")

    @checkpointed_tool(turns)
    def writes(text: str) -> None:
        project.write("a", text)

    project.write("a", "1")
    turns.begin_turn("first\nprompt", ["before the first"])
    writes("2")
    turns.begin_turn("second", ["before the second"], {"x": 1})
    project.write("b", "by hand")

    @checkpointed_tool(turns, "breaks")
    def fails() -> None:
        """Fails."""
        project.write("a", "3")
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    told = [(one.kind, one.message, one.turn, one.author) for one in workspace.list()][::-1]
    assert told == [
        ("turn", "first", 1, "other"),
        ("step", "after writes", 1, "agent"),
        ("turn", "second", 2, "other"),
        ("step", "before breaks", 2, "other"),
        ("step", "after breaks", 2, "agent"),
    ]
    assert fails.__doc__ == "Fails." and turns.checkpoint_of_turn(2).prompt == "first\nprompt"
    back = turns.rewind()
    assert (back.prompt, back.conversation, back.checkpoint.metadata) == ("second", ["before the second"], {"x": 1})
    assert project.files() == {"a": b"2"}
    turns.begin_turn("another second")
    writes("4")
    assert turns.rewind(2).conversation == ["before the first"] and project.files() == {"a": b"1"}
    with pytest.raises(ValueError, match="turns is 1, but the number of prompts to go back to is 0"):
        turns.rewind()


async def test_asynchronous_tools(workspace: Workspace, project: Project) -> None:
    turns = Turns(project.path, tools=["changes"])

    @checkpointed_tool(turns)
    async def changes() -> str:
        project.write("a", "2")
        return "done"

    @checkpointed_tool(turns)
    async def looks() -> None:
        project.write("seen", "1")

    project.write("a", "1")
    turns.begin_turn("it")
    assert await changes() == "done"
    await looks()
    assert [one.message for one in workspace.list()] == ["after changes", "it"]
    assert (await turns.arewind()).prompt == "it" and project.files() == {"a": b"1"}
    with pytest.raises(TypeError, match="generator"):
        checkpointed_tool(turns)(pieces)


def pieces() -> Iterator[int]:
    yield 1
