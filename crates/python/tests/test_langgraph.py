"""Tests with the real LangGraph package."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from conftest import Project

from backtrail import UnknownCheckpointError, Workspace

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402

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
    assert project.read("count") == "0"
    assert [found async for found in saver.alist(config)]
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(config) is None
