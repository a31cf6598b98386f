"""The same script against the original and against the drop-in: what differs stands in docs/python.md.

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
def test_what_differs_is_written_down(name: str, python: Path, tmp_path: Path) -> None:
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


def test_an_agent_of_praisonai_uses_a_wrapped_tool(python: Path, tmp_path: Path) -> None:
    source = '''
import asyncio, json, os, sys
from pathlib import Path
os.environ.setdefault("OPENAI_API_KEY", "none")
from praisonaiagents import Agent
from backtrail.compat.praisonai import CheckpointService
workspace = Path(sys.argv[1])
service = CheckpointService(str(workspace), sys.argv[2])
asyncio.run(service.initialize())
def put_note(path: str, content: str) -> str:
    """Writes a file."""
    (workspace / path).write_text(content)
    return "done"
(workspace / "a").write_text("1")
agent = Agent(instructions="You write files.", tools=[service.wrap_tool(put_note)])
result = agent.execute_tool("put_note", {"path": "a", "content": "2"})
checkpoints = asyncio.run(service.list())
asyncio.run(service.restore(checkpoints[0].id))
print(json.dumps([str(result), [one.message for one in checkpoints], (workspace / "a").read_text()]))
'''
    assert scripts_runner.run(source, tmp_path / "run", python) == ["done", ["before put_note"], "1"]


def test_the_mixin_of_fabricatio(python: Path, tmp_path: Path) -> None:
    source = '''
import json, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from pathlib import Path
os.environ["FABRICATIO_EXT__CHECKPOINT__CHECKPOINT_DIR"] = sys.argv[2]
import fabricatio_core
from fabricatio_core.capabilities.usages import UseLLM
from backtrail.compat.fabricatio import Checkpoint
workspace = Path(sys.argv[1])
class Agent(Checkpoint):
    name: str = "agent"
    description: str = "an agent"
(workspace / "a").write_text("1")
agent = Agent(worktree_dir=workspace).mount_checkpoint_store()
first = agent.save_checkpoint()
(workspace / "a").write_text("2")
agent.rollback(first, "a")
print(json.dumps([issubclass(Agent, UseLLM), len(first), (workspace / "a").read_text(), Path(sys.argv[2]).is_dir()]))
'''
    assert scripts_runner.run(source, tmp_path / "run", python) == [True, 40, "1", True]


def _shown(value: object) -> str:
    return "`" + str(value).replace("|", "\\|").replace("\n", "\\n") + "`"
