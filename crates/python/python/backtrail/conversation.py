"""Stores a conversation as an attachment. It is any object that JSON can represent."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

NAME = "conversation.json"
"""The name of the attachment."""


def to_bytes(conversation: Any) -> bytes:
    """Converts a conversation into the bytes of the attachment."""
    try:
        return json.dumps(conversation, default=_plain).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"the conversation can't be stored as JSON: {problem}") from problem


def from_bytes(kept: bytes) -> Any:
    """Returns the conversation as it was given, except that tuples are lists, and pydantic models and dataclasses are
    dictionaries."""
    return json.loads(kept)


def _plain(message: Any) -> Any:
    """Converts a message object into a dictionary: a pydantic model, which most SDKs use, or a dataclass."""
    if hasattr(message, "model_dump"):
        return message.model_dump(mode="json")
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return dataclasses.asdict(message)
    raise TypeError(f"{type(message).__name__} is neither a JSON type, nor a pydantic model, nor a dataclass")
