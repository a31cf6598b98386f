"""Random schedules with the real LangGraph package: the files are those of the state, at every checkpoint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.graph")

from graph_schedules import NodeError, Schedule, tree_of  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402

FEW = 8
MANY = 1000


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_random_schedules(durability: str, tmp_path: Path) -> None:
    schedules = MANY if os.environ.get("BACKTRAIL_LONG") else FEW
    for seed in range(schedules):
        place = tmp_path / str(seed)
        Schedule(place, seed, durability).run(4)
        shutil.rmtree(place)


def run_in_process(place: Path, words: str) -> subprocess.CompletedProcess[str]:
    script = f"""
import os
from pathlib import Path
from graph_schedules import Schedule
from langgraph.checkpoint.sqlite import SqliteSaver

with SqliteSaver.from_conn_string({str(place / "state.db")!r}) as inner:
    schedule = Schedule(Path({str(place)!r}), 1, "sync", inner)
    config = {{"configurable": {{"thread_id": "one"}}}}
    {words}
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)


def test_a_new_process_continues_after_one_that_was_killed(tmp_path: Path) -> None:
    killed = run_in_process(
        tmp_path,
        """
    schedule.write_as_given = schedule.write
    def write(changes, appends):
        schedule.write_as_given(changes, appends=appends)
        if any(path.startswith("join/") for path in changes):
            (schedule.root / "half done").write_text("x")
            os._exit(7)
    schedule.write = write
    schedule.graph.invoke({"seed": 5, "tree": {"given": "from the start"}}, config, durability="sync")
""",
    )
    assert killed.returncode == 7, killed.stderr
    assert (tmp_path / "files/half done").exists()
    done = run_in_process(tmp_path, 'schedule.graph.invoke(None, config, durability="sync"); schedule.check()')
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "files/half done").exists()
    with SqliteSaver.from_conn_string(str(tmp_path / "state.db")) as inner:
        schedule = Schedule(tmp_path, 1, "sync", inner)
        config: Any = {"configurable": {"thread_id": "one"}}
        state = schedule.graph.get_state(config)
        assert state.next == () and tree_of(tmp_path / "files") == state.values["tree"]
        first = list(schedule.graph.get_state_history(config))[-2]
        schedule.graph.invoke(None, first.config, durability="sync")
        schedule.check()


def test_a_step_that_failed_is_taken_back_and_later_edits_are_kept(tmp_path: Path) -> None:
    schedule = Schedule(tmp_path, 1, "async")
    config: Any = {"configurable": {"thread_id": "one"}}
    schedule.fails = {"join"}
    with pytest.raises(NodeError):
        schedule.graph.invoke({"seed": 3, "tree": {"given": "from the start"}}, config)
    assert (tmp_path / "files/half done by join").exists()
    (tmp_path / "files/by hand").write_text("1")
    schedule.graph.invoke(None, config)
    expected = schedule.graph.get_state(config).values["tree"]
    assert tree_of(tmp_path / "files") == {**expected, "by hand": "1"}
