"""Runs the same script with the original and with the drop-in. docs/python.md lists the differences.

UPDATE_DOCS=1 rewrites the tables there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import originals
import pytest
import scripts_runner

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[3] / "docs/python.md"
NAMES = {
    "praisonai_released": "praisonaiagents 1.7.17",
    "architect_documented": "architect-ai-cli 1.1.0",
    "fabricatio_documented": "fabricatio-checkpoint 0.3.6",
}


@pytest.fixture(scope="session")
def python() -> Path:
    found = originals.environment(Path(sys.prefix + "-originals"))
    if found is None:
        pytest.skip("the original packages can't be installed here: they need Python 3.12 and the package index")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_lists_the_differences(name: str, python: Path, tmp_path: Path) -> None:
    theirs = scripts_runner.run((scripts_runner.SCRIPTS / f"{name}.py").read_text(), tmp_path / "theirs", python)
    ours = scripts_runner.run(scripts_runner.with_our_import(name), tmp_path / "ours", python)
    assert set(ours) == set(theirs)
    rows = [f"| {key} | {_shown(theirs[key])} | {_shown(ours[key])} |" for key in ours if theirs[key] != ours[key]]
    table = "\n".join([f"| | {NAMES[name]} | drop-in |", "|---|---|---|", *rows])
    text = DOCS.read_text()
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    head, rest = text.split(begin)
    written, tail = rest.split(end)
    if os.environ.get("UPDATE_DOCS"):
        DOCS.write_text(head + begin + table + end + tail)
        return
    assert written == table


AGENTS = Path(__file__).parent / "agents"


def test_a_praisonai_agent_with_a_wrapped_tool(python: Path, tmp_path: Path) -> None:
    assert scripts_runner.run((AGENTS / "praisonai_agent.py").read_text(), tmp_path / "run", python) == {
        "asked": [["system", "user", "put_note"], ["system", "user", "assistant", "tool", "put_note"]],
        "answer": "written",
        "the agent changed it": "2",
        "checkpoints": ["before put_note"],
        "told": ["before put_note"],
        "restored": "1",
    }


def test_the_fabricatio_mixin(python: Path, tmp_path: Path) -> None:
    assert scripts_runner.run((AGENTS / "fabricatio_agent.py").read_text(), tmp_path / "run", python) == {
        "is one of theirs": True,
        "id": 40,
        "diff": True,
        "one file": ["1", "2"],
        "all files": ["1", "1"],
        "without a store": "Checkpoint store is not mounted.",
        "checkpoints lie where they should": True,
    }


def _shown(value: object) -> str:
    return "`" + str(value).replace("|", "\\|").replace("\n", "\\n") + "`"
