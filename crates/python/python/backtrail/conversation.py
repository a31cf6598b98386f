"""A conversation as an attachment: any object that JSON can hold."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

NAME = "conversation.json"
"""The name of the attachment that holds it."""


def to_bytes(conversation: Any) -> bytes:
    """The conversation as it is kept."""
    try:
        return json.dumps(conversation, default=_plain).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"the conversation can't be kept as JSON: {problem}") from problem


def from_bytes(kept: bytes) -> Any:
    """The conversation as it was given, with lists for tuples and dictionaries for messages of a class of their own."""
    return json.loads(kept)


def _plain(message: Any) -> Any:
    """A message of a class of its own: a pydantic model, as most SDKs have it, or a dataclass."""
    if hasattr(message, "model_dump"):
        return message.model_dump(mode="json")
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return dataclasses.asdict(message)
    raise TypeError(f"a {type(message).__name__} is neither JSON, nor a pydantic model, nor a dataclass")
