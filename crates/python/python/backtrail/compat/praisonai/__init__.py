"""Replaces ``praisonaiagents.checkpoints``.

Provides both interfaces: the documented one (`list`, `get`, `delete`, `metadata`, `added_files`…) and that of the
released package (`list_checkpoints`, `get_checkpoint`, `rewind`…).
"""

from __future__ import annotations

from .service import CheckpointService
from .types import Checkpoint, CheckpointConfig, CheckpointDiff, CheckpointEvent, CheckpointResult, FileDiff

__all__ = [
    "Checkpoint",
    "CheckpointConfig",
    "CheckpointDiff",
    "CheckpointEvent",
    "CheckpointResult",
    "CheckpointService",
    "FileDiff",
]
