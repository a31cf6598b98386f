"""The text of results, in one line, and their HTML for notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import Change, Checkpoint

LONGEST_TEXT = 60
MOST_LINES = 2_000
"""The number of lines of a diff that a notebook shows."""


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Returns the first line of a text, shortened."""
    line = text.split("\n", 1)[0]
    return line if line == text and len(line) <= longest else line[: longest - 1] + "…"


def count(number: int, noun: str) -> str:
    """Returns a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fields(result: Any) -> str:
    """Returns the fields of a result that are not empty, each with its name."""
    shown = ((field.name, getattr(result, field.name)) for field in dataclasses.fields(result))
    return ", ".join(f"{name}={_value(value)}" for name, value in shown if value not in (None, [], {}, ""))


def _value(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"[{len(value)}]"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, str):
        return repr(cut(value))
    return str(value)


def frozen(value: Any) -> Any:
    """Returns a hashable value. Equal values give equal ones."""
    if isinstance(value, Mapping):
        return frozenset((key, frozen(each)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(map(frozen, value))
    return value


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns an HTML table. The cells are HTML."""
    head = "".join(f"<th style='text-align:left'>{escape(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def checkpoints(found: Iterable[Checkpoint]) -> str:
    """Returns checkpoints as an HTML table."""
    heads = ("id", "time", "kind", "message", "files", "+", "−")
    return table(heads, map(_checkpoint_row, found))


def _checkpoint_row(checkpoint: Checkpoint) -> list[str]:
    name = "" if checkpoint.name is None else f"<b>{escape(checkpoint.name)}</b> "
    mark = " 📌" if checkpoint.pinned else ""
    return [
        f"<code>{escape(checkpoint.short_id)}</code>",
        escape(checkpoint.timestamp.isoformat(sep=" ", timespec="seconds")),
        escape(checkpoint.kind),
        f"{name}{escape(cut(checkpoint.message))}{mark}",
        str(len(checkpoint.files_changed)),
        f"<span style='{GREEN}'>{checkpoint.insertions}</span>",
        f"<span style='{RED}'>{checkpoint.deletions}</span>",
    ]


def changes(found: Iterable[Change]) -> str:
    """Returns changes as an HTML table."""
    row: Callable[[Change], list[str]] = lambda change: [
        escape(change.status),
        f"<code>{escape(_text(change.path))}</code>",
        f"<span style='{GREEN}'>{change.insertions}</span>",
        f"<span style='{RED}'>{change.deletions}</span>",
    ]
    return table(("change", "path", "+", "−"), map(row, found))


GREEN = "color:#1a7f37"
RED = "color:#cf222e"
BLUE = "color:#0969da"


def patch(text: str) -> str:
    """Returns a patch as HTML, with colours."""
    lines = text.splitlines()
    shown = "\n".join(map(_patch_line, lines[:MOST_LINES]))
    more = f"\n… {count(len(lines) - MOST_LINES, 'more line')}" if len(lines) > MOST_LINES else ""
    return f"<pre style='line-height:1.3'>{shown}{more}</pre>"


def _patch_line(line: str) -> str:
    safe = escape(_text(line))
    if line.startswith(("+++", "---", "diff ", "index ")):
        return f"<b>{safe}</b>"
    style = {"+": GREEN, "-": RED, "@": BLUE}.get(line[:1])
    return f"<span style='{style}'>{safe}</span>" if style else safe


def _text(value: str) -> str:
    # Bytes that are not UTF-8 are lone surrogates, which a notebook can't encode.
    return value.encode("utf-8", "replace").decode("utf-8")
