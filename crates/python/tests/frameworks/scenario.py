"""The same for each framework: two prompts, a tool that writes and one that deletes, and a rewind to before each prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backtrail import Workspace

root = Path(sys.argv[1]).absolute()
root.mkdir()
workspace = Workspace(root)
(root / "old").write_text("1")
(root / "kept").write_text("1")

PROMPTS = ["write it", "delete it"]
FILES = [{"old": "1", "kept": "1"}, {"old": "1", "kept": "1", "new": "2"}, {"kept": "1", "new": "2"}]
"""The files before the first prompt, after it, and after the second one."""

# The tools, as a framework's model calls them: the name and the arguments, one call for each prompt.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "new", "text": "2"}),
    ("delete_file", {"path": "old"}),
]


def write_file(path: str, text: str) -> str:
    """Writes a file.

    Args:
        path: The file.
        text: Its text.
    """
    (root / path).write_text(text)
    return "written"


def delete_file(path: str) -> str:
    """Deletes a file.

    Args:
        path: The file.
    """
    (root / path).unlink()
    return "deleted"


def files() -> dict[str, str]:
    """Returns the files of the workspace."""
    return {path.name: path.read_text() for path in root.iterdir()}


def files_at(checkpoint: str) -> dict[str, str]:
    """Returns the files of a checkpoint."""
    names = {name for tree in FILES for name in tree}
    held = {}
    for name in names:
        try:
            held[name] = workspace.read(checkpoint, name).decode()
        except LookupError:
            pass
    return held


def check(turns: Any, states: list[Any], rewind: Callable[[int], Any], state: Callable[[], Any], again: Callable[[], Any]) -> None:
    """Checks the checkpoints, and goes back to before each prompt.

    `states` has what the framework remembered before the first prompt, after it, and after the second one. `state`
    returns what it remembers now, and `again` runs the second prompt again.
    """
    assert files() == FILES[2], files()
    listed = workspace.list(safety=False)[::-1]
    told = [(one.kind, one.message, one.turn, one.prompt, one.session) for one in listed]
    assert [one[:2] for one in told if one[0] == "turn"] == [("turn", prompt) for prompt in PROMPTS], told
    steps = [(one.message, one.turn, one.prompt) for one in listed if one.kind == "step"]
    assert ("after write_file", 1, PROMPTS[0]) in steps and ("after delete_file", 2, PROMPTS[1]) in steps, steps
    assert {one.session for one in listed} == {turns.session} and {one.agent for one in listed} == {turns.agent}
    of_turns = [one for one in listed if one.kind == "turn"]
    assert [files_at(one.id) for one in of_turns] == FILES[:2]
    rewound = rewind(1)
    assert rewound.prompt == PROMPTS[1] and files() == FILES[1], files()
    assert state() == states[1], (state(), states[1])
    again()
    assert files() == FILES[2] and len(state()) == len(states[2]), (files(), state())
    rewind(2)
    assert files() == FILES[0], files()
    assert state() == states[0], (state(), states[0])
    print("as expected")
