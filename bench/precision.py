"""Measures `revert`, `blame` and `fork` after many checkpoints, each against its limit."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tools
import trees

CHECKPOINTS = 1_000
LINES, TOUCHED = 2_000, 200
PROMPT_FILES = 20
# The limits: a revert against a restore of the same paths, blame in milliseconds, a fork against a copy by cp.
REVERT_LIMIT, BLAME_LIMIT, FORK_LIMIT = 2.0, 300.0, 1.5


def measure(scratch, tree, binary, rounds):
    """Returns the medians in milliseconds, with the limit of each as a ratio."""
    subject = tools.Backtrail(scratch, tree, binary)
    subject.forget()
    files = [path for path in trees.files_of(tree) if path.suffix not in (".png", ".woff")]
    names = prepare(subject, tree, files)
    before = answer(subject, "show", "turn:1")["checkpoint"]["id"]
    rows = {"revert of a prompt": [], "restore of its paths": [], "blame": [], "fork": [], "cp": [], "cp and sync": []}
    for number in range(rounds):
        rows["revert of a prompt"].append(subject.command("revert", "turn:1"))
        subject.command("undo")
        rows["restore of its paths"].append(subject.command("restore", before, *names))
        subject.command("undo")
        rows["blame"].append(subject.command("blame", "touched.txt"))
        target = scratch / f"copy-{number}"
        entries = [str(path) for path in tree.iterdir() if path.name != ".git"]
        for name in ("cp", "fork") if number % 2 else ("fork", "cp"):
            os.sync()
            if name == "fork":
                rows["fork"].append(subject.command("fork", str(target)))
            else:
                target.mkdir()
                took = subject.run("cp", "--reflink=auto", "-r", *entries, str(target))
                began = time.perf_counter()
                subprocess.run(["sync", "-f", str(target)], check=True)
                rows["cp"].append(took)
                rows["cp and sync"].append(took + (time.perf_counter() - began) * 1000)
            shutil.rmtree(target)
    return {name: statistics.median(times) for name, times in rows.items()}


def prepare(subject, tree, files):
    """Takes the checkpoints. One prompt edits some files, and later checkpoints edit others. Returns the prompt's files."""
    touched = tree / "touched.txt"
    lines = [f"line {number}\n" for number in range(LINES)]
    touched.write_text("".join(lines))
    subject.save()
    of_prompt, others = files[:PROMPT_FILES], files[PROMPT_FILES:]
    for number in range(CHECKPOINTS):
        if number == CHECKPOINTS // 2:
            hook(subject, "UserPromptSubmit", prompt="edit some files")
            call = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "x"}}
            hook(subject, "PreToolUse", **call)
            append(of_prompt, "of the prompt")
            hook(subject, "PostToolUse", **call)
        if number % (CHECKPOINTS // TOUCHED) == 0:
            lines[number * 7919 % LINES] = f"edit {number}\n"
            touched.write_text("".join(lines))
        append([others[number % len(others)]], f"edit {number}")
        subject.save()
        if number % 100 == 99:
            print(f"{number + 1} checkpoints", file=sys.stderr)
    return [str(path) for path in of_prompt]


def append(paths, text):
    for path in paths:
        with open(path, "ab") as stream:
            stream.write(f"{text}\n".encode())


def hook(subject, event, **payload):
    """Reports an event of an agent's session, as the agent does."""
    payload = {"session_id": "s", "hook_event_name": event, "cwd": str(subject.tree), **payload}
    subprocess.run(
        [subject.binary, "hook", "claude"], input=json.dumps(payload).encode(), cwd=subject.tree, env=subject.environment,
        stdout=subprocess.DEVNULL, check=True,
    )


def answer(subject, *words):
    done = subprocess.run(
        [subject.binary, "-w", str(subject.tree), "--json", *words], env=subject.environment, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def table(rows):
    """Returns the table as Markdown, with each ratio and its limit."""
    ratio = {
        "revert of a prompt": (rows["revert of a prompt"] / rows["restore of its paths"], REVERT_LIMIT),
        "blame": (rows["blame"] / BLAME_LIMIT, 1.0),
        "fork": (rows["fork"] / rows["cp"], FORK_LIMIT),
    }
    lines = ["| what | ms | ratio | limit |", "|---|---|---|---|"]
    for name, value in rows.items():
        found = f"{ratio[name][0]:.2f} | {ratio[name][1]:.1f}" if name in ratio else " | "
        lines.append(f"| {name} | {value:.0f} | {found} |")
    return "\n".join(lines)
