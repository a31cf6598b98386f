"""The agent's own files: the feature list and the progress file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .engine import Engine

FEATURE_LIST_FILE = "feature_list.json"
PROGRESS_FILE = "claude-progress.txt"

_DONE = {"complete", "completed", "done", "passed", "passing"}
_OPEN = {"current", "in_progress", "in-progress", "active"}


@dataclass
class FeatureState:
    """The content of the feature list, and the path of its copy."""

    current: str | None = None
    completed: list[str] = field(default_factory=list)
    snapshot_path: str = ""


def state_files(project_dir: str | Path) -> list[str]:
    """Returns the state files that exist. They are captured by name, because a project may ignore them."""
    return [name for name in (FEATURE_LIST_FILE, PROGRESS_FILE) if (Path(project_dir) / name).is_file()]


def parse(text: bytes, snapshot_path: str = "") -> FeatureState:
    """Reads a feature list: ``{"current", "completed"}``, or a list of features with an id and a status or ``passes``."""
    try:
        document = json.loads(text)
    except ValueError:
        return FeatureState(snapshot_path=snapshot_path)
    if isinstance(document, dict) and isinstance(document.get("features"), list):
        document = document["features"]
    if isinstance(document, dict):
        completed = document.get("completed")
        names = [str(one) for one in completed] if isinstance(completed, list) else []
        return FeatureState(document.get("current"), names, snapshot_path)
    if not isinstance(document, list):
        return FeatureState(snapshot_path=snapshot_path)
    features: list[dict[str, Any]] = [one for one in document if isinstance(one, dict) and "id" in one]
    status = {str(one["id"]): str(one.get("status", "")).lower() for one in features}
    passes = {str(one["id"]) for one in features if one.get("passes") is True}
    completed = [id for id in status if id in passes or status[id] in _DONE]
    current = next((id for id in status if status[id] in _OPEN), None)
    return FeatureState(current, completed, snapshot_path)


def capture(project_dir: str | Path, checkpoint: str = "@") -> FeatureState:
    """Returns the content of the feature list at a checkpoint."""
    return parse(Engine(project_dir).read(checkpoint, FEATURE_LIST_FILE) or b"")
