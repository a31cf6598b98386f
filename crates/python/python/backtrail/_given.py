"""Converts the arguments of callers into the form that the native half expects. Errors name the invalid argument."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from .errors import UsageError
from .results import Checkpoint, Saved, milliseconds

StrPath = str | os.PathLike[str]
"""A path that a caller passes."""

CheckpointRef = str | Checkpoint | Saved
"""A checkpoint, or a word for one: an id or its first characters, a name, ``@``, ``@~2``, ``latest``, ``step:3``…"""


def word(checkpoint: CheckpointRef) -> str:
    if isinstance(checkpoint, str):
        return text("the checkpoint name", checkpoint)
    if isinstance(checkpoint, Checkpoint | Saved):
        return checkpoint.id
    raise TypeError(f"checkpoint must be a str, a Checkpoint or a Saved, not {type(checkpoint).__name__}")


def word_or_none(checkpoint: CheckpointRef | None) -> str | None:
    return None if checkpoint is None else word(checkpoint)


def text(what: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not valid Unicode, because it has a lone surrogate: {value!r}") from None
    return value


_PATH = (str, bytes, os.PathLike)


def path(value: StrPath) -> str:
    found = os.fsdecode(value)
    # An empty path would mean the whole directory. Most often it comes from a variable that was never set.
    if not found:
        raise UsageError("a path is empty; use '.' for the directory itself")
    return found


def paths(values: StrPath | Iterable[StrPath]) -> list[str]:
    if isinstance(values, _PATH):
        return [path(values)]
    return [path(value) for value in values]


def paths_or_none(values: StrPath | Iterable[StrPath] | None) -> list[str] | None:
    return None if values is None else paths(values)


def ids_or_none(values: Iterable[str] | None) -> list[str] | None:
    if isinstance(values, str):
        raise TypeError("hunks must be a list of ids, not a str")
    return None if values is None else [text("the id of a hunk", value) for value in values]


def since(value: datetime | timedelta) -> int:
    """Converts a time or an age into milliseconds since the epoch."""
    if isinstance(value, timedelta):
        return max(time.time_ns() // 1_000_000 - value // timedelta(milliseconds=1), 0)
    if isinstance(value, datetime):
        return _in_utc("since", value)
    raise TypeError(f"since must be a timedelta or a datetime, not {type(value).__name__}")


def _in_utc(name: str, moment: datetime) -> int:
    try:
        return milliseconds(moment)
    except (OverflowError, ValueError):
        raise UsageError(f"{name} is {moment}, which is out of range in UTC") from None


def age(older_than: datetime | timedelta) -> int:
    """Converts a time or an age into an age in milliseconds."""
    if isinstance(older_than, datetime):
        age = time.time_ns() // 1_000_000 - _in_utc("older_than", older_than)
    elif isinstance(older_than, timedelta):
        age = older_than // timedelta(milliseconds=1)
    else:
        raise TypeError(f"older_than must be a timedelta or a datetime, not {type(older_than).__name__}")
    if age < 0:
        raise UsageError(f"older_than is {older_than}, which is in the future")
    return age


def attachment(name: str, value: bytes | str) -> bytes:
    if isinstance(value, str):
        return text(f"the attachment {name!r}", value).encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"the attachment {name!r} must be bytes or str, not {type(value).__name__}")


def json_text(name: str, values: Mapping[str, Any] | None) -> str | None:
    if not values:
        return None
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(values).__name__}")
    try:
        written = json.dumps(dict(values), ensure_ascii=False, allow_nan=False)
        written.encode()
        json.loads(written, parse_int=_number)
        return written
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"{name} can't be stored as JSON: {problem}") from problem


def _number(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        # Other programs that read the record would convert the number to floating point, and lose digits.
        raise ValueError(f"{digits} does not fit into 64 bits")
    return number
