"""Stores a conversation as an attachment. It is any object that JSON can represent, or messages of any SDK."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import os
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

NAME = "conversation.json"
"""The name of the attachment."""


def to_bytes(conversation: Any) -> bytes:
    """Converts a conversation into the bytes of the attachment."""
    try:
        try:
            return json.dumps(conversation, default=_plain).encode("ascii")
        except TypeError as problem:
            if "keys must be" not in str(problem):
                raise
            return json.dumps(_with_text_keys(conversation)).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"the conversation can't be stored as JSON: {problem}") from problem


def from_bytes(kept: bytes) -> Any:
    """Returns the conversation in the types of JSON: pydantic models and dataclasses are dictionaries, tuples and sets
    are lists, times are ISO 8601, and bytes are base64."""
    return json.loads(kept)


def _base64(value: bytes | bytearray | memoryview) -> str:
    # The alphabet that pydantic reads and writes.
    return base64.urlsafe_b64encode(value).decode("ascii")


def _sorted(values: Set[Any]) -> list[Any]:
    # The order of a set differs from process to process, and equal conversations should have equal bytes.
    return sorted(values, key=lambda value: (type(value).__name__, str(value)))


_CONVERSIONS: list[tuple[type | tuple[type, ...], Callable[[Any], Any]]] = [
    (enum.Enum, lambda value: value.value),
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    ((uuid.UUID, Decimal), str),
    (os.PathLike, os.fspath),
    ((bytes, bytearray, memoryview), _base64),
    (Set, _sorted),
    (Mapping, dict),
    (deque, list),
]


def _plain(value: Any) -> Any:
    """Converts a value that JSON lacks. Values inside of it may still need to be converted."""
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _dumped(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"{type(value).__name__} is neither a JSON type, nor a pydantic model, nor a dataclass")


def _dumped(model: Any) -> Any:
    """Converts a pydantic model, which most SDKs use for their messages."""
    try:
        return model.model_dump(mode="json")
    except ValueError:
        # Bytes that are not UTF-8, and types that only this module knows.
        return model.model_dump(mode="python")


def _with_text_keys(value: Any) -> Any:
    """Converts a value and everything in it, including keys that are no text."""
    if isinstance(value, Mapping):
        return {_key(key): _with_text_keys(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text_keys(each) for each in value]
    if isinstance(value, str | int | float | None) and not isinstance(value, enum.Enum):
        return value
    return _with_text_keys(_plain(value))


def _key(key: Any) -> Any:
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if isinstance(key, str | int | float | None):
        return key
    plain = tuple(map(_key, key)) if isinstance(key, tuple) else _plain(key)
    return plain if isinstance(plain, str) else str(plain)
