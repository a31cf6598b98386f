"""Random schedules of a LangGraph graph that writes files, and a check of every checkpoint that they leave.

Each node records in the graph's state what it wrote, so that the state says which files there must be.

    python graph_schedules.py DIRECTORY DURABILITY FIRST COUNT
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from backtrail import Workspace
from backtrail.langgraph import FileCheckpointSaver

Tree = dict[str, "str | None"]


class NodeError(Exception):
    """The failure of a node."""


def merged(old: Tree, new: Tree) -> Tree:
    """Returns a tree with changes applied. `None` stands for a deleted file."""
    return {path: text for path, text in {**(old or {}), **new}.items() if text is not None}


class State(TypedDict, total=False):
    tree: Annotated[Tree, merged]
    seed: int
    asks: str
    notes: str


def tree_of(directory: Path) -> Tree:
    """Returns the files of a directory."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text() for path in files}


NODES = ("plan", "left", "right", "inner", "join")


class Schedule:
    """A graph over a workspace, and random things done with it."""

    def __init__(self, place: Path, seed: int, durability: str, inner: BaseCheckpointSaver[Any] | None = None) -> None:
        self.random = random.Random(seed)
        self.durability = durability
        self.root = place / "files"
        self.scratch = place / "scratch"
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "given").write_text("from the start")
        self.inner = inner or InMemorySaver()
        self.fails: set[str] = set()
        self.threads = ["one", "two"]
        self.done: list[str] = []
        self.trees: dict[str, Tree] = {}
        self.compared: set[str] = set()
        self.open()

    def open(self) -> None:
        """Begins anew, as another process would."""
        self.workspace = Workspace(self.root, store=self.root.parent / "store")
        self.saver = FileCheckpointSaver(self.inner, self.workspace)
        self.graph: Any = self.build()

    def build(self) -> Any:
        below = StateGraph(State)
        below.add_node("inner", self.node("inner"))
        below.add_edge(START, "inner")
        below.add_edge("inner", END)
        builder = StateGraph(State)
        for name in ("plan", "left", "right", "join"):
            builder.add_node(name, self.node(name))
        builder.add_node("below", below.compile())
        builder.add_edge(START, "plan")
        builder.add_edge("plan", "left")
        builder.add_edge("plan", "right")
        builder.add_edge(["left", "right"], "below")
        builder.add_edge("below", "join")
        builder.add_edge("join", END)
        return builder.compile(checkpointer=self.saver)

    def node(self, name: str) -> Any:
        def run(state: State) -> State:
            own = random.Random(f"{state['seed']}-{name}")
            changes: Tree = {}
            for number in range(3):
                path = f"{name}/{number}"
                if own.random() < 0.6:
                    # The earlier text makes a step visible that ran twice on the same files.
                    earlier = state["tree"].get(path) or ""
                    changes[path] = f"{earlier}{state['seed']} "
                elif path in state["tree"] and name != "inner":
                    # What a subgraph returns can't say that something is gone.
                    changes[path] = None
            self.write(changes, appends=own.random() < 0.5)
            if name in self.fails:
                self.fails.discard(name)
                if name not in ("left", "right"):
                    (self.root / f"half done by {name}").write_text("x")
                raise NodeError(name)
            if state.get("asks") == name:
                interrupt("go on?")
            return {"tree": changes}

        return run

    def write(self, changes: Tree, *, appends: bool) -> None:
        for path, text in changes.items():
            file = self.root / path
            if text is None:
                file.unlink(missing_ok=True)
                continue
            file.parent.mkdir(exist_ok=True)
            if appends and path.split("/")[0] not in ("left", "right"):
                # Right only if the file is as the state says.
                with file.open("a") as opened:
                    opened.write(text.split(" ")[-2] + " ")
            else:
                file.write_text(text)

    # What happens

    def run(self, steps: int) -> None:
        """Begins a run, and then acts at random. Checks every checkpoint after each action."""
        self.begin()
        self.check()
        for _ in range(steps - 1):
            actions = [self.begin, self.begin, self.go_on, self.travel, self.travel, self.update, self.reopen]
            self.random.choice(actions)()
            self.check()

    def config(self) -> Any:
        return {"configurable": {"thread_id": self.random.choice(self.threads)}}

    def invoke(self, given: Any, config: Any) -> None:
        if self.random.random() < 0.3:
            self.fails.add(self.random.choice(NODES))
        try:
            if self.random.random() < 0.4:
                asyncio.run(self.graph.ainvoke(given, config, durability=self.durability))
            else:
                self.graph.invoke(given, config, durability=self.durability)
        except NodeError as failure:
            self.done.append(f"  {failure} failed")
        self.fails.clear()

    def begin(self) -> None:
        config = self.config()
        state = self.graph.get_state(config)
        given: State = {"seed": self.random.randrange(1000), "asks": self.random.choice([*NODES, "", "", ""])}
        if not state.values:
            # A new thread starts with the files that are there.
            given["tree"] = tree_of(self.root)
        self.done.append(f"begin {config} {given.get('seed')} asks {given['asks']}")
        self.invoke(given, config)

    def go_on(self) -> None:
        config = self.config()
        state = self.graph.get_state(config)
        if not state.next:
            return
        self.done.append(f"go on {config} at {state.next}, interrupts {len(state.interrupts)}")
        self.invoke(Command(resume="yes") if state.interrupts else None, config)

    def travel(self) -> None:
        past = list(self.graph.get_state_history(self.config()))
        if not past:
            return
        state = self.random.choice(past)
        self.done.append(f"travel to {state.config['configurable']} {state.next}")
        if state.next:
            self.invoke(None, state.config)
        else:
            self.saver.rewind(state.config)

    def update(self) -> None:
        config = self.config()
        # An update of an input that was not applied yet discards the input.
        past = [state for state in self.graph.get_state_history(config) if "__start__" not in state.next]
        if not past or "__start__" in self.graph.get_state(config).next:
            return
        if self.random.random() < 0.5:
            config = self.random.choice(past).config
        self.done.append(f"update {config['configurable']}")
        config = self.graph.update_state(config, {"notes": "x"}, as_node=self.random.choice(["plan", "join"]))
        if self.random.random() < 0.7:
            self.check()
            self.done.append("and go on")
            self.invoke(None, self.random.choice([config, {"configurable": {"thread_id": _thread(config)}}]))

    def reopen(self) -> None:
        self.done.append("reopen")
        self.open()

    # What must be true

    def check(self) -> None:
        """Compares the files with the state at every checkpoint of every thread."""
        for thread in self.threads:
            for state in self.graph.get_state_history({"configurable": {"thread_id": thread}}):
                if "__start__" in state.next:
                    # The input, with the tree that may be given in it, is not applied yet.
                    continue
                files = self.files(self.saver.files_at(state.config))
                expected = state.values.get("tree", {})
                where = f"{state.config['configurable']} {state.metadata}"
                self.compared.add(state.config["configurable"]["checkpoint_id"])
                assert files == expected, "\n".join([f"{where}: {files} is not {expected}", *self.done])

    def files(self, checkpoint: str) -> Tree:
        if checkpoint not in self.trees:
            self.workspace.export(checkpoint, self.scratch)
            self.trees[checkpoint] = tree_of(self.scratch)
            shutil.rmtree(self.scratch)
        return self.trees[checkpoint]


def _thread(config: Any) -> str:
    return str(config["configurable"]["thread_id"])


def main() -> None:
    place, durability, first, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    checked = 0
    for seed in range(first, first + count):
        schedule = Schedule(place / str(seed), seed, durability)
        schedule.run(4)
        checked += len(schedule.compared)
        shutil.rmtree(place / str(seed))
    print(f"{durability}: {count} schedules, {checked} checkpoints compared")


if __name__ == "__main__":
    main()
