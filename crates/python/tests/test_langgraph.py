"""Tests with the real LangGraph package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

import pytest
from conftest import Project

from backtrail import BusyError, UnknownCheckpointError, UnknownPathError, Workspace

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402

from langgraph.errors import EmptyInputError  # noqa: E402

from backtrail import _graph_runs as runs  # noqa: E402
from backtrail.langgraph import METADATA_KEY, FileCheckpointSaver  # noqa: E402


class State(TypedDict):
    count: int


def graph_over(project: Project, saver: FileCheckpointSaver) -> Any:
    def write(state: State) -> State:
        count = state["count"] + 1
        project.write("count", str(count))
        return {"count": count}

    builder = StateGraph(State)
    builder.add_node("one", write)
    builder.add_node("two", write)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    return builder.compile(checkpointer=saver)


def record(project: Project, seen: list[str]) -> None:
    """Notes the count on disk before each write of a node."""
    write = project.write

    def noting(name: str, content: str | bytes) -> Path:
        seen.append(project.read("count"))
        return write(name, content)

    project.write = noting  # type: ignore[method-assign]


def test_rewind_restores_files_and_state(project: Project, workspace: Workspace) -> None:
    project.write("count", "0")
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    graph = graph_over(project, saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    assert graph.invoke({"count": 0}, config, durability="sync") == {"count": 2} and project.read("count") == "2"
    states = {state.next: state for state in graph.get_state_history(config)}
    between = states[("two",)]
    assert between.values == {"count": 1} and METADATA_KEY in between.metadata
    assert workspace.read(saver.files_at(between.config), "count") == b"1"
    back = saver.rewind(between.config)
    assert project.read("count") == "1" and graph.get_state(back).values == {"count": 1}
    project.write("count", "by hand")
    assert graph.invoke(None, back, durability="sync") == {"count": 2} and project.read("count") == "2"
    assert len(workspace.list(session="t")) >= 3
    workspace.undo()
    saver.delete_thread("t")
    assert list(saver.list(config)) == []
    with pytest.raises(UnknownCheckpointError):
        saver.rewind(between.config)


def test_going_back_needs_no_rewind_and_no_durability(project: Project, workspace: Workspace) -> None:
    project.write("count", "0")
    graph = graph_over(project, FileCheckpointSaver(InMemorySaver(), workspace))
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"count": 0}, config)
    between = next(state for state in graph.get_state_history(config) if state.next == ("two",))
    seen: list[str] = []
    record(project, seen)
    assert graph.invoke(None, between.config) == {"count": 2}
    assert seen == ["1"], "the files were restored before the first node ran"
    assert {checkpoint.kind for checkpoint in workspace.list(safety=False)} == {"thread"}


def test_only_looking_at_the_state_restores_nothing(project: Project, workspace: Workspace) -> None:
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    graph = graph_over(project, saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"count": 0}, config)
    project.write("count", "by hand")
    for state in graph.get_state_history(config):
        graph.get_state(state.config)
        graph.update_state(state.config, {"count": 5})
    assert project.read("count") == "by hand"


def test_a_thread_without_its_files_says_so(project: Project, workspace: Workspace) -> None:
    project.write("count", "0")
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    graph = graph_over(project, saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"count": 0}, config)
    first = list(graph.get_state_history(config))[-1]
    files = saver.files_at(first.config)
    workspace.delete(files)
    with pytest.raises(UnknownCheckpointError, match=f"of the thread 't' were deleted: {files}"):
        graph.invoke(None, first.config)
    assert graph.invoke({"count": 5}, config) == {"count": 7}, "the failed run does not block the next one"


THREAD: Any = {"configurable": {"thread_id": "t"}}


class Branches(TypedDict, total=False):
    left: str
    right: str
    said: str


def branches_over(project: Project, workspace: Workspace, runs_of_right: list[str]) -> Any:
    """Returns a graph with two branches. Once the right one is done, the left one fails for the first time."""
    has_failed: list[bool] = []
    saver = FileCheckpointSaver(InMemorySaver(), workspace)

    def channels_written() -> set[str]:
        found = saver.inner.get_tuple(THREAD)
        return {channel for _, channel, _ in (found.pending_writes or [] if found else [])}

    def left(state: Branches) -> Branches:
        if not has_failed:
            has_failed.append(True)
            wait_for(lambda: "right" in channels_written())
            project.write("half done", "x")
            raise KeyError
        project.write("left", "1")
        return {"left": "1"}

    def right(state: Branches) -> Branches:
        runs_of_right.append("ran")
        project.write("right", "1")
        return {"right": "1"}

    builder = StateGraph(Branches)
    builder.add_node("one", left)
    builder.add_node("two", right)
    for name in ("one", "two"):
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    return builder.compile(checkpointer=saver)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_work_of_a_branch_stays_if_another_one_fails(project: Project, workspace: Workspace) -> None:
    seen: list[str] = []
    graph = branches_over(project, workspace, seen)
    config: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(KeyError):
        graph.invoke({"said": "x"}, config)
    assert project.files().keys() == {"right", "half done"}
    graph.invoke(None, config)
    assert seen == ["ran"], "LangGraph does not run the other branch again"
    assert project.files().keys() == {"left", "right"}
    assert graph.get_state(config).values == {"left": "1", "right": "1", "said": "x"}


def test_an_update_includes_the_work_of_branches_that_are_done(project: Project, workspace: Workspace) -> None:
    graph = branches_over(project, workspace, [])
    config: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(KeyError):
        graph.invoke({"said": "x"}, config)
    updated = graph.update_state(config, None, as_node=END)
    saver = graph.checkpointer
    assert graph.get_state(updated).values == {"right": "1", "said": "x"}
    assert workspace.read(saver.files_at(updated), "right") == b"1"
    with pytest.raises(UnknownPathError):
        workspace.read(saver.files_at(updated), "half done")


def test_an_update_within_a_run_keeps_the_files_of_its_parent(project: Project, workspace: Workspace) -> None:
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    other: Any = {"configurable": {"thread_id": "other"}}
    graph = graph_over(project, saver)
    graph.invoke({"count": 0}, other)

    def update(state: State) -> State:
        project.write("count", "half done")
        updated.append(graph.update_state(other, {"count": 7}, as_node="two"))
        project.write("count", "20")
        return {"count": 20}

    updated: list[Any] = []
    builder = StateGraph(State)
    builder.add_node("update", update)
    builder.add_edge(START, "update")
    builder.compile(checkpointer=saver).invoke({"count": 0}, {"configurable": {"thread_id": "t"}})
    assert workspace.read(saver.files_at(updated[0]), "count") == b"2"


def test_deleting_a_thread_deletes_its_files(project: Project, workspace: Workspace) -> None:
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    graph = graph_over(project, saver)
    for thread in ("a", "b"):
        graph.invoke({"count": 0}, {"configurable": {"thread_id": thread}})
    of_b = {checkpoint.id for checkpoint in workspace.list(kind="thread", session="b")}
    assert workspace.list(kind="thread", session="a") and of_b
    workspace.prune()
    saver.delete_thread("a")
    assert {checkpoint.id for checkpoint in workspace.list(kind="thread")} == of_b


def test_two_threads_take_turns(project: Project, workspace: Workspace) -> None:
    graph = graph_over(project, FileCheckpointSaver(InMemorySaver(), workspace))
    one: Any = {"configurable": {"thread_id": "one"}}
    two: Any = {"configurable": {"thread_id": "two"}}
    graph.invoke({"count": 0}, one)
    graph.invoke({"count": 10}, two)
    assert project.read("count") == "12"
    seen: list[str] = []
    record(project, seen)
    graph.invoke({"count": 2}, one)
    assert seen == ["2", "3"], "the files of the other thread were set aside"


def test_a_second_thread_is_refused_while_one_runs(project: Project, workspace: Workspace) -> None:
    saver = FileCheckpointSaver(InMemorySaver(), workspace)
    other = graph_over(project, FileCheckpointSaver(InMemorySaver(), Workspace(project.path)))
    refused: list[str] = []

    def meddle(state: State) -> State:
        for thread, graph in (("two", other), ("one", other)):
            with ThreadPoolExecutor() as pool:
                job = pool.submit(graph.invoke, {"count": 0}, {"configurable": {"thread_id": thread}})
                with pytest.raises(BusyError) as problem:
                    job.result()
            refused.append(str(problem.value))
        with pytest.raises(BusyError):
            saver.rewind({"configurable": {"thread_id": "one"}})
        return {"count": 1}

    builder = StateGraph(State)
    builder.add_node("meddle", meddle)
    builder.add_edge(START, "meddle")
    config: Any = {"configurable": {"thread_id": "one"}}
    assert builder.compile(checkpointer=saver).invoke({"count": 0}, config) == {"count": 1}
    assert "the graph's thread 'one' is running on" in refused[0] and "'two' can't run there" in refused[0]
    assert other.invoke({"count": 0}, {"configurable": {"thread_id": "two"}}) == {"count": 2}


def test_another_process_is_refused_while_a_thread_runs(project: Project, workspace: Workspace) -> None:
    run = runs.begin(workspace, "one")
    line = f"from backtrail import Workspace, _graph_runs as r; r.begin(Workspace({str(project.path)!r}), 'two')"
    try:
        refused = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    finally:
        runs.end(run)
    assert "another process runs a graph on" in refused.stderr and "'two'" in refused.stderr
    assert subprocess.run([sys.executable, "-c", line]).returncode == 0


async def test_a_run_that_could_not_begin_does_not_block_the_next(project: Project, workspace: Workspace) -> None:
    graph = graph_over(project, FileCheckpointSaver(InMemorySaver(), workspace))
    config: Any = {"configurable": {"thread_id": "one"}}
    with pytest.raises(EmptyInputError) as kept:
        graph.invoke(None, config)
    assert graph.invoke({"count": 0}, config) == {"count": 2}, kept
    with pytest.raises(EmptyInputError):
        await asyncio.create_task(graph.ainvoke(None, {"configurable": {"thread_id": "two"}}))
    assert await asyncio.create_task(graph.ainvoke({"count": 0}, config)) == {"count": 2}


async def test_other_methods_are_forwarded_to_the_inner_checkpointer(project: Project) -> None:
    inner = InMemorySaver()
    saver = FileCheckpointSaver(inner, project.path)
    assert saver.config_specs == inner.config_specs
    narrowed = saver.with_allowlist([("some.module", "Message")])
    assert isinstance(narrowed, FileCheckpointSaver) and narrowed.workspace is saver.workspace
    assert type(narrowed.inner) is type(inner)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "none"}}
    if hasattr(inner, "aget_delta_channel_history"):
        theirs = await inner.aget_delta_channel_history(config=config, channels=["count"])
        assert await saver.aget_delta_channel_history(config=config, channels=["count"]) == theirs


async def test_asyncio(project: Project) -> None:
    project.write("count", "0")
    saver = FileCheckpointSaver(InMemorySaver(), project.path)
    graph = graph_over(project, saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"count": 0}, config, durability="sync")
    states = [state async for state in graph.aget_state_history(config)]
    first = next(state for state in states if state.next == ("one",))
    await saver.arewind(first.config)
    assert not saver.restore(saver.files_at(first.config)).changes
    assert project.read("count") == "0"
    assert [found async for found in saver.alist(config)]
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(config) is None
