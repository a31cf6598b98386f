"""Takes named checkpoints of a project and rolls back to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from .engine import Engine, EngineError
from .git_snapshot import GitState
from .rollback_handler import RollbackHandler
from .state_snapshot import FEATURE_LIST_FILE, FeatureState, parse, state_files

__all__ = ["Checkpoint", "CheckpointManager", "CheckpointType", "EngineError", "FeatureState", "GitState"]

CHECKPOINTS_DIR = ".claude/checkpoints"
_AGENT = "checkpoint-manager"


class CheckpointType(Enum):
    """The reason for a checkpoint. It determines how long the checkpoint is kept."""

    AUTOMATIC = "automatic"
    MANUAL = "manual"
    FEATURE = "feature"
    SESSION = "session"


@dataclass
class Checkpoint:
    """A saved state of the project."""

    id: str
    name: str
    description: str
    timestamp: str
    checkpoint_type: CheckpointType
    git_state: GitState
    feature_state: FeatureState
    context: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "checkpoint_type": self.checkpoint_type.value}


class CheckpointManager:
    """The checkpoints of a project."""

    def __init__(self, project_dir: str | Path) -> None:
        self.project_dir = Path(project_dir)
        self.engine = Engine(project_dir)
        self.checkpoints_dir = self.project_dir / CHECKPOINTS_DIR

    async def create_checkpoint(
        self,
        name: str,
        description: str = "",
        checkpoint_type: CheckpointType | str = CheckpointType.MANUAL,
        session_number: int | None = None,
        token_usage: int | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Takes a checkpoint of all files, including uncommitted ones, the feature list and the progress file."""
        said = dict(context or {})
        for key, value in (("session_number", session_number), ("token_usage", token_usage)):
            if value is not None:
                said[key] = value
        return await asyncio.to_thread(self._create, name, description, CheckpointType(checkpoint_type), said)

    async def rollback(self, checkpoint_id: str | Checkpoint, git: bool = False) -> bool:
        """Restores the project to a checkpoint. ``RollbackHandler.undo`` takes that back."""
        id = checkpoint_id.id if isinstance(checkpoint_id, Checkpoint) else checkpoint_id
        found = await asyncio.to_thread(self._find, id)
        if found is None:
            raise EngineError("unknown_checkpoint", f"there is no checkpoint {id!r}")
        await asyncio.to_thread(RollbackHandler(self.project_dir).rollback, found["id"], git)
        return True

    async def rollback_to_latest(self, git: bool = False) -> bool:
        """Rolls back to the newest checkpoint. Returns False if there is none."""
        checkpoints = await self.list_checkpoints()
        return await self.rollback(checkpoints[0].id, git) if checkpoints else False

    async def list_checkpoints(self, checkpoint_type: CheckpointType | None = None) -> list[Checkpoint]:
        """Returns the checkpoints, newest first."""
        found = [self._described(one) for one in await asyncio.to_thread(self._own)]
        return [one for one in found if checkpoint_type in (None, one.checkpoint_type)]

    async def get_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Returns one checkpoint, or None if it does not exist."""
        found = await asyncio.to_thread(self._find, checkpoint_id)
        return None if found is None else self._described(found)

    async def delete_checkpoint(self, checkpoint_id: str, force: bool = False) -> bool:
        """Deletes a checkpoint; a feature checkpoint only with ``force``. Returns False if it does not exist."""
        found = await asyncio.to_thread(self._find, checkpoint_id)
        if found is None:
            return False
        await asyncio.to_thread(self.engine.ask, "delete", found["id"], *(["--force"] if force else []))
        self._remove(self.checkpoints_dir / checkpoint_id)
        return True

    def _create(self, name: str, description: str, kind: CheckpointType, context: dict[str, Any]) -> Checkpoint:
        now = datetime.now().replace(microsecond=0)
        directory = self._new_directory(now)
        words = [
            "save", "--message", name, "--name", directory.name, "--description", description, "--kind", kind.value,
            "--agent", _AGENT, "--meta", f"name={name}", "--meta", f"time={now.isoformat()}",
            "--meta", f"context={json.dumps(context)}",
        ]
        for option, key in (("--session-number", "session_number"), ("--tokens", "token_usage")):
            value = context.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                words += [option, str(value)]
        for path in state_files(self.project_dir):
            words += ["--include", path]
        try:
            saved = self.engine.ask(*words)["checkpoint"]
        except BaseException:
            self._remove(directory)
            raise
        features = self.engine.read(saved["id"], FEATURE_LIST_FILE)
        (directory / FEATURE_LIST_FILE).write_bytes(b"{}\n" if features is None else features)
        checkpoint = self._described(saved)
        (directory / "checkpoint.json").write_text(json.dumps(checkpoint.to_dict(), indent=2) + "\n")
        return checkpoint

    def _new_directory(self, now: datetime) -> Path:
        """Creates a unique directory. Its name is the checkpoint's id."""
        self.checkpoints_dir.mkdir(parents=True, exist_ok=True)
        ignore = self.checkpoints_dir / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        id = now.strftime("checkpoint-%Y%m%d-%H%M%S")
        number = 1
        while True:
            directory = self.checkpoints_dir / (id if number == 1 else f"{id}-{number}")
            with contextlib.suppress(FileExistsError):
                directory.mkdir()
                return directory
            number += 1

    def _remove(self, directory: Path) -> None:
        for name in (FEATURE_LIST_FILE, "checkpoint.json"):
            (directory / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            directory.rmdir()

    def _own(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.engine.ask("list")["checkpoints"]
        return [one for one in listed if one["agent"] == _AGENT and one["name"] and one["kind"] != "safety"]

    def _find(self, id: str) -> dict[str, Any] | None:
        return next((one for one in self._own() if one["name"] == id), None)

    def _described(self, found: Mapping[str, Any]) -> Checkpoint:
        id = found["name"]
        snapshot = f"{CHECKPOINTS_DIR}/{id}/{FEATURE_LIST_FILE}"
        copy = self.project_dir / snapshot
        features = copy.read_bytes() if copy.is_file() else self.engine.read(found["id"], FEATURE_LIST_FILE) or b""
        said = found["metadata"]
        return Checkpoint(
            id=id,
            name=said.get("name", found["message"]),
            description=found["description"] or "",
            timestamp=said.get("time", ""),
            checkpoint_type=CheckpointType(found["kind"]),
            git_state=GitState.of(found),
            feature_state=parse(features, snapshot),
            context=json.loads(said.get("context", "{}")),
        )
